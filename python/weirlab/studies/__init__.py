"""Studies: questions that Weir answers about itself by many runs."""

from __future__ import annotations

STUDIES = {
    "linux": "The simulator beside real Linux 6.12: its own TCP and queues, the same set-ups.",
}
"""The studies and what they ask."""
