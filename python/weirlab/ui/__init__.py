"""The user interface in the terminal."""

from typing import TYPE_CHECKING

from weirlab.loading import asked_for

if TYPE_CHECKING:
    from weirlab.ui.progress import CountProgress, RunProgress, waiting
    from weirlab.ui.table import Table
    from weirlab.ui.terminal import console, note, section, warn
else:
    __getattr__ = asked_for(
        __name__,
        {
            "weirlab.ui.progress": ["CountProgress", "RunProgress", "waiting"],
            "weirlab.ui.table": ["Table"],
            "weirlab.ui.terminal": ["console", "note", "section", "warn"],
        },
    )

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
