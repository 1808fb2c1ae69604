"""Records in a browser: the pages of `weir report` and `weir ui`, and the viewer that draws their charts.

The viewer is TypeScript (`viewer/` of the repository); what is made of it lies in `dist/` and is committed,
so that a page needs no Node. It reads the record's own files in the browser. All figures of a run come from
`weirlab.stats` and are embedded beside them, so that page, terminal and notebook cannot differ.
"""

from weirlab.viewer.data import record_data
from weirlab.viewer.notebook import View, view
from weirlab.viewer.overview import Overview, is_large, overview_of
from weirlab.viewer.page import MAX_RECORDS, Source, asset, page_data, report_page, report_parts
from weirlab.viewer.repeat import commands
from weirlab.viewer.shell import as_command, prose, shell, shown
from weirlab.viewer.words import grade_of

__all__ = [
    "MAX_RECORDS",
    "Overview",
    "Source",
    "View",
    "as_command",
    "asset",
    "commands",
    "grade_of",
    "is_large",
    "overview_of",
    "page_data",
    "prose",
    "record_data",
    "report_page",
    "report_parts",
    "shell",
    "shown",
    "view",
]
