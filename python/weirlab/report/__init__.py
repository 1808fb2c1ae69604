"""What is made of records for people: tables, sentences, folders of charts."""

from weirlab.report.charts import charts_of
from weirlab.report.tables import comparison_table, flow_table, latency_table, story

__all__ = ["charts_of", "comparison_table", "flow_table", "latency_table", "story"]
