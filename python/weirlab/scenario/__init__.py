"""Scenarios: what is to happen, as people write it and as worlds take it."""

from weirlab.forms import Model
from weirlab.scenario.catalogue import (
    check,
    congestion_controls,
    load_link,
    load_scenario,
    load_test,
    queue_names,
    shipped_links,
    shipped_tests,
)
from weirlab.scenario.models import Direction, HopSpec, LinkSpec, ScenarioSpec, TcpSpec, TestSpec
from weirlab.scenario.resolve import DEFAULT_QUEUE, ResolvedRun, line_rate, mean_rate, resolve
from weirlab.scenario.units import PositiveNanoseconds, rate_text, time_ns, time_text

__all__ = [
    "DEFAULT_QUEUE",
    "Direction",
    "HopSpec",
    "LinkSpec",
    "Model",
    "PositiveNanoseconds",
    "ResolvedRun",
    "ScenarioSpec",
    "TcpSpec",
    "TestSpec",
    "check",
    "congestion_controls",
    "line_rate",
    "load_link",
    "load_scenario",
    "load_test",
    "mean_rate",
    "queue_names",
    "rate_text",
    "resolve",
    "shipped_links",
    "shipped_tests",
    "time_ns",
    "time_text",
]
