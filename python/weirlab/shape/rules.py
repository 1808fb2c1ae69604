"""Priority rules of a shaper: a TOML file, and the native module's rules."""

from __future__ import annotations

from importlib import resources
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from weirlab import _native, reading
from weirlab.errors import UsageError
from weirlab.forms import Model, check
from weirlab.scenario.units import RateWords, rate_bps

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

ClassName = Literal["bulk", "best-effort", "video", "voice"]


class RuleSpec(Model):
    """A rule: a packet of which all that is said holds is of that class; of a list, any.

    Attributes:
        name: for people.
        class_: the class of such packets.
        program: names of programs of this machine.
        cgroup: groups of processes, those within them included.
        protocol: `tcp`, `udp`, `icmp` or a number.
        port: ports of either end: a number, or `FIRST-LAST`.
        host: addresses or networks in which either end is.
        dscp: code points that the packet carries: a name or a number.
        acks: nothing but an acknowledgement of TCP.
        source: where the numbers are from.
    """

    name: str
    class_: ClassName = Field(alias="class")
    program: list[str] = Field(default_factory=list)
    cgroup: list[str] = Field(default_factory=list)
    protocol: list[str | int] = Field(default_factory=list)
    port: list[str | int] = Field(default_factory=list)
    host: list[str] = Field(default_factory=list)
    dscp: list[str | int] = Field(default_factory=list)
    acks: bool = False
    source: str = ""


class CapSpec(Model):
    """Greatest rates of a class.

    Attributes:
        up_max, down_max: the greatest rate out of the device and into it, such as `2mbit`.
    """

    up_max: RateWords | None = None
    down_max: RateWords | None = None

    @model_validator(mode="before")
    @classmethod
    def _present_names(cls, written: object) -> object:
        for old, new in (("egress_max", "up_max"), ("ingress_max", "down_max")):
            if isinstance(written, dict) and old in written:
                raise ValueError(f"`{old}` has another name now: write `{new}`")
        return written


class RulesSpec(Model):
    """A file of rules.

    Attributes:
        rule: the rules, of which the first that holds counts.
        class_: greatest rates of classes.
        mark: whether the class' code point is written into packets.
    """

    rule: list[RuleSpec] = Field(default_factory=list)
    class_: dict[ClassName, CapSpec] = Field(default_factory=dict, alias="class")
    mark: bool = False


def shipped_rules() -> list[str]:
    """The names of the shipped lists."""
    return sorted(file.name.removesuffix(".toml") for file in _folder().iterdir())


def rules_text(name: str) -> str:
    """The text of the shipped list of that name, or of the file.

    Raises:
        UsageError: if there is neither.
    """
    if name in shipped_rules():
        return (_folder() / f"{name}.toml").read_text(encoding="utf-8")
    try:
        return reading.read_text(Path(name), reading.MAX_TOML_BYTES)
    except reading.Unreadable as why:
        shipped = ", ".join(f"`{one}`" for one in shipped_rules())
        raise UsageError(
            f"rules `{name}` are neither shipped ({shipped}) nor a file that can be read: {why}"
        ) from why


def read_rules(name: str) -> dict[str, Any]:
    """The native module's rules, for a shipped list or a file.

    Raises:
        UsageError: if something is wrong: the file, the line or the rule by its number, and what is allowed.
    """
    text = rules_text(name)
    try:
        said = reading.parse_toml(text)
    except reading.Unreadable as error:
        raise UsageError(f"{name}: {error}") from error
    spec = check(RulesSpec, said, name, text=text)
    caps: list[list[int | None]] = [[None] * len(CLASSES), [None] * len(CLASSES)]
    for class_name, cap in spec.class_.items():
        for side, rate in enumerate((cap.up_max, cap.down_max)):
            caps[side][CLASSES.index(class_name)] = _cap(name, class_name, rate)
    rules = [
        _rule(f"{name}: {_numbered(number, rule.name)}", rule) for number, rule in enumerate(spec.rule, 1)
    ]
    return {"rules": rules, "caps_bps": caps, "mark": spec.mark}


def _folder() -> Traversable:
    return resources.files("weirlab") / "data" / "rules"


def _numbered(number: int, name: str) -> str:
    return f"rule {number} (`{name}`)"


def _cap(file: str, class_name: str, rate: str | None) -> int | None:
    if rate is None:
        return None
    try:
        bps = rate_bps(rate)
    except ValueError as error:
        raise UsageError(f"{file}: class `{class_name}`: {error}") from error
    if bps < MIN_RATE_BPS:
        raise UsageError(f"{file}: class `{class_name}`: {rate}: write {MIN_RATE_BPS} bit/s or more")
    return bps


def _rule(where: str, rule: RuleSpec) -> dict[str, Any]:
    lists = (rule.program, rule.cgroup, rule.protocol, rule.port, rule.host, rule.dscp)
    if not any(lists) and not rule.acks:
        raise UsageError(
            f"{where} holds for every packet: write at least one of program, cgroup, protocol, port, host, "
            "dscp, acks"
        )
    return {
        "name": rule.name,
        "class": rule.class_,
        "programs": rule.program,
        "cgroups": rule.cgroup,
        "protocols": [_protocol(where, one) for one in rule.protocol],
        "ports": [_ports(where, one) for one in rule.port],
        "hosts": [_network(where, one) for one in rule.host],
        "dscps": [_dscp(where, one) for one in rule.dscp],
        "acks": rule.acks,
    }


def _protocol(where: str, said: str | int) -> int:
    if isinstance(said, str) and said in PROTOCOLS:
        return PROTOCOLS[said]
    if isinstance(said, int) and 0 <= said <= 255:
        return said
    raise UsageError(
        f"{where}: protocol `{said}`: write one of {', '.join(PROTOCOLS)}, or a number from 0 to 255"
    )


def _ports(where: str, said: str | int) -> tuple[int, int]:
    first, dash, last = (said, "", "") if isinstance(said, int) else said.partition("-")
    low = first if isinstance(first, int) else reading.whole(first, PORT_DIGITS)
    high = reading.whole(last, PORT_DIGITS) if dash else low
    if low is not None and high is not None and 0 < low <= high < 65536:
        return low, high
    raise UsageError(f"{where}: port `{said}`: write a number from 1 to 65535, or `FIRST-LAST`")


def _network(where: str, said: str) -> tuple[str, int]:
    try:
        network = ip_network(said, strict=False)
    except ValueError as error:
        raise UsageError(
            f"{where}: host `{said}`: write an address, or a network such as `192.0.2.0/24`"
        ) from error
    return str(network.network_address), network.prefixlen


def _dscp(where: str, said: str | int) -> int:
    if isinstance(said, int) and 0 <= said <= 63:
        return said
    if isinstance(said, str) and said.upper() in DSCPS:
        return DSCPS[said.upper()]
    raise UsageError(
        f"{where}: dscp `{said}`: write a name such as `EF`, `CS1` or `AF41`, or a number from 0 to 63"
    )


CLASSES: tuple[ClassName, ...] = ("bulk", "best-effort", "video", "voice")
"""As in crates/shape/src/rules.rs."""
PROTOCOLS = {"tcp": 6, "udp": 17, "icmp": 1, "icmpv6": 58}
DSCPS = (
    {"BE": 0, "LE": 1, "VA": 44, "EF": 46}
    | {f"CS{number}": number * 8 for number in range(8)}
    | {f"AF{row}{column}": row * 8 + column * 2 for row in range(1, 5) for column in range(1, 4)}
)
"""RFC 2474, 2597, 3246, 5865, 8622."""
PORT_DIGITS = 5
MIN_RATE_BPS = _native.bounds()["min_shaper_rate_bps"]
"""The least rate of any shaper."""
