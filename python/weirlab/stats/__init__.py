"""Statistics of records. docs/statistics.md defines each of them."""

from typing import TYPE_CHECKING

from weirlab.loading import asked_for
from weirlab.scenario.plain import Direction
from weirlab.stats.comparison import (
    Comparison,
    Factor,
    Interval,
    beside,
    compare,
    factor,
    factor_text,
    interval,
)
from weirlab.stats.difference import Difference
from weirlab.stats.distribution import Distribution, describe, quantile
from weirlab.stats.fairness import coefficient_of_variation, jain_index
from weirlab.stats.pings import (
    PingFigures,
    Pings,
    answered_count,
    idle_pings,
    load_window_ns,
    loaded_pings,
    ping_figures,
)
from weirlab.stats.summary import (
    DirectionSummary,
    LatencySummary,
    Summary,
    busy_share,
    goodputs_mbps,
    summarise,
    totals_mbps,
    totals_of_flows,
)
from weirlab.stats.waiting import Bypassed, bypassed_queues

if TYPE_CHECKING:
    from weirlab.stats.agreeing import AGREEMENT, Agreement, Finding, Goal, agreement, finding
    from weirlab.stats.assertions import Assertion, Outcome
    from weirlab.stats.shaping import calm_after_s, noticed_after_s, used_after_s
else:
    __getattr__ = asked_for(
        __name__,
        {
            "weirlab.stats.agreeing": ["AGREEMENT", "Agreement", "Finding", "Goal", "agreement", "finding"],
            "weirlab.stats.assertions": ["Assertion", "Outcome"],
            "weirlab.stats.shaping": ["calm_after_s", "noticed_after_s", "used_after_s"],
        },
    )

__all__ = [
    "AGREEMENT",
    "Agreement",
    "Assertion",
    "Bypassed",
    "Comparison",
    "Difference",
    "Direction",
    "DirectionSummary",
    "Distribution",
    "Factor",
    "Finding",
    "Goal",
    "Interval",
    "LatencySummary",
    "Outcome",
    "PingFigures",
    "Pings",
    "Summary",
    "agreement",
    "answered_count",
    "beside",
    "busy_share",
    "bypassed_queues",
    "calm_after_s",
    "coefficient_of_variation",
    "compare",
    "describe",
    "factor",
    "factor_text",
    "finding",
    "goodputs_mbps",
    "idle_pings",
    "interval",
    "jain_index",
    "load_window_ns",
    "loaded_pings",
    "noticed_after_s",
    "ping_figures",
    "quantile",
    "summarise",
    "totals_mbps",
    "totals_of_flows",
    "used_after_s",
]
