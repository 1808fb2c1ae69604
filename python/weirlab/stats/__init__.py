"""Statistics of records. docs/statistics.md defines each of them."""

from weirlab.stats.agreement import Agreement, Finding, Goal, agreement, finding
from weirlab.stats.assertions import Assertion, Outcome
from weirlab.stats.comparison import Comparison, Factor, Interval, compare, interval
from weirlab.stats.distribution import Distribution, describe, quantile
from weirlab.stats.fairness import coefficient_of_variation, jain_index
from weirlab.stats.pings import Pings, idle_pings, increases_ms, load_window_ns, loaded_pings
from weirlab.stats.summary import (
    DirectionSummary,
    LatencySummary,
    Summary,
    busy_share,
    summarise,
    totals_mbps,
)
from weirlab.stats.waiting import Bypassed, bypassed_queues

__all__ = [
    "Agreement",
    "Assertion",
    "Bypassed",
    "Comparison",
    "DirectionSummary",
    "Distribution",
    "Factor",
    "Finding",
    "Goal",
    "Interval",
    "LatencySummary",
    "Outcome",
    "Pings",
    "Summary",
    "agreement",
    "busy_share",
    "bypassed_queues",
    "coefficient_of_variation",
    "compare",
    "describe",
    "finding",
    "idle_pings",
    "increases_ms",
    "interval",
    "jain_index",
    "load_window_ns",
    "loaded_pings",
    "quantile",
    "summarise",
    "totals_mbps",
]
