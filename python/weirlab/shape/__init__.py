"""The shaper on a real interface: what it is told, what it shows, and whether it helps."""

from weirlab.shape.prove import Proof, Prover
from weirlab.shape.settings import ShapeWords, read_config, settings_of
from weirlab.shape.view import ShaperView, line_of, metrics_of, table_of

__all__ = [
    "Proof",
    "Prover",
    "ShapeWords",
    "ShaperView",
    "line_of",
    "metrics_of",
    "read_config",
    "settings_of",
    "table_of",
]
