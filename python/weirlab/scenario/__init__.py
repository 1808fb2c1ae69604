"""Scenarios: what is to happen, as people write it and as worlds take it.

Models are loaded when they are asked for: who reads records needs none.
"""

from typing import TYPE_CHECKING

from weirlab.loading import asked_for
from weirlab.scenario.plain import DEFAULT_QUEUE, Direction
from weirlab.scenario.units import rate_text, time_ns, time_text

if TYPE_CHECKING:
    from weirlab.forms import Model
    from weirlab.scenario.catalogue import (
        check,
        congestion_controls,
        load_link,
        load_scenario,
        load_test,
        queue_names,
        queue_words,
        read_scenario,
        shipped_links,
        shipped_tests,
    )
    from weirlab.scenario.client_paths import MAX_CLIENT_PATHS, join_paths
    from weirlab.scenario.models import HopSpec, LinkSpec, ScenarioSpec, TcpSpec, TestSpec
    from weirlab.scenario.quantities import PositiveNanoseconds
    from weirlab.scenario.resolving import ResolvedRun, line_rate, mean_rate, resolve
else:
    __getattr__ = asked_for(
        __name__,
        {
            "weirlab.forms": ["Model"],
            "weirlab.scenario.catalogue": [
                "check",
                "congestion_controls",
                "load_link",
                "load_scenario",
                "load_test",
                "queue_names",
                "queue_words",
                "read_scenario",
                "shipped_links",
                "shipped_tests",
            ],
            "weirlab.scenario.client_paths": ["MAX_CLIENT_PATHS", "join_paths"],
            "weirlab.scenario.models": ["HopSpec", "LinkSpec", "ScenarioSpec", "TcpSpec", "TestSpec"],
            "weirlab.scenario.quantities": ["PositiveNanoseconds"],
            "weirlab.scenario.resolving": ["ResolvedRun", "line_rate", "mean_rate", "resolve"],
        },
    )

__all__ = [
    "DEFAULT_QUEUE",
    "MAX_CLIENT_PATHS",
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
    "join_paths",
    "line_rate",
    "load_link",
    "load_scenario",
    "load_test",
    "mean_rate",
    "queue_names",
    "queue_words",
    "rate_text",
    "read_scenario",
    "resolve",
    "shipped_links",
    "shipped_tests",
    "time_ns",
    "time_text",
]
