"""Reports on records for people: tables, sentences, folders of charts."""

from typing import TYPE_CHECKING

from weirlab.loading import asked_for
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

if TYPE_CHECKING:
    from weirlab.report.charts import charts_of
else:
    __getattr__ = asked_for(__name__, {"weirlab.report.charts": ["charts_of"]})

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
