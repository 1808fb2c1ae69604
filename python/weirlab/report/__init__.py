"""Reports on records for people: tables, sentences, folders of charts."""

from weirlab.report.charts import charts_of
from weirlab.report.tables import (
    advice,
    assertion_table,
    cautions,
    comparison_table,
    cut_short,
    flow_table,
    increase_line,
    latency_table,
    quality_table,
    story,
)

__all__ = [
    "advice",
    "assertion_table",
    "cautions",
    "charts_of",
    "comparison_table",
    "cut_short",
    "flow_table",
    "increase_line",
    "latency_table",
    "quality_table",
    "story",
]
