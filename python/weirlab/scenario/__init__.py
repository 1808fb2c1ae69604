"""Scenarios: what is to happen, as people write it and as worlds take it."""

from weirlab.scenario.catalogue import (
    load_link,
    load_scenario,
    load_test,
    shipped_links,
    shipped_tests,
)
from weirlab.scenario.models import LinkSpec, ScenarioSpec, TestSpec
from weirlab.scenario.resolve import DEFAULT_QUEUE, ResolvedRun, line_rate, resolve

__all__ = [
    "DEFAULT_QUEUE",
    "LinkSpec",
    "ResolvedRun",
    "ScenarioSpec",
    "TestSpec",
    "line_rate",
    "load_link",
    "load_scenario",
    "load_test",
    "resolve",
    "shipped_links",
    "shipped_tests",
]
