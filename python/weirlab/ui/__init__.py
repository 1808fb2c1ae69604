"""The user interface in the terminal."""

from weirlab.ui.progress import CountProgress, RunProgress, waiting
from weirlab.ui.table import Table
from weirlab.ui.terminal import console, note, section, warn

__all__ = [
    "CountProgress",
    "RunProgress",
    "Table",
    "console",
    "note",
    "section",
    "waiting",
    "warn",
]
