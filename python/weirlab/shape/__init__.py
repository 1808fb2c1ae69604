"""The shaper on a real interface: what it is told and what it shows.

Whether it helps is told by `weirlab.shape.proving`, which a shaper at work does not need.
"""

from weirlab.shape.rules import read_rules, rules_text, shipped_rules
from weirlab.shape.settings import read_config, settings_of
from weirlab.shape.view import ShaperView, line_of, metrics_of, table_of

__all__ = [
    "ShaperView",
    "line_of",
    "metrics_of",
    "read_config",
    "read_rules",
    "rules_text",
    "settings_of",
    "shipped_rules",
    "table_of",
]
