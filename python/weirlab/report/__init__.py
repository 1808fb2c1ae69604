"""Reports on records for people: tables, sentences, folders of charts."""

from weirlab.report.charts import charts_of
from weirlab.report.tables import (
    advice,
    assertion_table,
    cautions,
    comparison_table,
    flow_table,
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
    "flow_table",
    "latency_table",
    "quality_table",
    "story",
]
