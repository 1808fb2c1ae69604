"""Flent's data files: read as records, and written so that Flent opens them.

docs/flent.md tells what becomes of what.
"""

from weirlab.flent.document import Document, read_document
from weirlab.flent.exporting import export_flent
from weirlab.flent.importing import import_flent

__all__ = ["Document", "export_flent", "import_flent", "read_document"]
