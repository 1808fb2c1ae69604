"""Tests, links and scenarios, as types of Python.

Made of the declarations in `crates/scenario` by `make docs`: change them there. The compiled part reads what
is written, and knows the bounds; `docs/scenarios.md` describes the files.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weirlab.scenario.base import Spec
from weirlab.scenario.plain import Direction
from weirlab.scenario.quantities import (
    AnswerBytes,
    DscpValue,
    FlowBytes,
    FlowCount,
    LineRate,
    Nanoseconds,
    PacketTime,
    Payload,
    PositiveNanoseconds,
    ShaperRate,
    WindowBytes,
)


class ParameterSpec(Spec):
    """A number that a test leaves open.

    Attributes:
        default: value of the parameter if nothing is said.
        minimum: least value of the parameter.
        maximum: greatest value of the parameter.
        meaning: meaning of the parameter.
    """

    default: int
    minimum: int
    maximum: int
    meaning: str


class PhasesSpec(Spec):
    """The phases of a test, in the order in which they come.

    A phase of no length is left out.

    Attributes:
        idle: length of the phase before the load.
        load: length of the phase with the load.
        cooldown: length of the phase after the load.
    """

    idle: Nanoseconds = 0
    load: Nanoseconds = 0
    cooldown: Nanoseconds = 0


class HostSpec(Spec):
    """A server.

    Attributes:
        name: name of the server.
        delay: delay between it and the far end of the link, each way.
        route: name of the link's route by which it is reached; over all hops of the link in order if nothing
            is said.
    """

    name: str
    delay: Nanoseconds = 0
    route: str | None = None


class TunnelSpec(Spec):
    """A VPN between the client's network and a server (simulator only).

    Flows, probes and speed tests whose `tunnel` has its name go through it, and are one UDP flow to whoever
    is outside.

    Attributes:
        name: name of the tunnel.
        kind: its protocol: `wireguard`, as in Linux, or `ipsec`: ESP with AES-GCM in UDP.
        host: the server at which it ends, with all that goes through it.
        client_host: the machine in the client's network at which it ends.
        on_first_hop: whether it ends on the machine that has the first queue of the upload, and not on one in
            front of it (`wireguard` only): there Linux still knows the hashes of the TCP and UDP flows
            inside, so that queues by flow tell them apart.
    """

    name: str
    kind: Literal["wireguard", "ipsec"]
    host: str = "server"
    client_host: str = "client"
    on_first_hop: bool = False


class TcpSpec(Spec):
    """TCP settings of a load.

    Attributes:
        profile: `linux`, `rfc`, `linux22` or `bsd`.
        congestion_control: `cubic`, `reno` and so on: `weir list congestion-controls` has them all.
        sack: switches selective acknowledgements of the profile on or off.
        ecn: switches explicit congestion notification on or off.
        timestamps: switches timestamps on or off.
        pacing: switches pacing on or off.
        bursts: whether segments leave the machine in bursts, as with segmentation offload, or one by one.
        delayed_ack: whether every second segment is acknowledged, or each.
        initial_window: segments that may be sent first.
        receive_window: greatest receive window.
        rto_min: shortest retransmission timeout.
    """

    profile: str | None = None
    congestion_control: str | None = None
    sack: bool | None = None
    ecn: bool | None = None
    timestamps: bool | None = None
    pacing: bool | None = None
    bursts: bool | None = None
    delayed_ack: bool | None = None
    initial_window: int | None = None
    receive_window: WindowBytes | None = None
    rto_min: Nanoseconds | None = None


class UdpSpec(Spec):
    """The packets of a UDP flow.

    Attributes:
        rate: rate of the UDP payload while it sends; of a flood, any rate above the line's.
        payload: UDP payload of each packet.
        pattern: when packets leave.
        on: for `bursts` and `on_off`: how long it sends, for `on_off` in the mean.
        off: for `bursts` and `on_off`: how long it is silent, for `on_off` in the mean.
    """

    rate: LineRate
    payload: Payload = 1470
    pattern: Literal["constant", "poisson", "bursts", "on_off"] = "constant"
    on: PositiveNanoseconds | None = None
    off: PositiveNanoseconds | None = None


class VoiceSpec(Spec):
    """The receiver of a voice stream.

    Attributes:
        jitter_buffer: least time that the receiver's jitter buffer holds packets back.
        packet_time: speech in a packet, as `ptime` of RTP.
    """

    jitter_buffer: PositiveNanoseconds = 40_000_000
    packet_time: PacketTime = 20_000_000


class WebSpec(Spec):
    """Web pages that are loaded again and again, each as by somebody who has never been there.

    Attributes:
        document: bytes of the document.
        objects: objects that the document names.
        object: bytes of each object.
        connections: connections of HTTP/1.1 at most.
        http: `1.1` with several connections, or `2` with one that carries everything at once.
        tls: whether connections are secured by TLS.
        dns: whether the server's name is looked up first.
        every: time from the start of one page to that of the next; one that takes longer is followed at once.
        timeout: how long a page is waited for.
    """

    document: AnswerBytes = 28598
    objects: int = 109
    object: AnswerBytes = 28598
    connections: int = 6
    http: Literal["1.1", "2"] = "1.1"
    tls: bool = True
    dns: bool = True
    every: PositiveNanoseconds = 2_000_000_000
    timeout: PositiveNanoseconds = 60_000_000_000


class VideoSpec(Spec):
    """A video of adaptive bitrate, as DASH players load it.

    Attributes:
        bitrates: bitrates that there are, the least first; those of Netflix of 2015, 235kbit to 5.8mbit, if
            nothing is said.
        segment: how long a segment plays.
        buffer: how much the player loads ahead.
    """

    bitrates: list[LineRate] = []
    segment: PositiveNanoseconds = 4_000_000_000
    buffer: PositiveNanoseconds = 30_000_000_000


class DnsSpec(Spec):
    """Names that are looked up.

    Attributes:
        every: time between two lookups, answered or not.
    """

    every: PositiveNanoseconds = 200_000_000


class FlowSpec(Spec):
    """One or several loads.

    They are data over TCP, packets over UDP with `udp` or `voice`, or an application with `web`, `video` or
    `dns`.

    Attributes:
        name: name of the flow; several are numbered `name::1`, `name::2` ...
        direction: direction of its data, as the client sees it.
        dscp: service class of its packets.
        host: the server at its other end; that of its tunnel, or else `server`, if nothing is said.
        tunnel: the tunnel that it goes through, by name; none if nothing is said.
        ip: internet protocol, 4 or 6; the scenario's if nothing is said.
        client_host: the machine in the client's network at its near end, by any name, each with an address of
            its own (simulator only); `client` is the one that the probes are of.
        opened_by: who opens the connection; the one who sends the data can send it half a round trip sooner
            if it opened the connection.
        count: how many there are: a number, or the name of one of the test's parameters.
        during: the phase during which it runs, by name: `idle`, `load`, `cooldown` or one of the test's
            stages.
        start: when it starts; with the phase `load` if nothing is said, a voice stream and an application
            with the test.
        stop: when it stops; with the phase `load` if nothing is said, a voice stream and an application with
            the test.
        bytes: how much it sends; without end if nothing is said.
        tcp: TCP of the flow.
        udp: makes it a UDP flow: its packets.
        voice: makes it a voice stream of ITU-T G.711: UDP with an RTP header, of which the record has the
            mean opinion score.
        web: makes it web pages that are loaded again and again.
        video: makes it a video of adaptive bitrate that plays.
        dns: makes it names that are looked up.
    """

    name: str
    direction: Direction
    dscp: DscpValue = 0
    host: str | None = None
    tunnel: str | None = None
    ip: Literal[4, 6] | None = None
    client_host: str = "client"
    opened_by: Literal["client", "server"] = "client"
    count: FlowCount = 1
    during: str | None = None
    start: Nanoseconds | None = None
    stop: Nanoseconds | None = None
    bytes: FlowBytes | None = None
    tcp: TcpSpec = TcpSpec()
    udp: UdpSpec | None = None
    voice: VoiceSpec | None = None
    web: WebSpec | None = None
    video: VideoSpec | None = None
    dns: DnsSpec | None = None


class ProbeSpec(Spec):
    """A train of pings.

    Attributes:
        name: name of the probe.
        kind: protocol of the pings: `icmp` and `udp` echoes, `udp_ttl` (UDP that a router on the way answers
            with ICMP time exceeded), `tcp` (requests and responses over one connection; live worlds only).
        ttl: for `udp_ttl`: the number of the router that answers, from 1, the one before the first hop.
        dscp: service class of its packets.
        host: the server that answers; that of its tunnel, or else `server`, if nothing is said.
        tunnel: the tunnel that it goes through, by name; none if nothing is said.
        ip: internet protocol, 4 or 6; the scenario's if nothing is said.
        period: time between two pings, answered or not; the scenario's if nothing is said.
        payload: bytes of payload: 56 for ICMP as `ping` has it, 60 for UDP.
        start: when the first is sent; at the start of the test if nothing is said.
        stop: when the last may be sent; at the end of the test if nothing is said.
    """

    name: str
    kind: Literal["icmp", "udp", "udp_ttl", "tcp"]
    ttl: int | None = None
    dscp: DscpValue = 0
    host: str | None = None
    tunnel: str | None = None
    ip: Literal[4, 6] | None = None
    period: PositiveNanoseconds | None = None
    payload: Payload | None = None
    start: Nanoseconds | None = None
    stop: Nanoseconds | None = None


class MethodSpec(Spec):
    """A foreign speed test, as its official client runs it: it ends when its method does.

    Attributes:
        name: name of the speed test; the record has two flows of it, `name down` and `name up`, and its own
            round trips as the probe `name in flow`.
        kind: method, as `weir test --method` has it: `ndt7`, `cloudflare`, `rpm` and so on.
        start: when it begins; with the phase `load` if nothing is said.
        host: server of the speed test; that of its tunnel, or else `server`, if nothing is said.
        tunnel: the tunnel that it goes through, by name; none if nothing is said.
        dscp: service class of its packets.
        tls: whether its connections are secured, as those of all official clients are by default.
        cc: congestion control of the server, so that of downloads; `bbr` for ndt7, whose server asks for it,
            and the scenario's for the others if nothing is said.
        client_cc: congestion control of the client, so that of uploads; the scenario's if nothing is said.
        tcp: the rest of the TCP of both ends.
    """

    name: str
    kind: str
    start: Nanoseconds | None = None
    host: str | None = None
    tunnel: str | None = None
    dscp: DscpValue = 0
    tls: bool = True
    cc: str | None = None
    client_cc: str | None = None
    tcp: TcpSpec = TcpSpec()


class TestSpec(Spec):
    """A test: loads and probes on a time axis, on whatever link.

    Attributes:
        name: name of the test.
        title: heading of charts.
        summary: description of the test, in a line.
        source: source that it follows.
        parameters: numbers that it leaves open.
        phases: when what happens.
        stages: phases of any name within the load, one after the other, with their lengths, such as `upload =
            "10s"`.
        hosts: the servers.
        tunnels: the tunnels to them.
        flows: the loads.
        probes: the probes.
        methods: the speed tests.
    """

    name: str
    title: str
    summary: str = ""
    source: str = ""
    parameters: dict[str, ParameterSpec] = {}
    phases: PhasesSpec
    stages: dict[str, PositiveNanoseconds] = {}
    hosts: list[HostSpec] = [HostSpec.model_validate({"name": "server"})]
    tunnels: list[TunnelSpec] = []
    flows: list[FlowSpec] = []
    probes: list[ProbeSpec] = []
    methods: list[MethodSpec] = []


class FramingSpec(Spec):
    """How packets are wrapped on a line, in numbers.

    Attributes:
        overhead: bytes added to every IP packet.
        minimum: the least that a packet occupies.
        cells: how it is cut up.
    """

    overhead: int = 0
    minimum: int = 0
    cells: Literal["none", "atm", "ptm"] = "none"


class RandomLossSpec(Spec):
    """Each packet is lost by itself.

    Attributes:
        model: `random`.
        probability: probability for a packet.
    """

    model: Literal["random"]
    probability: float


class GilbertElliottLossSpec(Spec):
    """Losses in bursts: a line that is in a good or a bad state (Gilbert and Elliott).

    Attributes:
        model: `gilbert_elliott`.
        good_to_bad: probability that a packet takes the line from the good state into the bad one.
        bad_to_good: probability that a packet takes the line from the bad state into the good one.
        loss_when_bad: probability that a packet is lost in the bad state.
        loss_when_good: probability that a packet is lost in the good state.
    """

    model: Literal["gilbert_elliott"]
    good_to_bad: float
    bad_to_good: float
    loss_when_bad: float = 1.0
    loss_when_good: float = 0.0


class ReorderSpec(Spec):
    """Packets that arrive without the delay and so overtake those under way.

    Attributes:
        probability: probability for a packet that may.
        gap: every so many packets one may.
    """

    probability: float
    gap: int = 1


class ChangeSpec(Spec):
    """Something that happens to a line while the run goes on; `rate`, `down`, `delay` or `loss`, or several.

    Attributes:
        at: when, from the start of the run.
        rate: the line's rate from then on.
        down: the line carries nothing until it is given a rate again.
        delay: the line's propagation delay from then on.
        loss: loss on the line from then on, in place of that before.
    """

    at: Nanoseconds
    rate: LineRate | None = None
    down: bool = False
    delay: Nanoseconds | None = None
    loss: Annotated[RandomLossSpec | GilbertElliottLossSpec, Field(discriminator="model")] | None = None


class ReconfigurationSpec(Spec):
    """Another path from time to time, as of satellites: each has a delay and a rate of its own.

    Attributes:
        period: how long each path is kept.
        first: when the second path begins; after a period if nothing is said.
        delay: greatest additional delay; each path draws its own, evenly from none.
        min_rate_share: least share of the line's rate; each path draws its own, evenly up to 1.
        outage: how long the line carries nothing at the start of each further path.
    """

    period: PositiveNanoseconds
    first: Nanoseconds | None = None
    delay: Nanoseconds = 0
    min_rate_share: float = 1.0
    outage: Nanoseconds = 0


class GrantsSpec(Spec):
    """Requests and grants, as of a cable modem: what waits is asked for, and sent in a later interval.

    Attributes:
        interval: length of an interval; that of a MAP in DOCSIS.
        delay: least time from a request to the interval of its grant.
    """

    interval: PositiveNanoseconds = 2_000_000
    delay: Nanoseconds


class AirtimeSpec(Spec):
    """Opportunities to send in a wireless network: IEEE 802.11's distributed coordination with aggregates.

    Attributes:
        medium: name of the medium; hops of one name share it. A medium of its own if nothing is said.
        packets: most packets of an aggregate.
        longest: no packet is begun later than this behind the first of its aggregate.
        overhead: what an opportunity costs besides its packets: preamble, acknowledgement, gaps within.
        gap: silence before slots are counted (DIFS).
        slot: length of a slot of the backoff.
        window: slots are drawn evenly from 0 to this (CWmin).
        max_window: the most to which failures double the window (CWmax).
        failures: probability that an opportunity fails; it then costs its overhead, and is tried again.
    """

    medium: str | None = None
    packets: int = 32
    longest: Nanoseconds = 4_000_000
    overhead: Nanoseconds
    gap: Nanoseconds = 34_000
    slot: PositiveNanoseconds = 9_000
    window: int = 15
    max_window: int = 1023
    failures: float = 0.0


class HopSpec(Spec):
    """A queue and the line behind it.

    Attributes:
        name: name of the hop.
        place: `queue` where the user's queue goes; `queue` below is then what sits there if none is given.
        queue: the queue, in `tc` syntax.
        marker: the marker in front of the queue: its name and parameters; none if nothing is said.
        rate: the line's rate; unlimited if neither this nor `trace` is given.
        trace: the name of a recorded line, or a path to a file in Mahimahi's format.
        framing: A name (`none`, `ethernet`, `ptm`, `atm`, `docsis`) or numbers.
        delay: propagation delay.
        jitter: greatest additional delay, drawn evenly a packet, without reordering.
        loss: loss on the line.
        reorder: packets that overtake others on the line; needs a delay.
        duplicate: probability that a packet arrives twice.
        packet_rate: packets per second that the processor of the router in front of the hop forwards, of any
            length; without end if nothing is said.
        packet_queue: packets that may wait for that processor, in a FIFO; 1000 if nothing is said.
        txqueuelen: packets that a plain FIFO holds where its spec names no limit.
        changes: changes of the line while the run goes on.
        reconfiguration: another path from time to time; a pause of the line, too.
        grants: packets are asked for before they may be sent, as on cable; needs a `rate`.
        airtime: the line competes for the air, as in wireless networks; needs a `rate`.
    """

    name: str
    place: Literal["fixed", "queue"] = "fixed"
    queue: str = "pfifo"
    marker: str | None = None
    rate: LineRate | None = None
    trace: str | None = None
    framing: Literal["none", "ethernet", "ptm", "atm", "docsis"] | FramingSpec = "none"
    delay: Nanoseconds = 0
    jitter: Nanoseconds = 0
    loss: Annotated[RandomLossSpec | GilbertElliottLossSpec, Field(discriminator="model")] | None = None
    reorder: ReorderSpec | None = None
    duplicate: float = 0.0
    packet_rate: int | None = None
    packet_queue: int | None = None
    txqueuelen: int = 1000
    changes: list[ChangeSpec] = []
    reconfiguration: ReconfigurationSpec | None = None
    grants: GrantsSpec | None = None
    airtime: AirtimeSpec | None = None


class RouteSpec(Spec):
    """A way between the client and servers, over some hops of the link.

    Attributes:
        up: names of hops up, each once, in the order in which packets pass them; `[]` means directly. All
            hops up, in the order of the link, if nothing is said.
        down: names of hops down, in the same way.
    """

    up: list[str] | None = None
    down: list[str] | None = None


class LinkSpec(Spec):
    """A link: the hops of both directions, each in the order in which packets pass them.

    Attributes:
        name: name of the link.
        title: title of the link on charts.
        summary: description of the link, in a line.
        source: where its numbers come from, and which are chosen.
        mtu: largest IP packet in bytes.
        up: from the client to the servers.
        down: from the servers to the client.
        routes: ways over some of the hops, by name: servers of a test whose `route` has such a name are
            reached by it.
    """

    name: str
    title: str
    summary: str = ""
    source: str = ""
    mtu: int = 1500
    up: list[HopSpec] = []
    down: list[HopSpec] = []
    routes: dict[str, RouteSpec] = {}


class RatesSpec(Spec):
    """Settings of a shaper for one direction.

    Attributes:
        rate: for `fixed`: the rate, or a share of the line's such as `95%`; for `auto`: that direction stays
            at it, and the other is controlled.
        min: for `cake-autorate`: the least rate.
        base: for `cake-autorate`: the usual rate.
        max: for `cake-autorate`: the greatest rate; for `auto` too, if anything.
    """

    rate: ShaperRate | None = None
    min: LineRate | None = None
    base: LineRate | None = None
    max: LineRate | None = None


class TroubleSpec(Spec):
    """Something that goes wrong with a reflector for a while.

    Attributes:
        silent: it does not answer.
        late: it answers so much later.
        erratic: it answers later by anything up to this.
        clock: the machine's clock is set forward by so much.
        start: when it begins.
        stop: when it ends.
    """

    silent: bool = False
    late: Nanoseconds | None = None
    erratic: Nanoseconds | None = None
    clock: Nanoseconds | None = None
    start: Nanoseconds
    stop: Nanoseconds


class ReflectorSpec(Spec):
    """A machine that answers a shaper's probes.

    Attributes:
        delay: delay between it and the far end of the link, each way.
        loss: share of the probes that it never answers.
        troubles: other troubles, and when they happen.
    """

    delay: Nanoseconds = 0
    loss: float = 0.0
    troubles: list[TroubleSpec] = []


class SpanSpec(Spec):
    """From a time to another.

    Attributes:
        start: when it begins.
        stop: when it ends.
    """

    start: Nanoseconds
    stop: Nanoseconds


class LearnedSpec(Spec):
    """What an earlier run of a shaper learned of its line and kept.

    Attributes:
        up: usual capacity of the upload, or a share of the line's such as `95%`.
        down: usual capacity of the download, or a share of the line's such as `95%`.
        age: how long ago that was; after more than 30 days (`2592000s`) it is not used.
    """

    up: ShaperRate | None = None
    down: ShaperRate | None = None
    age: Nanoseconds = 0


class ShaperSpec(Spec):
    """A shaper at the client's end of the line: in front of it on the way up, behind it on the way down.

    Attributes:
        control: who sets its rates: `auto` (Weir's controller, told nothing), `cake-autorate` (the published
            law, told `min`, `base` and `max`), `fixed`.
        mode: for `auto`: `ping` keeps delays short, `bandwidth` uses all of the rate.
        directions: directions that it shapes, one or both.
        up: rates of the upload that it is told.
        down: rates of the download that it is told.
        probe: its probes: `icmp` (round trips), `udp` (a server that tells its time: both ways), `none`.
        passive: whether the round trips of the user's own connections count as well.
        reflectors: who answers the probes.
        framing: how it counts packets.
        sleeps: while these last nobody looks after it, as if the machine slept.
        learned: for `auto`: what an earlier run learned of the line, with which this one begins, as after a
            restart.
    """

    control: Literal["auto", "cake-autorate", "fixed"]
    mode: Literal["ping", "bandwidth"] = "ping"
    directions: Direction | list[Direction] = ["up", "down"]
    up: RatesSpec = RatesSpec()
    down: RatesSpec = RatesSpec()
    probe: Literal["icmp", "udp", "none"] = "icmp"
    passive: bool = True
    reflectors: list[ReflectorSpec] = [
        ReflectorSpec.model_validate({"delay": "1ms"}),
        ReflectorSpec.model_validate({"delay": "3ms"}),
        ReflectorSpec.model_validate({"delay": "6ms"}),
    ]
    framing: Literal["none", "ethernet", "ptm", "atm", "docsis"] | FramingSpec = "ethernet"
    sleeps: list[SpanSpec] = []
    learned: LearnedSpec | None = None


class BesideSpec(Spec):
    """A test that runs beside the scenario's: its loads, its probes and its speed tests.

    Attributes:
        test: the name of a shipped test, a path to a test file, or the test itself.
        name: name that stands before those of its flows and probes; the test's name if nothing is said,
            numbered where several tests have it.
        start: when its load begins, counted from the start of the load of the scenario's test.
        length: how long its load lasts; as long as the test says if nothing is said, but not longer than that
            of the scenario's test.
        parameters: values of the test's parameters.
    """

    test: str | TestSpec
    name: str | None = None
    start: Nanoseconds = 0
    length: PositiveNanoseconds | None = None
    parameters: dict[str, int] = {}


class PhaseLengthsSpec(Spec):
    """Lengths of phases, in place of those of a test.

    Attributes:
        idle: length of the phase before the load.
        load: length of the phase with the load.
        cooldown: length of the phase after the load.
    """

    idle: Nanoseconds | None = None
    load: Nanoseconds | None = None
    cooldown: Nanoseconds | None = None


class SamplingSpec(Spec):
    """How often what is sampled; `0s` switches the table off, but for pings, which a test has or has not.

    Attributes:
        ping: time between two pings of a train that says nothing itself.
        throughput: time between two samples of the throughput.
        tcp: time between two samples of the state of TCP.
        queue: time between two samples of the queues.
    """

    ping: PositiveNanoseconds = 10_000_000
    throughput: Nanoseconds = 100_000_000
    tcp: Nanoseconds = 100_000_000
    queue: Nanoseconds = 100_000_000


class ScenarioSpec(Spec):
    """A scenario: a test on a link, with one or several queue specs to compare.

    Attributes:
        name: name of the scenario; made of test and link if nothing is said.
        test: the name of a shipped test, a path to a test file, or the test itself.
        link: the name of a shipped link, a path to a link file, or the link itself; several to compare them.
        queue: queue specs in `tc` syntax, one or several; each makes a run. `default` is the link's own.
        queue_up: queue specs for the upload only, in place of `queue`; one or several.
        queue_down: queue specs for the download only, in place of `queue`; one or several.
        cc: congestion control of all loads, in place of that of `tcp`; several to compare them.
        shaper: shapers to compare, one or several, each with each queue spec, which then is that of the
            shaper: `none`, a control such as `auto`, with words such as `auto mode bandwidth`, or the shaper
            itself.
        seed: seed of the first run.
        repeat: runs for each configuration, each with the next seed.
        parameters: values of the test's parameters.
        methods: speed tests beside those of the test.
        beside: tests that run beside it, each from its own start on; then all flows and probes have the names
            of their tests before their own.
        phases: lengths of phases in place of the test's.
        tcp: TCP of all loads, where a load says nothing itself.
        sampling: how often what is sampled.
        start_jitter: each load starts up to so much later, each train of pings up to a period later, drawn
            from the seed: without it loads that start together stay in lock-step.
        ip: internet protocol.
        assertions: assertions on every run, such as `latency.p99 < latency.median[idle] + 10ms`.
        note: free text about the runs, which their records keep.
        tags: words by which the records are found again.
    """

    name: str | None = None
    test: str | TestSpec
    link: str | LinkSpec | list[str | LinkSpec]
    queue: str | list[str] = "default"
    queue_up: str | list[str] | None = None
    queue_down: str | list[str] | None = None
    cc: str | list[str] | None = None
    shaper: str | ShaperSpec | list[str | ShaperSpec] = "none"
    seed: int = 1
    repeat: int = 1
    parameters: dict[str, int] = {}
    methods: list[MethodSpec] = []
    beside: list[BesideSpec] = []
    phases: PhaseLengthsSpec = PhaseLengthsSpec()
    tcp: TcpSpec = TcpSpec()
    sampling: SamplingSpec = SamplingSpec()
    start_jitter: Nanoseconds = 50_000_000
    ip: Literal[4, 6] = 4
    assertions: Annotated[list[str], Field(alias="assert")] = []
    note: str = ""
    tags: list[str] = []


class NoteSpec(Spec):
    """Notes of the user on runs.

    Attributes:
        note: free text.
        tags: words by which runs are found again.
    """

    note: str = ""
    tags: list[str] = []
