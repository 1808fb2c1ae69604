"""How a run is repeated: the command, if the names of the manifest lead to the same run, else Python."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirlab.errors import WeirError
from weirlab.record.differences import finds_its_loads, is_beside_no_scenario
from weirlab.record.manifest import usual_datapath
from weirlab.scenario import DEFAULT_QUEUE, ScenarioSpec, check, resolve, shipped_links

__all__ = ["Repeat", "commands", "repeat_of"]

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weirlab.record import Manifest, Record
    from weirlab.scenario import ResolvedRun


@dataclass(frozen=True)
class Repeat:
    """How to repeat a run.

    Attributes:
        text: a command line, or a few lines of Python; None if the record does not say enough.
        says: what it does and does not repeat, in a sentence.
    """

    text: str | None
    says: str


def repeat_of(record: Record) -> Repeat:
    """How to repeat the run of `record`."""
    manifest = record.manifest
    if manifest.imported is not None:
        return Repeat(
            manifest.imported.file,
            f"It was measured by {manifest.imported.tool}: this is the file from which it was imported.",
        )
    if manifest.world == "net":
        return _over_a_real_path(record)
    if manifest.test.get("title") == PROGRAM_TITLE and not manifest.scenario["flows"]:
        return _program(manifest)
    same = (
        "the same samples"
        if manifest.world == "sim"
        else "the same configuration; a live world has other samples"
    )
    asked, run = _found(manifest)
    if asked is None or run is None:
        return Repeat(
            None,
            "It cannot be repeated from its record alone: an earlier version wrote it, or a recording that"
            " its link names is not here. Take the scenario of which it was made.",
        )
    named = {"test": manifest.test.get("name"), "link": manifest.link.get("name"), **asked}
    if _can_be_said(named) and _leads_to(manifest, named):
        words = named | {"seed": manifest.seed, "world": manifest.world, "datapath": manifest.datapath}
        return Repeat(commands(words), f"It gives {same}.")
    lines = [
        "import weirlab",
        "",
        f"manifest = weirlab.open_record({(record.path.name or 'record')!r}).manifest",
        f"weirlab.run({', '.join(_arguments(manifest, asked))})",
    ]
    recordings = ", ".join(f"`{name}`" for name in run.traces)
    return Repeat(
        "\n".join(lines),
        "No single command names this configuration: Python takes test and link from the record. It gives "
        + (f"{same}, if what is in {recordings} here is what was there then." if recordings else f"{same}."),
    )


def _over_a_real_path(record: Record) -> Repeat:
    """How what measured a real path is repeated."""
    manifest = record.manifest
    hosts = _servers(manifest)
    if finds_its_loads(record):
        return _own_test(manifest, hosts)
    if is_beside_no_scenario(record):
        kind = record.columns("method").rows()[0]["kind"]
        return _foreign_test(hosts, kind, truth=bool(manifest.scenario["probes"]))
    if manifest.test.get("title") == TEST_TITLE:
        # One that ended before it had begun a load, or before the foreign test had a result.
        is_own = any(phase["name"] == "download" for phase in manifest.scenario["phases"])
        return _own_test(manifest, hosts) if is_own else _foreign_test(hosts, "METHOD", truth=True)
    there = [word for host in hosts for word in ("--host", host)]
    asked, _ = _found(manifest)
    named = {"test": manifest.test.get("name"), "link": manifest.link.get("name"), **(asked or {})}
    said = asked is not None and _can_be_said(named)
    if said and _leads_to(manifest, named | {"link": manifest.link}):
        words = named | {"link": None, "seed": manifest.seed, "world": manifest.world}
        return Repeat(f"{commands(words)} {shlex.join(there)}", _says(hosts))
    stands = " TEST stands for its scenario, which no name here leads to."
    return Repeat(shlex.join(["weir", "run", "TEST", "--world", "net", *there]), _says(hosts) + stands)


def _own_test(manifest: Manifest, hosts: Sequence[str]) -> Repeat:
    """The command of Weir's own test, with all that it was asked for."""
    plan = manifest.extra.get("plan")
    phases = manifest.test.get("phases", {})
    # Records of before have of it what their test has.
    known = plan if isinstance(plan, dict) else phases
    asked = [key for key in (_OF_A_TEST if known is plan else ("idle", "load")) if key in known]
    options = [word for key in asked for word in (f"--{key.replace('_', '-')}", str(known[key]))]
    seed = [] if manifest.seed is None else ["--seed", str(manifest.seed)]
    locate = ["--locate"] if manifest.routers else []
    text = shlex.join(["weir", "test", *hosts, *options, *seed, *locate])
    missing = "" if known is plan else " An earlier version wrote the record: it has no other options of it."
    return Repeat(text, _says(hosts) + missing)


def _foreign_test(hosts: Sequence[str], kind: str, *, truth: bool) -> Repeat:
    """The command of a foreign speed test."""
    text = shlex.join(["weir", "test", *hosts, "--method", kind, *(["--truth"] if truth else [])])
    method = " METHOD stands for the speed test, of which there is no result." if kind == "METHOD" else ""
    return Repeat(text, f"{_says(hosts)} Nor does it tell whether the address began with https://.{method}")


def _program(manifest: Manifest) -> Repeat:
    """The command of `weir lab exec`, as far as the record tells: its program is in no record."""
    routes = [route["name"] for route in manifest.scenario.get("routes", [])]
    asked = {"queue": manifest.queue} if manifest.words is None else dict(manifest.words)
    if routes:
        joined = str(manifest.link["name"]).split("+")
        links = joined if len(joined) == len(routes) else [""] * len(routes)
        names = [name if name in shipped_links() else _LINK for name in links]
        line = [word for both in zip(routes, names, strict=True) for word in ("--path", "=".join(both))]
        # Of several paths the words are those of the first.
        asked = {key: value for key, value in asked.items() if key == "ip"}
        says = "" if manifest.queue == DEFAULT_QUEUE else f" The queues of its paths were: {manifest.queue}."
    else:
        names = [str(manifest.link["name"])]
        run = _resolved(manifest, {"test": manifest.test, "link": names[0], **asked})
        if run is None or _unchanged(run.scenario) != _unchanged(manifest.scenario):
            names = [_LINK]
        line, says = ["--link", *names], ""
    if _LINK in names:
        says += f" {_LINK} stands for a link that no name here leads to."
    if _is_changed(manifest, asked):
        says += " The line was changed meanwhile (weir lab set): the scenario below has when and how."
    options = [*line, *_options({key: asked[key] for key in _OF_A_LINE if key in asked})]
    text = shlex.join(["weir", "lab", "exec", *options, "--seed", str(manifest.seed), "--", "PROGRAM"])
    return Repeat(
        text,
        "It gives the same line. PROGRAM stands for what ran there: the record does not tell it, nor what "
        f"ran at the server meanwhile (--server-command).{says}",
    )


def _unchanged(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """A resolved scenario as it is without changes of its hops."""
    path = {way: [{**hop, "changes": []} for hop in hops] for way, hops in scenario["path"].items()}
    return {**scenario, "path": path}


def _is_changed(manifest: Manifest, asked: Mapping[str, Any]) -> bool:
    """Whether hops changed in another way than their link says."""
    for way in ("up", "down"):
        hops = zip(manifest.link[way], manifest.scenario["path"][way], strict=True)
        if any(hop["changes"] and not of_link.get("changes") for of_link, hop in hops):
            return True
    run = _resolved(manifest, {"test": manifest.test, "link": manifest.link, **asked})
    if run is None or _unchanged(run.scenario) != _unchanged(manifest.scenario):
        return False
    return bool(run.scenario != manifest.scenario)


def _servers(manifest: Manifest) -> list[str]:
    """The servers as they were named on the command line (`weirlab.worlds.net.path_to`)."""
    title = str(manifest.link.get("title", ""))
    named = title.removeprefix(PATH_TO).split(", ") if title.startswith(PATH_TO) else []
    return named if all(named) and named else [UNKNOWN]


def _says(hosts: Sequence[str]) -> str:
    stands = f" {UNKNOWN} stands for the server, which it does not name." if UNKNOWN in hosts else ""
    return (
        "It measures a real path again, which has other samples. The record does not tell whether a secret "
        f"was given (--auth) or any certificate believed (--no-verify).{stands}"
    )


def _found(manifest: Manifest) -> tuple[Mapping[str, Any] | None, ResolvedRun | None]:
    """The words that make this run of its test and link, and the run; None if they are not known."""
    for asked in _candidates(manifest):
        run = _leads_to(manifest, {"test": manifest.test, "link": manifest.link, **asked})
        if run is not None:
            return asked, run
    return None, None


def _candidates(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Words that may have made this run of its test and link: those of the record, if it has them."""
    if manifest.words is not None:
        yield manifest.words
        return
    # Earlier versions kept the queue, also one for which the link has no place, and did without it.
    # Lengths of phases and congestion control stand where they are used.
    phases = {key: value for key, value in manifest.test.get("phases", {}).items() if value is not None}
    flows = manifest.scenario["flows"]
    controls = sorted({flow["tcp"]["congestion_control"] for flow in flows if "tcp" in flow})
    for queue in ({"queue": manifest.queue}, {}):
        for cc in ({}, *({"cc": one} for one in controls)):
            yield {"phases": phases} | queue | cc


def _arguments(manifest: Manifest, asked: Mapping[str, Any]) -> Iterator[str]:
    yield from ("manifest.test", "link=manifest.link")
    if manifest.words is None:
        yield from (f"{key}={value!r}" for key, value in asked.items())
    yield from (f"seed={manifest.seed}", f"world={manifest.world!r}")
    if manifest.datapath not in {None, usual_datapath(manifest.world)}:
        yield f"datapath={manifest.datapath!r}"
    if manifest.words:
        yield "**manifest.words"


def _leads_to(manifest: Manifest, words: Mapping[str, Any]) -> ResolvedRun | None:
    """The run of a scenario of these words, if it is the very one of the manifest."""
    run = _resolved(manifest, words)
    return run if run is not None and run.scenario == manifest.scenario else None


def _resolved(manifest: Manifest, words: Mapping[str, Any]) -> ResolvedRun | None:
    """The run of a scenario of these words with the seed of the manifest, if they make one."""
    try:
        runs = resolve(check(ScenarioSpec, {**words, "seed": manifest.seed}, "the record's words"))
    except WeirError:
        # Names that are unknown here, or a manifest of another version.
        return None
    return runs[0] if len(runs) == 1 else None


def _can_be_said(words: Mapping[str, Any]) -> bool:
    """Whether `commands` says all of these words."""
    return (
        all(isinstance(words[key], str) for key in ("test", "link"))
        and all(isinstance(value, str) for value in _each(words.get("shaper")))
        and words.keys() <= {"test", "phases", "parameters", "tcp", "sampling", *_COMPARED, *_NUMBERS}
        and words.get("tcp", {}).keys() <= {"ecn", "sack"}
        and words.get("sampling", {}).keys() <= {"ping"}
    )


def _each(value: object) -> list[object]:
    """The values of a key that may have one or several, or none."""
    return value if isinstance(value, list) else [] if value is None else [value]


def commands(words: Mapping[str, Any], out: str | None = None) -> str:
    """The command line that runs a scenario of these words (keys of a scenario file), quoted for a shell."""
    return shlex.join(["weir", "run", str(words["test"]), *_options(words), *(["--out", out] if out else [])])


def _options(words: Mapping[str, Any]) -> Iterator[str]:
    for key in _COMPARED:
        for value in _each(words.get(key)):
            yield from (f"--{key.replace('_', '-')}", str(value))
    numbers = {key: words[key] for key in _NUMBERS if words.get(key) is not None}
    for name, value in (words.get("phases", {}) | words.get("sampling", {}) | numbers).items():
        yield from (f"--{name}", str(value))
    for name, value in words.get("parameters", {}).items():
        yield from ("--set", f"{name}={value}")
    for name, value in words.get("tcp", {}).items():
        yield f"--{name}" if value else f"--no-{name}"
    world = words.get("world") or "sim"
    if world != "sim":
        yield from ("--world", str(world))
    if words.get("datapath") not in (None, usual_datapath(world)):
        yield from ("--datapath", str(words["datapath"]))


PATH_TO = "path to "
"""How the title of what stands in place of a link begins, where a real path was measured."""

UNKNOWN = "HOST"
"""What stands in a command for a server that the record does not name."""

TEST_TITLE = "Test of the path to a server"
"""What `weir test` calls its test (weirlab.net.plan)."""

PROGRAM_TITLE = "A program on the line"
"""What `weir lab exec` calls its test (weirlab.cli.lab_lines)."""

_LINK = "LINK"
"""What stands in a command for a link that the record does not name."""

_OF_A_LINE = ("queue", "queue_up", "queue_down", "ip")
"""Keys of a scenario file which options of `weir lab exec` say."""

_OF_A_TEST = ("idle", "load", "ping", "max_flows", "cc")
"""Options of `weir test` that its plan has (weirlab.net.plan)."""

_COMPARED = ("link", "queue", "queue_up", "queue_down", "shaper", "cc")
"""Keys of a scenario file with one value or several, which options of the same name say."""

_NUMBERS = ("seed", "repeat", "ip")
"""Keys with a number, which options of the same name say."""
