"""The study `speedtest-aqm`: what speed tests report beneath queue management, and what is true.

`design` has the cells, `figures` what is kept of a run, `measure` runs them in the simulator and `lab` in the
lab, where `cross` is what runs beside a test; `calibration` holds reported latency against the true one,
`findings` judges statements. All set-ups and published numbers are data (`data/studies/speedtest-aqm.toml`).
"""

from weirlab.studies.speedtest_aqm.design import Cell, Study, all_cells, chosen, lab_cells, study, usual_cells
from weirlab.studies.speedtest_aqm.figures import Run, Spread, Way

__all__ = [
    "Cell",
    "Run",
    "Spread",
    "Study",
    "Way",
    "all_cells",
    "chosen",
    "lab_cells",
    "study",
    "usual_cells",
]
