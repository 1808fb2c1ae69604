"""In what runs that are set beside each other differ, in words: whatever differs, and nothing else.

Resolved scenarios are compared key by key. What follows from a coarser difference is not said again: of two
links their titles are named and not each of their rates, of two queue specs what the user wrote.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weirlab.errors import counted
from weirlab.record.manifest import usual_datapath
from weirlab.scenario.plain import DEFAULT_QUEUE, queue_words
from weirlab.scenario.recordings import calling, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from weirlab.record.reader import Record


def differences(records: Sequence[Record]) -> list[str]:
    """For each record in what it differs from the others, the seed aside; empty texts if nothing differs.

    Link, queue spec, test, world, version and whether a run is whole come first, then the rest of the
    scenario: congestion control, ECN, phases, probes, single values of the path.
    """
    if len(records) == 1:
        return [""]
    coarse = [name for name, aspect in ASPECTS.items() if len({aspect(record) for record in records}) > 1]
    parts = [[ASPECTS[name](record) for name in coarse] for record in records]
    names = names_of(record.manifest.recordings for record in records)
    facts = [_facts(as_asked(record), names) for record in records]
    _add(parts, facts, coarse, by_name=False)
    if len({tuple(words) for words in parts}) < len({json.dumps(_values(one)) for one in facts}):
        _add(parts, facts, coarse, by_name=True)
    return [" · ".join(filter(None, words)) for words in parts]


WITH_BOTH = "with both at once"
"""When a test of a line loads both directions, after each by itself."""

WHEN = {"download": "during the download", "upload": "during the upload", "load": WITH_BOTH}
"""The phases of a test of a line that have load, in order, in words."""

DURING = "during the load"
"""When the load of any test was, but of one of a line."""


def finds_its_loads(record: Record) -> bool:
    """Whether its test began as many loads as filled the line, as `weir test` does."""
    return bool(record.manifest.extra.get("ramps"))


def is_beside_no_scenario(record: Record) -> bool:
    """Whether the record is of a foreign speed test that ran for itself over a real path (`weir test`)."""
    manifest = record.manifest
    alone = manifest.world == "net" and not manifest.scenario.get("methods") and not finds_its_loads(record)
    return alone and record.columns("method").height > 0


def is_of_programs(record: Record) -> bool:
    """Whether the record is of programs in a lab, whose load lasted for as long as they did."""
    manifest = record.manifest
    return manifest.world == "lab" and not manifest.scenario["flows"] and "connections" in manifest.extra


def load_phase(record: Record) -> str:
    """The phase of which figures under load are: `load`, if there is one.

    Of a test of a line that was cut short before it, it is the last one with load that was reached, if any.
    """
    if not finds_its_loads(record):
        return "load"
    return next((name for name in reversed(WHEN) if record.phase(name) is not None), "load")


def load_of(record: Record) -> str:
    """When the load was: of a test of a line, which loads each direction by itself before, both at once.

    Of one that was cut short before that, the direction by itself that it reached last.
    """
    name = load_phase(record)
    return WHEN[name] if finds_its_loads(record) and record.phase(name) is not None else DURING


def common_load(whens: Iterable[str]) -> str:
    """When the load was of which words on several runs tell: the part of tests of a line that all are of."""
    different = set(whens)
    return different.pop() if len(different) == 1 else DURING


def is_of_a_real_line(record: Record) -> bool:
    """Whether `weir test` made it, of a real line: what was changed there between two of them nobody told."""
    return finds_its_loads(record) or is_beside_no_scenario(record)


def as_asked(record: Record) -> Mapping[str, Any]:
    """The scenario as it was asked for: without loads and lengths that its test found by itself.

    A recording is called by the digest of its contents where the record has that, wherever the file lay.
    """
    scenario: dict[str, Any] = calling(record.manifest.scenario, record.manifest.recordings)
    if finds_its_loads(record):
        return scenario | {"flows": []}
    whole = is_beside_no_scenario(record) or is_of_programs(record)
    return _of_any_length(scenario) if whole else scenario


def remark(record: Record) -> str:
    """The note of a test of a real line, of which a record tells nothing else; of others nothing."""
    return record.manifest.note if is_of_a_real_line(record) else ""


def speed_test_name(record: Record) -> str:
    """Which foreign speed test ran beside pings over a real path, where the title says nothing of it."""
    if not is_beside_no_scenario(record) or not record.manifest.scenario["probes"]:
        return ""
    return f"speed test {', '.join(row['kind'] for row in record.columns('method').rows())}"


def queue_name(record: Record) -> str:
    """The queue spec, for people; a real path has no link whose queue could be meant."""
    if record.manifest.world in {"net", "imported"} and record.label == DEFAULT_QUEUE:
        return "the path's own queues"
    return queue_words(record.label)


def world_name(record: Record) -> str:
    """The world, and in it who has the queues where that is not the usual one."""
    return place_name(record.manifest.world, record.manifest.datapath)


def place_name(world: str, datapath: str | None) -> str:
    """The same of a world with that datapath; None is the usual one, and that of a world without any."""
    whose = "Weir" if datapath == "userspace" else datapath
    name = f"world {world}"
    return name if datapath in (None, usual_datapath(world)) else f"{name}, {whose}'s queues"


def configuration_name(record: Record) -> str:
    """Link and queue of a record, and what was asked of the TCP of all its loads."""
    words = record.manifest.words or {}
    tcp = words.get("tcp")
    tcp = tcp if isinstance(tcp, dict) else {}
    control = words.get("cc") or tcp.get("congestion_control")
    asked = [*([str(control)] if control else []), *(["ECN"] if tcp.get("ecn") is True else [])]
    return "; ".join([record.manifest.configuration, *([", ".join(asked)] if asked else [])])


def version(record: Record) -> str:
    """Version of the Weir that made the record."""
    return f"Weir {record.manifest.versions.get('weir', '?')}"


def wholeness(record: Record) -> str:
    """Whether the run came to its end."""
    return "complete" if record.manifest.complete else "cut short"


@dataclass(frozen=True)
class _Fact:
    """A value of a scenario.

    Attributes:
        value: the value as JSON, by which it is compared.
        words: what it is and which value it has.
        follows: aspects of which it may be a mere consequence.
        by_name: whether it is of one flow, probe or speed test, where another fact is of all together.
        part_of: the key of the fact of all together, with which it is told if both differ.
        in_full: the words of such a fact with those of its parts.
    """

    value: str
    words: str
    follows: tuple[str, ...] = ()
    by_name: bool = False
    part_of: str | None = None
    in_full: str = ""


_Facts = dict[str, _Fact]


def _of_any_length(scenario: dict[str, Any]) -> dict[str, Any]:
    """A scenario that went on until its speed test or program was over: as long as that took."""
    phases = [one | {"end_ns": None} if one["name"] == "load" else one for one in scenario["phases"]]
    probes = [one | {"stop_ns": None} for one in scenario["probes"]]
    return scenario | {"phases": phases, "probes": probes, "duration_ns": None}


def _add(parts: list[list[str]], facts: Sequence[_Facts], coarse: Sequence[str], *, by_name: bool) -> None:
    """Adds the words of facts that differ and do not follow from `coarse` aspects, which stand in `parts`."""
    said = [words[: len(coarse)] for words in parts]
    told: set[str] = set()
    for key in dict.fromkeys(key for one in facts for key in one):
        having = _having(key, facts)
        first = having[0][1]
        if first.by_name != by_name or first.part_of in told or not _differ(having):
            continue
        causes = [number for number, name in enumerate(coarse) if name in first.follows]
        if causes and _is_consequence(
            [(tuple(said[at][n] for n in causes), fact.value) for at, fact in having]
        ):
            continue
        told.add(key)
        of_it = dict.fromkeys(name for one in facts for name, fact in one.items() if fact.part_of == key)
        in_full = any(_differ(_having(name, facts)) for name in of_it)
        for place, fact in having:
            parts[place].append(fact.in_full if in_full else fact.words)


def _having(key: str, facts: Sequence[_Facts]) -> list[tuple[int, _Fact]]:
    """The fact of that key of each that has one, with its place."""
    return [(place, one[key]) for place, one in enumerate(facts) if key in one]


def _differ(having: Sequence[tuple[int, _Fact]]) -> bool:
    return len({fact.value for _, fact in having}) > 1


def _is_consequence(pairs: Iterable[tuple[tuple[str, ...], str]]) -> bool:
    """Whether each cause has one value."""
    found: dict[tuple[str, ...], str] = {}
    return all(found.setdefault(cause, value) == value for cause, value in pairs)


def _values(facts: _Facts) -> list[tuple[str, str]]:
    return [(key, fact.value) for key, fact in facts.items()]


def _facts(scenario: Mapping[str, Any], names: Mapping[str, str]) -> _Facts:
    """Everything that a scenario says, by key, in the order in which it is told.

    Args:
        scenario: the scenario.
        names: what recordings are called, by what the scenario calls them.
    """
    load = next((one for one in scenario["phases"] if one["name"] == "load"), None)
    window = (load["start_ns"], load["end_ns"]) if load else (0, scenario["duration_ns"])
    whole = (0, scenario["duration_ns"])
    found: _Facts = {}
    for kind, span in (("flows", window), ("methods", window), ("probes", whole)):
        things = [(one["name"], _flat(_since(one, span))) for one in scenario.get(kind, [])]
        found.update(_of_things(kind, things))
    found.update(_of_counts(scenario))
    found.update(_of_phases(scenario["phases"]))
    for table, period in scenario.get("sampling", {}).items():
        name = table.removesuffix("_ns")
        found[f"sampling {name}"] = _Fact(json.dumps(period), f"{name} every {_time(period)}")
    for key, word, follows in WHOLE:
        if key in scenario:
            found[key] = _Fact(json.dumps(scenario[key]), f"{word}{_worded(key, scenario[key])}", follows)
    found.update(_of_path(scenario["path"], names))
    for kind, follows in (("hosts", ("test", "queue")), ("tunnels", ("test",))):
        found[kind] = _names(kind, scenario.get(kind, []), follows)
        for one in scenario.get(kind, []):
            for key, value in _flat({name: of for name, of in one.items() if name != "name"}):
                text = f"{kind.removesuffix('s')} {one['name']} {_phrase(key, value)}"
                found[f"{kind} {one['name']} {key}"] = _Fact(json.dumps(value), text, follows)
    for key, value in _flat(scenario.get("shaper") or {}):
        found[f"shaper {key}"] = _Fact(json.dumps(value), f"shaper {_phrase(key, value)}", ("queue",))
    return found


def _since(thing: Mapping[str, Any], window: tuple[int, int]) -> dict[str, Any]:
    """A flow or probe whose times are none where they are the usual ones, so that phases may move."""
    moved = {name: value for name, value in thing.items() if name not in {"name", "direction"}}
    for key, usual in zip(("start_ns", "stop_ns"), window, strict=True):
        if key in moved:
            moved[key] = None if moved[key] == usual else moved[key]
    return moved


def _of_things(kind: str, things: Sequence[tuple[str, list[tuple[str, Any]]]]) -> Iterator[tuple[str, _Fact]]:
    """The settings of flows, speed tests or probes: of all together, and of each by itself."""
    together: dict[str, dict[str, str]] = {}
    apart: _Facts = {}
    for name, settings in things:
        for key, value in settings:
            follows = () if key.startswith("tcp.") or key in OF_THE_COMMAND else ("test",)
            phrase = _phrase(key, value)
            together.setdefault(key, {}).setdefault(json.dumps(value), phrase)
            fact = _Fact(json.dumps(value), f"{name} {phrase}", follows, by_name=True)
            apart[f"{kind} {name} {key}"] = fact
    for key, phrases in together.items():
        follows = () if key.startswith("tcp.") or key in OF_THE_COMMAND else ("test",)
        words = "+".join(phrases.values())
        yield f"{kind} {key}", _Fact(json.dumps(list(phrases)), words, follows)
    yield from apart.items()


def _of_counts(scenario: Mapping[str, Any]) -> Iterator[tuple[str, _Fact]]:
    for direction, word in (("down", "download"), ("up", "upload")):
        count = sum(flow["direction"] == direction for flow in scenario["flows"])
        yield f"flows {direction}", _Fact(json.dumps(count), counted(count, word), ("test",))
    for kind in ("methods", "probes"):
        yield f"{kind} by name", _names(kind, scenario.get(kind, []), ("test",))


def _of_phases(phases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, _Fact]]:
    """The phases, and the lengths of those that were asked to have one."""
    lengths = {one["name"]: one["end_ns"] - one["start_ns"] for one in phases if one["end_ns"] is not None}
    words = {name: f"{name} {_time(length)}" for name, length in lengths.items()}
    in_full = f"phases {', '.join(words.get(one['name'], one['name']) for one in phases)}"
    yield "phases", replace(_names("phases", phases, ("test",)), in_full=in_full)
    for name, length in lengths.items():
        yield f"phase {name}", _Fact(json.dumps(length), words[name], part_of="phases")


def _of_path(
    path: Mapping[str, Sequence[Mapping[str, Any]]], names: Mapping[str, str]
) -> Iterator[tuple[str, _Fact]]:
    for direction, hops in path.items():
        yield f"path {direction}", _names(f"hops {direction}", hops, ("link", "queue"))
        for hop in hops:
            for key, value in hop.items():
                if key in DERIVED:
                    continue
                shown = calling(value, names)
                said = _changes(shown) if key == "changes" else _phrase(key, shown)
                words = f"{direction} {hop['name']} {said}"
                yield (
                    f"path {direction} {hop['name']} {key}",
                    _Fact(json.dumps(value), words, ("link", "queue")),
                )


def _changes(changes: Sequence[Mapping[str, Any]]) -> str:
    """What happens to a line, the instants rounded to milliseconds; of many the first."""
    by_instant: dict[int, list[str]] = {}
    for one in changes:
        by_instant.setdefault(one["at_ns"], []).append(_change(one["to"]))
    if not by_instant:
        return "unchanged"
    told = [f"at {_rounded(at)} {', '.join(words)}" for at, words in by_instant.items()]
    if len(told) > MAX_INSTANTS:
        left = len(told) - MAX_INSTANTS + 1
        told[MAX_INSTANTS - 1 :] = [f"{left} more times until {_rounded(max(by_instant))}"]
    return f"changes {'; '.join(told)}"


def _change(to: str | Mapping[str, Any]) -> str:
    """One change of a line: `down`, `rate 5 Mbit/s`, `delay 40 ms`, `loss 1 %`."""
    if isinstance(to, str):
        return to
    loss = to.get("loss", {})
    if loss.get("model") == "random":
        return f"loss {100 * loss['probability']:g} %" if loss["probability"] else "no loss"
    return " ".join(_phrase(key, value) for key, value in to.items())


def _rounded(at_ns: int) -> str:
    return _time(at_ns if at_ns < 10**6 else round(at_ns, -6))


def _names(kind: str, things: Iterable[Mapping[str, Any]], follows: tuple[str, ...]) -> _Fact:
    names = [one["name"] for one in things]
    return _Fact(json.dumps(names), f"{kind} {', '.join(names)}" if names else f"no {kind}", follows)


def _flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Nested settings as one level, with dots in their names."""
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            found += _flat(value, f"{before}{name}.")
        else:
            found.append((f"{before}{name}", value))
    return found


def _phrase(key: str, value: Any) -> str:
    """A setting and its value: `bbr`, `ECN`, `no SACK`, `delay 5 ms`."""
    if value is None and key in THEMSELVES:
        return f"unknown {key.rpartition('.')[2].replace('_', ' ')}"
    if key in THEMSELVES or (key == "rate" and isinstance(value, dict)):
        return _worded(key, value)
    last = WORDS.get(key) or _without_unit(key.rpartition(".")[2]).replace("_", " ")
    if value is None and last in USUALLY:
        return f"usual {last}"
    if value is None or value == []:
        of_profile = key.startswith("tcp.") and key not in OFF_BY_DEFAULT
        return f"default {last}" if of_profile else f"no {last}"
    if isinstance(value, bool):
        return last if value else f"no {last}"
    return f"{last} {_worded(key, value)}"


def _worded(key: str, value: Any) -> str:
    """A value with its unit, which its key tells."""
    if isinstance(value, dict):
        return " ".join(_phrase(name, of) for name, of in _flat(value))
    if isinstance(value, list):
        return ", ".join(_worded(key, one) for one in value)
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return str(value)
    if key.endswith("_ns"):
        return _time(value)
    if key.endswith(("_bps", "bps")):
        return _in_units(value, (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3), ("bit/s", 1)))
    return f"{value} bytes" if key.endswith("bytes") else f"{value:g}"


def _time(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0 s"
    return _in_units(nanoseconds, (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)))


def _in_units(value: int, units: Sequence[tuple[str, int]]) -> str:
    """The value in the largest unit of which it is at least one, without loss."""
    name, factor = next((unit for unit in units if abs(value) >= unit[1]), units[-1])
    return f"{value / factor:.9f}".rstrip("0").rstrip(".") + f" {name}"


def _without_unit(name: str) -> str:
    for unit in ("_ns", "_bps", "_bytes"):
        name = name.removesuffix(unit)
    return "rate" if name == "bps" else name


ASPECTS: Mapping[str, Callable[[Record], str]] = {
    "note": remark,
    "queue": queue_name,
    "link": lambda record: str(record.manifest.link["title"]),
    "test": lambda record: record.manifest.title,
    "speed test": speed_test_name,
    "world": world_name,
    "version": version,
    "wholeness": wholeness,
}
"""In what records may differ as a whole, by name, in the order in which it is told."""

WORDS = {
    "tcp.overrides.ecn": "ECN",
    "tcp.overrides.sack": "SACK",
    "tcp.overrides.timestamps": "TCP timestamps",
    "tcp.overrides.delayed_ack": "delayed ACKs",
    "tcp.overrides.rto_min_ns": "minimum RTO",
    "tcp.profile": "TCP profile",
    "period_ns": "ping every",
    "client_congestion_control": "client",
    "tx_queue_len": "txqueuelen",
    "dscp": "DSCP",
    "ttl": "TTL",
    "tls": "TLS",
}
"""The field's names of settings that the scenario names otherwise."""

WHOLE: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("start_jitter_ns", "start jitter ", ()),
    ("ip_version", "IPv", ()),
    ("mtu_bytes", "MTU ", ("link",)),
    ("name", "test ", ("test",)),
)
"""Settings of a whole scenario: key, words in front of the value, of which aspects it may follow."""

THEMSELVES = frozenset({"tcp.congestion_control", "model"})
"""Settings whose values say by themselves what they are."""

OFF_BY_DEFAULT = frozenset({"tcp.overrides.ecn"})
"""Settings that every profile of TCP leaves off (crates/tcp/src/profile.rs)."""

OF_THE_COMMAND = frozenset({"period_ns", "client_congestion_control"})
"""Settings of flows and probes that a test seldom says, and the command line does."""

USUALLY = frozenset({"start", "stop"})
"""Times of flows and probes that are none where they are those of the load, or of the whole test."""

MAX_INSTANTS = 3
"""Instants at which a line changes that a name tells: one of a table's rows."""

DERIVED = frozenset({"name", "reference_rate_bps", "shaped"})
"""Keys of a hop whose values follow from the others."""
