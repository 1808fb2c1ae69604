"""Studies: questions that Weir answers by many runs, about itself and about what others have published."""

from __future__ import annotations

from weirlab.studies import gallery

STUDIES = {
    "linux": "The simulator beside real Linux 6.12: its own TCP and queues, the same set-ups.",
    "thesis": "A published comparison of markers and queues (Lo Monaco 2000), repeated in full.",
    "agreement": "The simulator beside the lab: 72 set-ups of links, queues and TCPs, in real time.",
    "autorate": "Shapers that find a line's rate, on lines that change: Weir's beside others.",
    "cfosspeed": "The cFosSpeed report on a VDSL-100 line, repeated with Weir's shaper.",
    "speedtest-aqm": "What speed tests report beneath queue management, and what is true (arXiv 2511.19213).",
    **gallery.names(),
}
"""The studies and what they ask."""
