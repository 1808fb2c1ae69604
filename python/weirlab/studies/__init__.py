"""Studies: questions that Weir answers about itself by many runs."""

from __future__ import annotations

STUDIES = {
    "linux": "The simulator beside real Linux 6.12: its own TCP and queues, the same set-ups.",
    "agreement": "The simulator beside the lab: 72 set-ups of links, queues and TCPs, in real time.",
}
"""The studies and what they ask."""
