"""Makes viewer pages of the gallery's records: `python site/studies.py FOLDER`.

Of each experiment the configurations that its charts draw are run once, with the first seed, and set
beside each other on a page. `weir study NAME` runs them as often as its statements need.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from weirlab.viewer import report_page
from weirstudies.gallery import study
from weirstudies.running import Manner, records_of


def make(folder: Path) -> None:
    """Writes NAME.html for each experiment of the gallery."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in study.NAMES:
        experiment = study.load(name)
        drawn = {one.label for one in experiment.configurations if one.drawn}
        with TemporaryDirectory() as place:
            runs = study.runs_of(experiment, repeat=1, labels=drawn)
            records = records_of(runs, "sim", Manner(folder=Path(place), quiet=True))
            page = report_page(records, title=experiment.title)
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    print(f"{folder}: viewer pages of {len(study.NAMES)} experiments")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [folder]:
            make(Path(folder))
        case _:
            sys.exit("studies: give the folder to write")
