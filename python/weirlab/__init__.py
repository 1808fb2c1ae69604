"""Weir: measures, emulates, simulates and cures latency under load.

import weirlab
records = weirlab.run("rrul", link="cable-20-8", queue=["pfifo_fast", "htb rate 95% fq_codel"])
for one in weirlab.compare(records):
    if one.increase_ms:
        print(one.name, one.increase_ms.mean, one.factor.factor)
"""

from __future__ import annotations

import importlib

from weirlab.shown import render_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weirlab.api import run
    from weirlab.errors import WeirError, WeirWarning
    from weirlab.plots import draw, plot
    from weirlab.record import Record, open_record
    from weirlab.scenario import ScenarioSpec
    from weirlab.stats import Comparison, Summary, compare, summarise
    from weirlab.sweeps.frame import sweep
    from weirlab.tidy import frame
    from weirlab.viewer import view

__all__ = [
    "Comparison",
    "Record",
    "ScenarioSpec",
    "Summary",
    "WeirError",
    "WeirWarning",
    "compare",
    "draw",
    "frame",
    "open_record",
    "plot",
    "run",
    "summarise",
    "sweep",
    "view",
]

_HOME = {
    "Comparison": "weirlab.stats",
    "Record": "weirlab.record",
    "ScenarioSpec": "weirlab.scenario",
    "Summary": "weirlab.stats",
    "WeirError": "weirlab.errors",
    "WeirWarning": "weirlab.errors",
    "compare": "weirlab.stats",
    "draw": "weirlab.plots",
    "frame": "weirlab.tidy",
    "open_record": "weirlab.record",
    "plot": "weirlab.plots",
    "run": "weirlab.api",
    "summarise": "weirlab.stats",
    "sweep": "weirlab.sweeps.frame",
    "view": "weirlab.viewer",
}


def _html(kind: str, of: Any) -> str:
    """HTML of a result for a notebook; the module that makes it is loaded only then."""
    from weirlab.report.html import HTML  # noqa: PLC0415 - only notebooks need it

    return HTML[kind](of)


render_with(_html)


_PACKAGES = {"batches", "errors", "lab", "plots", "record", "scenario", "stats", "sweeps"}
"""What may be written behind `import weirlab` alone: `weirlab.stats.loaded_pings`."""


def __dir__() -> list[str]:
    """The names of the package, for completion, whether they are loaded or not."""
    return sorted({*globals(), *__all__, *_PACKAGES})


def __getattr__(name: str) -> object:
    """Loads what is asked for only then: `weir --help` shall not wait for data frames."""
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _PACKAGES:
        return importlib.import_module(f"weirlab.{name}")
    raise AttributeError(f"module `weirlab` has no attribute `{name}`")
