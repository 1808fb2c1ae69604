"""How a run is repeated: the command, if the names of the manifest lead to the same run, else Python."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirlab.errors import WeirError
from weirlab.record.manifest import usual_datapath
from weirlab.scenario import ScenarioSpec, check, load_test, resolve

__all__ = ["Repeat", "commands", "repeat_of"]

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weirlab.record import Record


@dataclass(frozen=True)
class Repeat:
    """How to repeat a run.

    Attributes:
        text: a command line, or a few lines of Python.
        says: what it does and does not repeat, in a sentence.
    """

    text: str
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
        return Repeat(
            "weir test HOST" if "ramps" in manifest.extra else "weir run TEST --world net --host HOST",
            "It measured a real path, whose server the record does not name: HOST stands for it.",
        )
    words = _words(record)
    same = (
        "the same samples"
        if manifest.world == "sim"
        else "the same configuration; a live world has other samples"
    )
    if words is not None:
        return Repeat(commands(words), f"It gives {same}.")
    # Earlier versions took a queue for which the link has no place, and did without it.
    queue = f"queue={manifest.queue!r}, " if _has_place(manifest.link) else ""
    words_of_run = f"{queue}seed={manifest.seed}, world={manifest.world!r}"
    lines = [
        "import weirlab",
        "",
        f"manifest = weirlab.open_record({(record.path.name or 'record')!r}).manifest",
        f"weirlab.run(manifest.test, link=manifest.link, {words_of_run})",
    ]
    return Repeat(
        "\n".join(lines),
        "No command names this configuration, since test, link or TCP are not those that are shipped: "
        "Python takes test and link from the record.",
    )


def _has_place(link: Mapping[str, Any]) -> bool:
    """Whether a hop of a link, as a manifest has it, takes the user's queue."""
    hops = [hop for way in ("up", "down") for hop in link.get(way) or ()]
    return any(isinstance(hop, dict) and hop.get("place") == "queue" for hop in hops)


def commands(words: Mapping[str, Any], out: str | None = None) -> str:
    """The command line that runs a scenario of these words (keys of a scenario file), quoted for a shell."""
    line = ["weir", "run", str(words["test"])]
    for key, option in (("link", "--link"), ("queue", "--queue"), ("shaper", "--shaper"), ("cc", "--cc")):
        for value in words.get(key, []):
            line += [option, str(value)]
    for name, value in words.get("phases", {}).items():
        line += [f"--{name}", str(value)]
    for key in ("seed", "repeat", "ip"):
        if words.get(key) is not None:
            line += [f"--{key}", str(words[key])]
    if words.get("world") not in (None, "sim"):
        line += ["--world", str(words["world"])]
    if words.get("datapath") not in (None, usual_datapath(words.get("world"))):
        line += ["--datapath", str(words["datapath"])]
    if out is not None:
        line += ["--out", out]
    return shlex.join(line)


def _words(record: Record) -> dict[str, Any] | None:
    """Keys of a scenario that resolves to the very run of the record; None if none is found."""
    manifest = record.manifest
    try:
        shipped = load_test(str(manifest.test["name"])).model_dump(mode="json")
        words: dict[str, Any] = {
            "test": manifest.test["name"],
            "link": [manifest.link["name"]],
            "queue": [manifest.queue],
            "seed": manifest.seed,
        }
        phases = {
            name: value
            for name, value in manifest.test["phases"].items()
            if value is not None and value != shipped["phases"].get(name)
        }
        if phases:
            words["phases"] = phases
        controls = {flow["tcp"]["congestion_control"] for flow in manifest.scenario["flows"]}
        for cc in (None, *sorted(controls)):
            tried = words if cc is None else words | {"cc": [cc]}
            runs = resolve(check(ScenarioSpec, tried, "the record's names"))
            if len(runs) == 1 and runs[0].scenario == manifest.scenario:
                return tried | {"world": manifest.world, "datapath": manifest.datapath}
    except (WeirError, KeyError, TypeError, AttributeError):
        # Names that are unknown here, or a manifest of another version: Python takes what the record has.
        return None
    return None
