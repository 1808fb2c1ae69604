"""Options of Flent's that `weir flent` does not take, and what its users write here instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirlab import _native
from weirlab.cli.options import elsewhere, elsewhere_by_value
from weirlab.flent.plots import flent_plots

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def refuses_flents_others(command: Callable[..., None]) -> Callable[..., None]:
    """Options of Flent's that have no counterpart here: who writes one is told what to write instead."""
    for names, says in _instead().items():
        for name in names:
            command = elsewhere(name, says)(command)
    for name in ("-p", "--plot"):
        command = elsewhere_by_value(name, PLOT, _plotted)(command)
    return command


def _plotted(name: str) -> str:
    """What to write for `-p` with the name of a plot of Flent's."""
    plot = flent_plots().get(name)
    if plot is None:
        near = _native.nearest(name, list(flent_plots()))
        rest = f"did you mean `{near}`?" if near else "`weir list flent-plots` names all"
        return f"Flent has no plot of that name: {rest}"
    if not plot.charts:
        return f"Weir has no such chart: {plot.note}"
    return (
        f"write `weir plot RECORD` with {plot.options}; "
        "RECORD is what `weir import` makes of a data file, or what a test leaves"
    )


def _instead() -> Mapping[tuple[str, ...], str]:
    """What Flent's users write, and what to write here."""
    return {
        ("-o", "--output"): (
            "write `weir plot RECORD --kind CHART --out FILE` once it has run; -D sets the folder"
        ),
        ("-i", "--input"): INPUT,
        ("-f", "--format"): "write `weir export RECORD --out FILE`, or `weir show RECORD` for figures",
        BATCHES: (
            "write `weir batch`, which runs tests of a TOML file in simulator and lab, or `weir flent` once "
            "for each test to a server"
        ),
        ("--gui", "--new-gui-instance", "--gui-no-defer"): (
            "write `weir ui FOLDER`, which shows the records of a folder in a browser"
        ),
        PLOTTING: "write `weir plot RECORD --kind CHART`, whose `--help` says how charts are set",
        ("--list-tests",): "write `weir list flent-tests`",
        ("--list-plots",): "write `weir list flent-plots`",
        ("--remote-metadata",): "a record has no metadata of other machines: run `weir doctor` there",
        ("--swap-up-down",): (
            "Weir does not swap directions: choose a test of the other one, such as `tcp_download`"
        ),
        ("--marking-name",): "write a test of your own, whose flows and probes have a `dscp` each",
        ("--local-bind", "--control-local-bind"): (
            "Weir chooses no address of its own host: set the route to the server instead"
        ),
        ("--control-host", "--remote-host", "--netperf-control-port"): (
            "Weir controls a test over the connection of -H alone; write its port as -H HOST:PORT"
        ),
        TOOLS: "Weir runs no netperf, irtt, D-ITG or http-getter: loads and probes are its own",
        ("-r", "--rcfile", "--cache-file"): "Weir reads no settings of Flent: write them as options",
        ("-L", "--log-file", "-v", "--verbose", "-q", "--quiet", "--debug-error"): (
            "Weir writes no log of a test: what went wrong is in its record (`weir show RECORD`)"
        ),
        ("-V", "--version"): "write `weir --version`",
    }


PLOT = "write `weir plot RECORD --kind CHART`; `weir list flent-plots` has the chart of each plot"
"""How a plot is drawn."""

INPUT = "write `weir import FILE`, and `weir show`, `compare` or `plot` of the record"
"""How a data file of Flent is read."""

BATCHES = (
    "-b",
    "--batch",
    "-B",
    "--batch-file",
    "--batch-override",
    "--batch-dry-run",
    "--batch-verbose",
    "--batch-no-shuffle",
    "--batch-no-timestamp",
    "--batch-repetitions",
    "--batch-title",
    "--batch-resume",
)
"""Options of Flent's batches, of version 2.3 as all here."""

PLOTTING = (
    "--label-x",
    "--label-y",
    "-I",
    "--invert-latency-y",
    "-z",
    "--zero-y",
    "--log-scale",
    "--log-scale-x",
    "--log-scale-y",
    "--norm-factor",
    "--data-cutoff",
    "--bounds-x",
    "--bounds-y",
    "-S",
    "--scale-mode",
    "--concatenate",
    "--absolute-time",
    "--subplot-combine",
    "--skip-missing-series",
    "--no-print-n",
    "--no-annotation",
    "--figure-note",
    "--fig-note",
    "--no-title",
    "--override-title",
    "--no-labels",
    "--no-markers",
    "--no-legend",
    "--horizontal-legend",
    "--legend-title",
    "--legend-placement",
    "--legend-columns",
    "--reverse-legend",
    "--filter-legend",
    "--replace-legend",
    "--filter-regexp",
    "--override-label",
    "--filter-series",
    "--split-group",
    "--colours",
    "--override-colour-mode",
    "--override-group-by",
    "--combine-save-dir",
    "--figure-width",
    "--fig-width",
    "--figure-height",
    "--fig-height",
    "--figure-dpi",
    "--fig-dpi",
    "--fallback-layout",
    "--no-matplotlibrc",
    "--no-hover-highlight",
    "--scale-data",
)
"""How Flent's plots look."""

TOOLS = (
    "--socket-timeout",
    "--send-size",
    "--test-payload",
    "--ditg-control-port",
    "--ditg-control-secret",
    "--http-getter-urllist",
    "--http-getter-dns-servers",
    "--http-getter-timeout",
    "--http-getter-workers",
    "--irtt-sampling-interval",
)
"""Settings of the programs that Flent runs."""
