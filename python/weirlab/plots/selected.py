"""Part of a record: some of its flows and probes, or those of some hosts, as if there were no others."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from weirlab.errors import UsageError
from weirlab.plots.look import chosen
from weirlab.record.configurations import numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.record import Record


def selected(
    record: Record, flows: Sequence[str], probes: Sequence[str], hosts: Sequence[str] = ()
) -> Record:
    """A view of `record` with only the flows and probes that the patterns fit; without patterns all.

    Names are those of charts and tables, where names that occur twice are numbered: `ping (2)`. A flow or
    probe is of the host at its other end.

    Raises:
        UsageError: if a pattern fits none.
    """
    view = copy.copy(record)
    # Tables that were read stay; what is made of them is made anew.
    for made in ("pings", "_round_trips", "flow_rows"):
        vars(view).pop(made, None)
    vars(view)["_columns"] = {}
    of_flows, of_probes = _hosts(record, hosts) if hosts else ([], [])
    if flows or hosts:
        wanted = _wanted(record, "flow", numbered(record.flow_names["name"].to_list()), flows)
        wanted = [place for place in wanted if not hosts or of_flows[place]]
        kept = record.flow_names["flow"].gather(wanted).to_list()
        for table in ("flow_names", "flows", "throughput", "tcp", "udp", "transfers"):
            vars(view)[table] = getattr(record, table).filter(pl.col("flow").is_in(kept))
    if probes or hosts:
        wanted = _wanted(record, "probe", numbered(record.probe_names), probes)
        wanted = [place for place in wanted if not hosts or of_probes[place]]
        vars(view)["latency"] = record.latency.filter(pl.col("probe").is_in(wanted))
        apart = set(record.manifest.probes_apart)
        if wanted and apart.issuperset(wanted):
            # Who asks for these alone wants to see them as pings.
            others = sorted(apart.difference(wanted))
            vars(view)["manifest"] = replace(record.manifest, probes_apart=others)
    return view


def _hosts(record: Record, patterns: Sequence[str]) -> tuple[list[bool], list[bool]]:
    """Which flows, and which probes, are of a host that one of the patterns fits."""
    scenario = record.manifest.scenario
    names = [host["name"] for host in scenario["hosts"]]
    _wanted(record, "host", names, patterns)
    tests = scenario.get("methods", [])
    of_flows = [*scenario["flows"], *(one for one in tests for _ in ("down", "up"))]
    of_probes = [*scenario["probes"], *tests]
    fits = {place for place, one in enumerate(chosen(names, patterns)) if one}
    return [one.get("host") in fits for one in of_flows], [one.get("host") in fits for one in of_probes]


def _wanted(record: Record, kind: str, names: Sequence[str], patterns: Sequence[str]) -> list[int]:
    """The places of the names that one of the patterns fits."""
    for pattern in patterns:
        if not any(chosen(names, [pattern])):
            there = ", ".join(f"`{name}`" for name in names[:MAX_NAMES]) or "none"
            more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
            raise UsageError(
                f"--{kind} {pattern}: `{record.path}` has no such {kind} (there are: {there}{more})"
            )
    return [place for place, fits in enumerate(chosen(names, patterns)) if fits]


MAX_NAMES = 16
"""More names than this make an error unreadable."""
