"""The user interface in the terminal."""

from typing import TYPE_CHECKING

from weirlab.loading import asked_for
from weirlab.ui.table import Table
from weirlab.ui.terminal import console, note, section, warn

if TYPE_CHECKING:
    from weirlab.ui.progress import CountProgress, RunProgress, waiting
else:
    __getattr__ = asked_for(__name__, {"weirlab.ui.progress": ["CountProgress", "RunProgress", "waiting"]})

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
