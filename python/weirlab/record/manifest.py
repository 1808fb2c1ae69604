"""The manifest: under which circumstances a record came about."""

from __future__ import annotations

import os
import time
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from weirlab import _native
from weirlab.record.tables import NEWEST
from weirlab.scenario.plain import shipped_traces
from weirlab.scenario.recordings import digest_of, named

if TYPE_CHECKING:
    from dataclasses import Field

    from weirlab.scenario import ResolvedRun

_KindT = TypeVar("_KindT", "Written", "Imported", "Manifest")

SCHEMA = max(3, NEWEST)
"""Version of the record's format.

1 had no `tables`, `note`, `tags`; up to 2 some keys had other names (`upgraded`); a later one may have more
columns.
"""


@dataclass(frozen=True, kw_only=True)
class Written:
    """Counts and digest of a table's part files.

    Attributes:
        parts: number of part files.
        rows: rows in all of them.
        sha256: SHA-256 over the bytes of all part files in their order, in hexadecimal.
        extra: what else is told of it, by later versions of Weir.
    """

    parts: int
    rows: int
    sha256: str
    extra: dict[str, Any] = field(default_factory=dict)


class Fetched(TypedDict):
    """From when to when a probe that is no ping fetched something, such as web pages."""

    probe: int
    start_ns: int
    stop_ns: int


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The file of another tool that a record was made of.

    Attributes:
        tool: the tool that measured, such as `Flent`.
        tool_version: its version; None if the file does not tell it.
        format: version of the file's format.
        test: the tool's name of the test.
        file: the file's name.
        t0_ns: time 0 of the file in times of the record.
        losses_unknown: numbers of the probes of which the file does not tell what was lost, such as means
            over intervals.
        unnumbered: those of them that are single pings, whose numbers do not tell which were lost, or pages.
        fetched: of the probes that are no pings, when they fetched something.
        left_out: why the record does not hold a series of the file, by its name.
        is_measured: whether Weir measured what the file tells.
        metadata, series: what the file says of itself, and of each series.
        extra: what else is told of it, by later versions of Weir.
    """

    tool: str
    tool_version: str | None
    format: int
    test: str
    file: str
    t0_ns: int = 0
    losses_unknown: list[int] = field(default_factory=list)
    unnumbered: list[int] = field(default_factory=list)
    fetched: list[Fetched] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    is_measured: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    series: dict[str, dict[str, Any]] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def means(self) -> frozenset[int]:
        """Numbers of the probes whose pings are means over intervals."""
        return frozenset(self.losses_unknown) - frozenset(self.unnumbered)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The manifest of a record.

    Attributes:
        schema_version: version of the record's format.
        complete: whether the run came to its end.
        world: which world made it.
        seed: seed of the run; None of an imported one.
        queue: the queue spec as the user wrote it.
        title: the test's title.
        configuration: link and queue, for people.
        link: the link as resolved, with its source.
        test: the test as resolved.
        scenario: what the world was given.
        versions: of Weir, Python and the random number generator.
        host: name, kernel, processor of the machine.
        clock: what the times in the tables count.
        started_at: when the run started, UTC.
        offloads: what the machine joined or split behind the record's back.
        warnings: why the run should not be trusted, if anything.
        reached_ns: time of the run that was reached; None while it runs.
        events, packets: what it took.
        datapath: who had the queues and lines, `userspace` or `kernel`; of the worlds lab and kernel.
        device: how packets left and entered the kernel; live worlds only.
        emulator: how well a live data path did its work, over the whole run.
        tables: what was written of each table that has a row; None of a run that was killed, and in format 1.
        note: what the user wrote of the run.
        tags: words of the user's by which runs are found again.
        routers: numbers of the probes that routers on the way answer, and not the other end (`--locate`).
        probes_apart: numbers of the probes that are no pings, such as fetches of web pages beside pings.
        imported: which file of another tool it was made of; None of a run of Weir's own.
        words: the words of a scenario file that made this run of `test` and `link`, without its seed; None of
            an imported one, of a client's with several paths, and of records of earlier versions.
        recordings: digests of the recordings that `scenario` names and that are not shipped, by these names;
            none of records of earlier versions.
        extra: what else stands in the manifest: what only some worlds tell, or later versions of Weir.
    """

    schema_version: int
    complete: bool
    world: str
    seed: int | None
    queue: str
    title: str
    configuration: str
    link: dict[str, Any]
    test: dict[str, Any]
    scenario: dict[str, Any]
    versions: dict[str, str]
    host: dict[str, str]
    clock: str
    started_at: str
    offloads: str
    warnings: list[str]
    reached_ns: int | None = None
    events: int | None = None
    packets: int | None = None
    datapath: str | None = None
    device: str | None = None
    emulator: dict[str, float] | None = None
    tables: dict[str, Written] | None = None
    note: str = ""
    tags: list[str] = field(default_factory=list)
    routers: list[int] = field(default_factory=list)
    probes_apart: list[int] = field(default_factory=list)
    imported: Imported | None = None
    words: dict[str, Any] | None = None
    recordings: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether its writer has told how the run ended: of one that goes on, or was killed, nobody has."""
        return self.complete or self.tables is not None or self.reached_ns is not None

    @staticmethod
    def read(written: object) -> Manifest:
        """The manifest of which `written` are the keys and values, as JSON has them.

        Raises:
            ValueError: if a key is missing, here or where figures and charts look within it, or a value is of
                another type.
        """
        manifest = _read(Manifest, written, "")
        _value(_Scenario, manifest.scenario, "scenario")
        _value(_Named, manifest.link, "link")
        return manifest


# What whoever reads a record takes for granted: keys that every format has. They may stand beside others.


class _Named(TypedDict):
    name: str
    title: str


class _Sampling(TypedDict):
    throughput_ns: int
    # Of what files of other tools do not tell, `Record.interval_ns` says that it is missing.
    tcp_ns: NotRequired[int]
    queue_ns: NotRequired[int]


class _Phase(TypedDict):
    name: str
    start_ns: int
    end_ns: int


class _Change(TypedDict):
    at_ns: int
    to: str | dict[str, Any]


class _Rate(TypedDict):
    """Has one of these."""

    bps: NotRequired[int]
    trace: NotRequired[str]
    packets_per_second: NotRequired[int]


class _Hop(TypedDict):
    name: str
    queue: str
    rate: Literal["unlimited"] | _Rate
    delay_ns: int
    changes: NotRequired[list[_Change]]


class _Path(TypedDict):
    up: list[_Hop]
    down: list[_Hop]


class _Host(TypedDict):
    name: str


class _Flow(TypedDict):
    name: str
    direction: Literal["up", "down"]
    # Importers may write fractions.
    start_ns: float
    stop_ns: float
    host: NotRequired[int]


class _Probe(TypedDict):
    name: str
    kind: str
    host: NotRequired[int]
    dscp: int | None


class _Method(TypedDict):
    name: str
    host: NotRequired[int]


class _Scenario(TypedDict):
    name: str
    duration_ns: int
    sampling: _Sampling
    phases: list[_Phase]
    path: _Path
    hosts: list[_Host]
    flows: list[_Flow]
    probes: list[_Probe]
    methods: NotRequired[list[_Method]]
    ip_version: NotRequired[str]


_KINDS: dict[type[Any], dict[str, Any]] = {
    kind: {name: of for name, of in get_type_hints(kind).items() if name != "extra"}
    for kind in (Written, Imported, Manifest)
}
"""The types of the keys of each class."""


def _read(kind: type[_KindT], written: object, where: str) -> _KindT:
    """An object of a class of this module."""
    if not isinstance(written, dict):
        raise _unlike(kind, where, written)
    kinds = _KINDS[kind]
    said = {
        key: _value(kinds[key], value, _within(where, key)) for key, value in written.items() if key in kinds
    }
    missing = [one.name for one in fields(kind) if _is_needed(one) and one.name not in said]
    if missing:
        raise _missing(_within(where, missing[0]))
    return kind(**said, extra={key: value for key, value in written.items() if key not in kinds})


def _is_needed(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _value(kind: Any, value: Any, where: str) -> Any:
    """`value`, if it is of a type that a manifest declares.

    Raises:
        ValueError: if it is not.
    """
    if get_origin(kind) in (UnionType, Union):
        return _either(kind, value, where)
    if kind in (Written, Imported):
        return _read(kind, value, where)
    if is_typeddict(kind):
        return _with_keys(kind, value, where)
    inner, origin = get_args(kind), get_origin(kind) or kind
    if origin is list and isinstance(value, list):
        return [_value(inner[0], one, f"{where}[{number}]") for number, one in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        is_any = inner[1] is Any
        return (
            value if is_any else {key: _value(inner[1], one, f"{where}.{key}") for key, one in value.items()}
        )
    return _plain(kind, value, where)


def _plain(kind: Any, value: Any, where: str) -> Any:
    """`value`, if it is of a type that has none within."""
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise ValueError(f"`{where}` is {value}, which has more than 64 bits")
    fits = value in get_args(kind) if get_origin(kind) is Literal else type(value) is kind
    if fits or kind is Any or (kind is float and type(value) is int):
        return value
    raise _unlike(kind, where, value)


def _either(kind: Any, value: Any, where: str) -> Any:
    """`value`, if it is of one of several types."""
    if value is None and NoneType in get_args(kind):
        return None
    kinds = [one for one in get_args(kind) if one is not NoneType]
    fits = [one for one in kinds if type(value) is _type_of(one)] or kinds
    if len(fits) > 1:
        raise _unlike(kind, where, value)
    return _value(fits[0], value, where)


def _with_keys(kind: Any, value: Any, where: str) -> Any:
    """An object with the keys that `kind` declares, among others."""
    if not isinstance(value, dict):
        raise _unlike(kind, where, value)
    for key, (of, is_needed) in _keys(kind).items():
        if key in value:
            _value(of, value[key], _within(where, key))
        elif is_needed:
            raise _missing(_within(where, key))
    if kind is _Sampling:
        for key in _keys(kind).keys() & value.keys():
            if value[key] < 0:
                raise ValueError(f"`{_within(where, key)}` is {value[key]}: it should be 0 or more")
    if kind is _Rate and not _keys(kind).keys() & value.keys():
        raise ValueError(f"`{where}` should have one of {', '.join(_keys(kind))}")
    return value


def _type_of(kind: Any) -> type:
    """The type that a value of a kind has as JSON is read."""
    if get_origin(kind) is Literal:
        return type(get_args(kind)[0])
    return dict if is_typeddict(kind) else get_origin(kind) or kind


@cache
def _keys(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The keys that an object has, with their types and whether it has each."""
    told = get_type_hints(kind, include_extras=True)
    apart = {key for key, of in told.items() if get_origin(of) is NotRequired}
    return {key: (get_args(of)[0] if key in apart else of, key not in apart) for key, of in told.items()}


def _within(where: str, key: object) -> str:
    return f"{where}.{key}" if where else str(key)


def _missing(where: str) -> ValueError:
    return ValueError(f"`{where}` is missing")


def _unlike(kind: Any, where: str, value: object) -> ValueError:
    if not where:
        return ValueError("it is no object")
    if get_origin(kind) is Literal:
        said = " or ".join(f"`{one}`" for one in get_args(kind))
        return ValueError(f"`{where}` should be {said}, not {_told(value)}")
    kinds = get_args(kind) if get_origin(kind) in (UnionType, Union) else [kind]
    said = " or ".join(dict.fromkeys(_JSON.get(_type_of(one), "an object") for one in kinds))
    return ValueError(f"`{where}` should be {said}, not {_JSON[type(value)]}")


def _told(value: object) -> str:
    return f"`{value}`" if isinstance(value, str) else _JSON[type(value)]


_JSON: dict[type, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "a truth value",
    list: "a list",
    dict: "an object",
    NoneType: "null",
}
"""What JSON calls types; all others are objects."""


def usual_datapath(world: object) -> Literal["userspace", "kernel"]:
    """Who has the queues and lines of a world unless it is said: Weir's own process, or the kernel."""
    return "kernel" if world == "kernel" else "userspace"


def new_manifest(run: ResolvedRun, *, world: str, clock: str, offloads: str) -> dict[str, Any]:
    """The manifest of a run that starts."""
    import platform  # noqa: PLC0415 - who reads records needs it not

    return {
        "schema_version": SCHEMA,
        "world": world,
        "seed": run.seed,
        "queue": run.queue,
        "title": run.test_part.words["title"],
        "configuration": run.configuration,
        "link": run.link_part.words,
        "test": run.test_part.words,
        "scenario": run.scenario,
        "words": run.words,
        "versions": dict(_versions()),
        "host": {
            "name": platform.node(),
            "kernel": f"{platform.system()} {platform.release()}",
            "machine": platform.machine(),
            "processors": str(os.cpu_count()),
        },
        "clock": clock,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "offloads": offloads,
        "warnings": [],
        "note": run.note,
        "tags": list(run.tags),
        "recordings": _recordings(run),
    }


def _recordings(run: ResolvedRun) -> dict[str, str]:
    """Digests of the recordings of a run that are files of the user's, by their paths."""
    paths = dict.fromkeys(name for name in named(run.scenario) if name not in shipped_traces())
    return {path: digest_of(run.traces[path]) for path in paths}


@cache
def _versions() -> dict[str, str]:
    """Versions, which are the same for all runs of this process: to look them up takes long."""
    import platform  # noqa: PLC0415 - who reads records needs none

    return {
        "weir": _native.version(),
        "python": platform.python_version(),
        "rng": _native.rng_name(),
    }
