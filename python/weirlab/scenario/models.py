"""Models of scenario files: tests, links and scenarios as TOML or Python.

These models are the only source of the format: they check what is written, fill in defaults, and
`docs/scenarios.md` describes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from weirlab.errors import UsageError
from weirlab.scenario.faults import faults, told
from weirlab.scenario.units import (
    DscpValue,
    FlowBytes,
    FlowCount,
    LineRate,
    Nanoseconds,
    Payload,
    PositiveNanoseconds,
    ShaperRate,
    SizeInBytes,
)

Direction = Literal["up", "down"]
"""Direction, as the client sees it."""

Word = Annotated[str, Field(min_length=1)]
"""A name; an empty one names nothing."""


CLIENT = "client"
"""The machine of the client's network that the probes are of."""


class Model(BaseModel):
    """The base of all models: unknown keys are errors, nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    if not TYPE_CHECKING:  # pydantic's plugin for mypy writes a better signature

        def __init__(self, /, **written: object) -> None:
            """Checks what is written.

            Raises:
                UsageError: if something is wrong with it.
            """
            try:
                super().__init__(**written)
            except ValidationError as error:
                found = faults(error, type(self), written)
                raise UsageError(told(type(self).__name__, found)) from error

        # Models within models are validated as before, and tell their problems to the outermost.
        __init__.__pydantic_base_init__ = True


class Parameter(Model):
    """A number that a test leaves open."""

    default: int
    minimum: int
    maximum: int
    meaning: str


class HostSpec(Model):
    """A server.

    Attributes:
        name: its name.
        delay: delay between it and the far end of the link, each way.
    """

    name: Word
    delay: Nanoseconds = 0


class TcpSpec(Model):
    """TCP settings of a load.

    Attributes:
        profile: `linux`, `rfc`, `linux22` or `bsd`.
        congestion_control: one of `weir list congestion-controls`.
        sack, ecn, timestamps, pacing, bursts, delayed_ack: switch a part of the profile on or off.
        initial_window: segments that may be sent first.
        receive_window: greatest receive window.
        rto_min: shortest retransmission timeout.
    """

    profile: Word | None = None
    congestion_control: Word | None = None
    sack: bool | None = None
    ecn: bool | None = None
    timestamps: bool | None = None
    pacing: bool | None = None
    bursts: bool | None = None
    delayed_ack: bool | None = None
    initial_window: Annotated[int, Field(ge=1, le=1000)] | None = None
    receive_window: SizeInBytes | None = None
    rto_min: Nanoseconds | None = None

    def over(self, other: TcpSpec) -> TcpSpec:
        """These settings, and where they say nothing those of `other`."""
        return other.model_copy(update=self.model_dump(exclude_none=True))


class TunnelSpec(Model):
    """A VPN between the client's network and a server (simulator only).

    Flows, probes and speed tests whose `tunnel` has its name go through it, and are one UDP flow to whoever
    is outside.

    Attributes:
        name: its name.
        kind: what it speaks: `wireguard`, as in Linux, or `ipsec`: ESP with AES-GCM in UDP.
        host: the server at which it ends, with all that goes through it.
        station: the machine in the client's network at which it ends.
        on_first_hop: whether it ends on the machine that has the first queue of the upload, and not on one in
            front of it (`wireguard` only): there Linux still knows the hashes of the TCP and UDP flows
            inside, so that queues by flow tell them apart.
    """

    name: Word
    kind: Literal["wireguard", "ipsec"]
    host: str = "server"
    station: str = CLIENT
    on_first_hop: bool = False


class FlowSpec(Model):
    """One or several TCP loads.

    Attributes:
        name: its name; several are numbered `name::1`, `name::2` ...
        direction: which way its data flows.
        dscp: service class of its packets.
        host: the server at its other end; that of its tunnel, if it has one.
        tunnel: the tunnel that it goes through, by name; none if nothing is said.
        station: the machine in the client's network at its near end, by any name, each with an address of its
            own (simulator only); `client` is the one that the probes are of.
        opened_by: who opens the connection, `client` or `server`; the one who sends the data can send it half
            a round trip sooner if it opened the connection.
        count: how many there are: a number, or the name of one of the test's parameters.
        start, stop: when it runs; during the phase `load` if nothing is said.
        bytes: how much it sends; without end if nothing is said.
        tcp: its TCP.
    """

    name: Word
    direction: Direction
    dscp: DscpValue = 0
    host: str = "server"
    tunnel: str | None = None
    station: str = CLIENT
    opened_by: Literal["client", "server"] = "client"
    count: FlowCount = 1
    start: Nanoseconds | None = None
    stop: Nanoseconds | None = None
    bytes: FlowBytes | None = None
    tcp: TcpSpec = TcpSpec()


class ProbeSpec(Model):
    """A train of pings.

    Attributes:
        name: its name.
        kind: what is sent: `icmp` and `udp` echoes, `udp_ttl` (UDP that a router on the way answers with
            ICMP time exceeded), `tcp` (requests and responses over one connection; live worlds only).
        ttl: for `udp_ttl`: the number of the router that answers, from 1, the one before the first hop.
        dscp: service class of its packets.
        host: the server that answers; that of its tunnel, if it has one.
        tunnel: the tunnel that it goes through, by name; none if nothing is said.
        period: time between two pings, answered or not; the scenario's if nothing is said.
        payload: bytes of payload: 56 for ICMP as `ping` has it, 60 for UDP.
        start, stop: when it runs; during the whole test if nothing is said.
    """

    name: Word
    kind: Literal["icmp", "udp", "udp_ttl", "tcp"]
    ttl: Annotated[int, Field(ge=1, le=64)] | None = None
    dscp: DscpValue = 0
    host: str = "server"
    tunnel: str | None = None
    period: PositiveNanoseconds | None = None
    payload: Payload | None = None
    start: Nanoseconds | None = None
    stop: Nanoseconds | None = None


class MethodSpec(Model):
    """A foreign speed test, as its official client runs it: it ends when its method does.

    Attributes:
        name: its name; the record has two flows of it, `name down` and `name up`, and its own round trips as
            the probe `name in flow`.
        kind: its method, as `weir test --method` has it: `ndt7`, `cloudflare`, `rpm` and so on.
        start: when it begins; with the phase `load` if nothing is said.
        host: its server; that of its tunnel, if it has one.
        tunnel: the tunnel that it goes through, by name; none if nothing is said.
        dscp: service class of its packets.
        tls: whether its connections are secured, as those of all official clients are by default.
        cc: congestion control of the server, so that of downloads; `bbr` for ndt7, whose server asks for it,
            and the scenario's for the others if nothing is said.
        client_cc: congestion control of the client, so that of uploads; the scenario's if nothing is said.
        tcp: the rest of the TCP of both ends.
    """

    name: Word
    kind: str
    start: Nanoseconds | None = None
    host: str = "server"
    tunnel: str | None = None
    dscp: DscpValue = 0
    tls: bool = True
    cc: Word | None = None
    client_cc: Word | None = None
    tcp: TcpSpec = TcpSpec()

    @model_validator(mode="after")
    def _one_congestion_control(self) -> MethodSpec:
        if self.tcp.congestion_control is not None:
            raise ValueError(f"method `{self.name}`: write `cc` and `client_cc`, not tcp.congestion_control")
        return self


class PhasesSpec(Model):
    """The phases of a test, in the order in which they come. A phase of no length is left out."""

    idle: Nanoseconds = 0
    load: Nanoseconds = 0
    cooldown: Nanoseconds = 0

    @model_validator(mode="after")
    def _lasts(self) -> PhasesSpec:
        if self.idle + self.load + self.cooldown == 0:
            raise ValueError("the test lasts no time: give one of idle, load, cooldown a length")
        return self


class TestSpec(Model):
    """A test: loads and probes on a time axis, on whatever link.

    Attributes:
        name: its name.
        title: what a chart is headed with.
        summary: what it does, in a line.
        source: what it follows.
        parameters: numbers that it leaves open.
        phases: when what happens.
        hosts: the servers.
        tunnels: the tunnels to them.
        flows: the loads.
        probes: the probes.
        methods: the speed tests.
    """

    __test__ = False  # not a test of ours: keeps pytest from collecting it

    name: Word
    title: str
    summary: str = ""
    source: str = ""
    parameters: dict[str, Parameter] = {}
    phases: PhasesSpec
    hosts: list[HostSpec] = [HostSpec(name="server")]
    tunnels: list[TunnelSpec] = []
    flows: list[FlowSpec] = []
    probes: list[ProbeSpec] = []
    methods: list[MethodSpec] = []


class FramingSpec(Model):
    """How packets are wrapped on a line, in numbers.

    Attributes:
        overhead: bytes added to every IP packet.
        minimum: the least that a packet occupies.
        cells: how it is cut up.
    """

    overhead: Annotated[int, Field(ge=0, le=1000)] = 0
    minimum: Annotated[int, Field(ge=0, le=1000)] = 0
    cells: Literal["none", "atm", "ptm"] = "none"


class RandomLossSpec(Model):
    """Each packet by itself."""

    model: Literal["random"]
    probability: Annotated[float, Field(ge=0, le=1)]


class GilbertElliottLossSpec(Model):
    """Losses in bursts: a line that is in a good or a bad state."""

    model: Literal["gilbert_elliott"]
    good_to_bad: Annotated[float, Field(ge=0, le=1)]
    bad_to_good: Annotated[float, Field(ge=0, le=1)]
    loss_when_bad: Annotated[float, Field(ge=0, le=1)] = 1.0
    loss_when_good: Annotated[float, Field(ge=0, le=1)] = 0.0


LossSpec = Annotated[RandomLossSpec | GilbertElliottLossSpec, Field(discriminator="model")]


class ReorderSpec(Model):
    """Packets that arrive without the delay and so overtake those under way.

    Attributes:
        probability: probability for a packet that may.
        gap: every so many packets one may.
    """

    probability: Annotated[float, Field(ge=0, le=1)]
    gap: Annotated[int, Field(ge=1)] = 1


class ChangeSpec(Model):
    """Something that happens to a line while the run goes on; one of `rate`, `down` and `delay`, or several.

    Attributes:
        at: when, from the start of the run.
        rate: the line's rate from then on.
        down: the line carries nothing until it is given a rate again.
        delay: its propagation delay from then on.
    """

    at: Nanoseconds
    rate: LineRate | None = None
    down: bool = False
    delay: Nanoseconds | None = None

    @model_validator(mode="after")
    def _something(self) -> ChangeSpec:
        if self.rate is None and self.delay is None and not self.down:
            raise ValueError("nothing changes: give `rate`, `delay`, or `down = true`")
        if self.rate is not None and self.down:
            raise ValueError("`rate` and `down` exclude each other")
        return self


class HopSpec(Model):
    """A queue and the line behind it.

    Attributes:
        name: its name.
        place: `queue` where the user's queue goes; `queue` below is then what sits there if none is given.
        queue: the queue, in `tc` syntax.
        marker: the marker in front of the queue: its name and parameters; none if nothing is said.
        rate: the line's rate; unlimited if neither this nor `trace` is given.
        trace: the name of a recorded line, or a path to a file in Mahimahi's format.
        framing: a name (`none`, `ethernet`, `ptm`, `atm`, `docsis`) or numbers.
        delay: propagation delay.
        jitter: greatest additional delay, drawn evenly a packet, without reordering.
        loss: loss on the line.
        reorder: packets that overtake others on the line; needs a delay.
        duplicate: probability that a packet arrives twice.
        txqueuelen: packets that a plain FIFO holds where its set-up names no limit.
        changes: what happens to the line while the run goes on.
    """

    name: Word
    place: Literal["fixed", "queue"] = "fixed"
    queue: str = "pfifo"
    marker: str | None = None
    rate: LineRate | None = None
    trace: str | None = None
    framing: Literal["none", "ethernet", "ptm", "atm", "docsis"] | FramingSpec = "none"
    delay: Nanoseconds = 0
    jitter: Nanoseconds = 0
    loss: LossSpec | None = None
    reorder: ReorderSpec | None = None
    duplicate: Annotated[float, Field(ge=0, le=1)] = 0.0
    txqueuelen: Annotated[int, Field(ge=1)] = 1000
    changes: list[ChangeSpec] = []

    @model_validator(mode="after")
    def _one_rate(self) -> HopSpec:
        if self.rate is not None and self.trace is not None:
            raise ValueError(f"hop `{self.name}`: `rate` and `trace` exclude each other")
        return self


class LinkSpec(Model):
    """A link: the hops of both directions, each in the order in which packets pass them.

    Attributes:
        name: its name.
        title: what a chart says.
        summary: what it is, in a line.
        source: where its numbers come from, and which are chosen.
        mtu: largest IP packet in bytes.
        up: from the client to the servers.
        down: from the servers to the client.
    """

    name: Word
    title: str
    summary: str = ""
    source: str = ""
    mtu: Annotated[int, Field(ge=576, le=9000)] = 1500
    up: list[HopSpec] = []
    down: list[HopSpec] = []


class SamplingSpec(Model):
    """How often what is sampled; `0s` switches a table off."""

    ping: PositiveNanoseconds = 10_000_000
    throughput: Nanoseconds = 100_000_000
    tcp: Nanoseconds = 100_000_000
    queue: Nanoseconds = 100_000_000


class SpanSpec(Model):
    """From a time to another."""

    start: Nanoseconds
    stop: Nanoseconds


class TroubleSpec(SpanSpec):
    """Something that goes wrong with a reflector for a while.

    Attributes:
        silent: it does not answer.
        late: it answers so much later.
        erratic: it answers later by anything up to this.
        clock: its clock is set forward by so much.
    """

    silent: bool = False
    late: Nanoseconds | None = None
    erratic: Nanoseconds | None = None
    clock: Nanoseconds | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> TroubleSpec:
        said = [self.silent or None, self.late, self.erratic, self.clock]
        if sum(one is not None for one in said) != 1:
            raise ValueError("give one of `silent`, `late`, `erratic`, `clock`")
        return self


class ReflectorSpec(Model):
    """One that answers a shaper's probes.

    Attributes:
        delay: delay between it and the far end of the link, each way.
        loss: share of the probes that it never answers.
        troubles: what else goes wrong.
    """

    delay: Nanoseconds = 0
    loss: Annotated[float, Field(ge=0, le=1)] = 0
    troubles: list[TroubleSpec] = []


class RatesSpec(Model):
    """Settings of a shaper for one direction.

    Attributes:
        rate: for `fixed`: the rate, or a share of the line's such as `95%`; for `auto`: that direction stays
            at it, and the other is controlled.
        min, base, max: for `cake-autorate`, all three; for `auto`, `max` if anything.
    """

    rate: ShaperRate | None = None
    min: LineRate | None = None
    base: LineRate | None = None
    max: LineRate | None = None


class ShaperSpec(Model):
    """A shaper at the client's end of the line: in front of it on the way up, behind it on the way down.

    Attributes:
        control: who sets its rates: `auto` (Weir's controller, told nothing), `cake-autorate` (the published
            law, told `min`, `base` and `max`), `fixed`.
        mode: for `auto`: `ping` keeps delays short, `bandwidth` uses all of the rate.
        directions: which it shapes.
        up, down: what it is told of each direction.
        probe: what it probes with: `icmp` (round trips), `udp` (a server that tells its time: both ways),
            `none`.
        passive: whether the round trips of the user's own connections count as well.
        reflectors: who answers the probes.
        framing: how it counts packets.
        sleeps: while these last nobody looks after it, as if the machine slept.
    """

    control: Literal["auto", "cake-autorate", "fixed"]
    mode: Literal["ping", "bandwidth"] = "ping"
    directions: Annotated[list[Direction], Field(min_length=1)] = ["up", "down"]
    up: RatesSpec = RatesSpec()
    down: RatesSpec = RatesSpec()
    probe: Literal["icmp", "udp", "none"] = "icmp"
    passive: bool = True
    reflectors: Annotated[list[ReflectorSpec], Field(min_length=1)] = [
        ReflectorSpec.model_validate({"delay": "1ms"}),
        ReflectorSpec.model_validate({"delay": "3ms"}),
        ReflectorSpec.model_validate({"delay": "6ms"}),
    ]
    framing: Literal["none", "ethernet", "ptm", "atm", "docsis"] | FramingSpec = "ethernet"
    sleeps: list[SpanSpec] = []


class NoteSpec(Model):
    """Notes of the user on runs.

    Attributes:
        note: free text, up to 10000 characters.
        tags: words by which runs are found again, up to 100 of up to 100 characters without spaces.
    """

    note: Annotated[str, Field(max_length=10_000)] = ""
    tags: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=100, pattern=r"^\S+$")]], Field(max_length=100)
    ] = []


class ScenarioSpec(NoteSpec):
    """A scenario: a test on a link, with one or several queue set-ups to compare.

    Attributes:
        name: its name; made of test and link if nothing is said.
        test: the name of a shipped test, a path to a test file, or the test itself.
        link: the name of a shipped link, a path to a link file, or the link itself; several to compare them.
        queue: queue set-ups in `tc` syntax; each makes a run. `default` is the link's own.
        queue_up, queue_down: the same for one direction only, in place of `queue`; one or several.
        cc: congestion control of all loads, in place of that of `tcp`; several to compare them.
        shaper: shapers to compare, each with each queue set-up, which then is that of the shaper: `none`, a
            control such as `auto`, with words such as `auto mode bandwidth`, or the shaper itself.
        seed: seed of the first run.
        repeat: runs for each set-up, each with the next seed.
        parameters: values of the test's parameters.
        methods: speed tests beside those of the test.
        phases: lengths of phases in place of the test's.
        tcp: TCP of all loads, where a load says nothing itself.
        sampling: how often what is sampled.
        start_jitter: each load starts up to so much later, each train of pings up to a period later,
            drawn from the seed: without it loads that start together stay in lock-step.
        ip: Internet protocol.
        assertions: what must hold for every run, such as `latency.p99 < latency.median[idle] + 10ms`.
        note, tags: what the records say of the runs in the user's own words (`NoteSpec`).
    """

    name: str | None = None
    test: str | TestSpec
    link: str | LinkSpec | Annotated[list[str | LinkSpec], Field(min_length=1)]
    queue: Annotated[list[str], Field(min_length=1)] = ["default"]
    queue_up: str | Annotated[list[str], Field(min_length=1)] | None = None
    queue_down: str | Annotated[list[str], Field(min_length=1)] | None = None
    cc: Word | Annotated[list[Word], Field(min_length=1)] | None = None
    shaper: Annotated[list[str | ShaperSpec], Field(min_length=1)] = ["none"]
    seed: Annotated[int, Field(ge=0, lt=2**63, strict=True)] = 1
    repeat: Annotated[int, Field(ge=1, le=100_000, strict=True)] = 1
    parameters: dict[str, Annotated[int, Field(strict=True)]] = {}
    methods: list[MethodSpec] = []
    phases: dict[Literal["idle", "load", "cooldown"], Nanoseconds] = {}
    tcp: TcpSpec = TcpSpec()
    sampling: SamplingSpec = SamplingSpec()
    start_jitter: Nanoseconds = 50_000_000
    ip: Literal[4, 6] = 4
    assertions: Annotated[list[str], Field(alias="assert")] = []

    @model_validator(mode="after")
    def _one_congestion_control(self) -> ScenarioSpec:
        if self.cc is not None and self.tcp.congestion_control is not None:
            raise ValueError("`cc` and `tcp.congestion_control` say the same: leave one of them out")
        return self
