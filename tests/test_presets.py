"""Presets: what their sources report appears."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import weirlab

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("test", "reported_ms"), [("tcp_download", 15.825), ("tcp_upload", 94.733)])
def test_the_vdsl_line_shows_the_increases_of_its_report(
    test: str, reported_ms: float, tmp_path: Path
) -> None:
    [comparison] = weirlab.compare(weirlab.run(test, link="vdsl-100-40", repeat=3, out=tmp_path / "out"))
    assert comparison.increase_ms is not None
    assert comparison.increase_ms.mean == pytest.approx(reported_ms, rel=0.05)


def test_the_cable_line_tells_the_gallerys_story(tmp_path: Path) -> None:
    # "Bandwidth went up, and ... the increase in latency under load dropped to less than 4 ms on average";
    # fq_codel by itself changes little: "most of the buffering moved into the cable modem and CMTS".
    bloated, alone, shaped = weirlab.compare(
        weirlab.run(
            "rrul",
            link="cable-20-8",
            queue=["pfifo_fast", "fq_codel", "htb rate 95% fq_codel"],
            out=tmp_path / "out",
        )
    )
    assert bloated.increase_ms is not None
    assert bloated.increase_ms.mean > 200
    assert alone.factor.factor == pytest.approx(1.0, abs=0.2)
    assert shaped.increase_ms is not None
    assert shaped.increase_ms.mean < 4
    assert shaped.down_mbps is not None
    assert bloated.down_mbps is not None
    assert shaped.down_mbps.mean > 0.95 * bloated.down_mbps.mean


def test_fibre_bloats_downwards_only(tmp_path: Path) -> None:
    down, up = (
        weirlab.compare(weirlab.run(test, link="fios-25-25", out=tmp_path / test))[0].increase_ms
        for test in ("tcp_download", "tcp_upload")
    )
    assert down is not None
    assert up is not None
    assert down.mean > 100
    assert up.mean < 20
