"""The README's figures: those that its own main job gives."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import weirlab

ROOT = Path(__file__).parent.parent


def test_the_readme_quotes_what_the_demo_measures(tmp_path: Path) -> None:
    said = re.search(
        r"from `make demo`: the plain router lets pings wait (\d+) ms longer under load;"
        r"\s+a shaper\s+at 95 % of the line with fq_codel beneath, (\d+) ms",
        " ".join((ROOT / "README.md").read_text().split()),
    )
    assert said
    demo = (ROOT / "tools" / "demo.sh").read_text().replace("\\\n", " ")
    (line,) = (line for line in demo.splitlines() if "run rrul --link cable-20-8" in line)
    words = shlex.split(line)
    queues = [words[at + 1] for at, word in enumerate(words) if word == "--queue"]
    assert queues == ["pfifo_fast", "fq_codel", "htb rate 95% fq_codel"]
    records = weirlab.run("rrul", link="cable-20-8", queue=queues, out=tmp_path / "demo")
    plain, _, shaped = weirlab.compare(records)
    assert plain.increase_ms is not None
    assert shaped.increase_ms is not None
    found = [plain.increase_ms.mean, shaped.increase_ms.mean]
    assert [f"{mean:.0f}" for mean in found] == list(said.groups())
