"""The shaper on a real interface: what it is told, what it shows, and whether it helps."""

from weirlab.shape.prove import Proof, Prover
from weirlab.shape.rules import read_rules, rules_text, shipped_rules
from weirlab.shape.settings import ShapeWords, framing_of, read_config, settings_of
from weirlab.shape.view import ShaperView, line_of, metrics_of, table_of

__all__ = [
    "Proof",
    "Prover",
    "ShapeWords",
    "ShaperView",
    "framing_of",
    "line_of",
    "metrics_of",
    "read_config",
    "read_rules",
    "rules_text",
    "settings_of",
    "shipped_rules",
    "table_of",
]
