"""Words on the charts: headings, names of configurations and flows, numbers."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from weirlab.record.configurations import configurations, joined, numbered, shortened
from weirlab.record.differences import configuration_name, is_of_a_real_line, queue_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from weirlab.record import Record


def heading(records: Sequence[Record]) -> str:
    """The title of the test, or of the tests."""
    return joined((record.manifest.title for record in records), "tests")


def configuration_line(records: Sequence[Record]) -> str:
    """Link and configuration; of several how many there are, as the chart itself names them."""
    if len({configuration_name(record) for record in records}) == 1:
        return configuration_name(records[0])
    links = joined((record.manifest.link["title"] for record in records), "links")
    queues = list(dict.fromkeys(queue_name(record) for record in records))
    several = len(configurations(records))
    parts = [links, queues[0] if len(queues) == 1 else "", f"{several} configurations" if several > 1 else ""]
    return "; ".join(filter(None, parts))


def origin_line(records: Sequence[Record], runs: Sequence[int] = ()) -> str:
    """World and seeds, and whatever speaks against trusting the runs.

    Args:
        records: what is drawn.
        runs: how many runs there are of the configuration of each, if only one of them is drawn.
    """
    worlds = sorted({record.manifest.world for record in records})
    parts = [f"world {', '.join(worlds)}", _which(records, runs)]
    parts = [part for part in parts if part]
    if len(records) > 1:
        parts.insert(1, f"{len(records)} runs")
    cut = [record for record in records if not record.manifest.complete]
    if cut:
        whole = len(records) == 1
        reached = f"at {number(cut[0].reached_ns / 1e9)} s" if whole else f"for {len(cut)} of them"
        parts.append(f"cut short {reached}")
    warnings = list(dict.fromkeys(text for one in records for text in one.manifest.warnings))
    if warnings:
        more = f" (and {len(warnings) - 1} more)" if len(warnings) > 1 else ""
        parts.append(f"caution: {warnings[0]}{more}")
    return " · ".join(parts)


def when(records: Sequence[Record]) -> str:
    """The part of the runs that a chart shows, in words."""
    loads = [record.phase("load") is not None for record in records]
    if all(loads):
        return "during the load"
    return "during the load, or the whole run without one" if any(loads) else "over the whole run"


def versions(records: Sequence[Record]) -> str:
    """The versions of Weir that made the records, in words."""
    return "Weir " + ", ".join(sorted({one.manifest.versions.get("weir", "?") for one in records}))


def short_names(names: Sequence[str]) -> list[str]:
    """`names` without the words that all of them begin with: `TCP upload BE` is `BE`."""
    # Flent's names of probes have the unit in them, which the axis says already.
    words = [re.split(r" |::", name.removeprefix("Ping (ms) ")) for name in names]
    shared = 0
    while len(words) > 1 and all(len(w) > shared + 1 and w[shared] == words[0][shared] for w in words):
        shared += 1
    return [" ".join(one[shared:]) for one in words]


def number(value: float) -> str:
    """`value` with three digits, or all that stand before the point; 0 if it is nothing but rounding.

    Less than 0.001 has three digits behind the point, as in tables: no figure has an exponent.
    """
    if abs(value) < ROUNDING:
        return "0"
    if abs(value) < 0.001:
        return f"{round(value, 3) + 0.0:.3f}"
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:#.3g}"


ROUNDING = 1e-9
"""What is left where equal numbers are taken from each other is less, and no figure of a chart so small."""


def per_cent(share: float) -> str:
    """`share`, 0 to 1, with two digits; never 0 % for something that is there."""
    percent = share * 100
    if 0 < percent < 0.01:
        return "< 0.01 %"
    return f"{percent:.2g} %" if percent < 99 else f"{percent:.4g} %"


def length(seconds: float) -> str:
    """A length of time: `200 ms`, `5 s`."""
    return f"{seconds * 1e3:g} ms" if seconds < 1 else f"{seconds:g} s"


def title_of(title: str | None, records: Sequence[Record]) -> str:
    """The heading: what the user wrote, or else the title of the test."""
    if title is None:
        return short(heading(records))
    # Bytes that the terminal's encoding does not know come as surrogates, which no font has.
    return title.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def short(name: str, most: int = 160) -> str:
    """`name`, of which the middle is left out if it is longer than `most` characters."""
    return shortened(name, most)


def in_a_line(names: Sequence[str], most: int = 28) -> list[str]:
    """`names` for a key beside a panel that is not high: each in one line, and no two the same.

    Args:
        names: the names; equal ones are numbered.
        most: characters of a line.
    """
    return numbered([short(name, most) for name in names])


def told_apart(names: Sequence[str], most: int = 24) -> list[str]:
    """`names` for a key, no two the same: long ones in two lines, if need be without what all have in common.

    Args:
        names: the names, which differ.
        most: characters of a line.
    """
    long = [name for name in names if len(name) > most]
    if len(long) < 2:
        return numbered([short(name, most) for name in names])
    room = 2 * most - 4
    common = set[str].intersection(*(set(name.split()) for name in long))
    cut = [name if len(name) <= room else _without(name, common) for name in names]
    fitting = [short(name, room) for name in cut]
    # Where the middle that is left out tells two apart, it is looked for in their whole names.
    often = Counter(fitting)
    fitting = [
        short(name, room) if often[said] > 1 else said for name, said in zip(names, fitting, strict=True)
    ]
    return ["\n".join(_two_lines(name, most)) for name in numbered(fitting)]


def _without(name: str, common: Collection[str]) -> str:
    """A name with an ellipsis in place of words beside each other that are common."""
    said: list[str] = []
    for is_common, words in groupby(name.split(), key=lambda word: word in common or word == PART.strip()):
        part = " ".join(words)
        said.append("\N{HORIZONTAL ELLIPSIS}" if is_common and len(part) > 1 else part)
    return " ".join(said)


def _two_lines(name: str, most: int) -> list[str]:
    """A name in one line, or in two about as long as each other."""
    if len(name) <= most:
        return [name]
    if " " not in name:
        return [name[:most], name[most:]]
    places = [place for place, sign in enumerate(name) if sign == " "]
    middle = min(places, key=lambda place: max(place, len(name) - place - 1))
    return [name[:middle], name[middle + 1 :]]


PART = " \N{MIDDLE DOT} "
"""What stands between parts of the name of a configuration."""


def _which(records: Sequence[Record], runs: Sequence[int]) -> str:
    """Which runs are drawn, of how many: by their seeds, or of a line by when they started."""
    if all(is_of_a_real_line(record) for record in records):
        said, of = _started(record.manifest.started_at for record in records), _of_runs(runs)
        return f"{said}, 1{of}" if of else said
    seeds = _seeds(seed for seed in (record.manifest.seed for record in records) if seed is not None)
    return (seeds + _of_runs(runs)).removeprefix(" ")


def _started(times: Iterable[str]) -> str:
    """When the first and the last of runs started."""
    said = sorted({one[:19].replace("T", " ") for one in times})
    return f"started {' to '.join(dict.fromkeys((said[0], said[-1])))} UTC"


def _of_runs(runs: Sequence[int]) -> str:
    """Of how many runs those that are drawn are one each; empty if there are no others."""
    if not runs or max(runs) == 1:
        return ""
    if len(runs) == 1:
        return f" of {runs[0]} runs"
    least, most = min(runs), max(runs)
    return f" of {most} runs each" if least == most else f" of {least} to {most} runs each"


def _seeds(seeds: Iterable[int]) -> str:
    different = sorted(set(seeds))
    if not different:
        return ""
    first, last = different[0], different[-1]
    if first == last:
        return f"seed {first}"
    if last - first == len(different) - 1:
        return f"seeds {first} to {last}"
    if len(different) <= 6:
        return f"seeds {', '.join(str(seed) for seed in different)}"
    return f"{len(different)} seeds from {first} to {last}"
