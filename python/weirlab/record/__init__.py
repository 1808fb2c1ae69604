"""The record of a run: what happened, as raw samples.

A record is a directory with `manifest.json` and, for each table, a folder of Parquet part files; or one
`.weir` file, which is a zip archive of that. docs/record.md says what stands in which column.
"""

from typing import TYPE_CHECKING

from weirlab.loading import asked_for
from weirlab.record.configurations import Configuration, configurations
from weirlab.record.manifest import Manifest, new_manifest
from weirlab.record.tables import of_reasons

if TYPE_CHECKING:
    from weirlab.record.held import HeldRecord
    from weirlab.record.places import record_paths
    from weirlab.record.reader import Record, find_records, open_record, pack
    from weirlab.record.results import MethodResult
else:
    __getattr__ = asked_for(
        __name__,
        {
            "weirlab.record.held": ["HeldRecord"],
            "weirlab.record.places": ["record_paths"],
            "weirlab.record.reader": ["Record", "find_records", "open_record", "pack"],
            "weirlab.record.results": ["MethodResult"],
        },
    )

__all__ = [
    "Configuration",
    "HeldRecord",
    "Manifest",
    "MethodResult",
    "Record",
    "configurations",
    "find_records",
    "new_manifest",
    "of_reasons",
    "open_record",
    "pack",
    "record_paths",
]
