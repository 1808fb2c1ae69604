"""What of a data file of Flent a record does not hold, and what was not measured: it says so for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flent_files import T0, document, imported, written
from weirlab.cli import weir as group
from weirlab.export import export
from weirlab.flent import import_flent, read_document

if TYPE_CHECKING:
    from pathlib import Path


def with_an_empty_download(failed: object) -> dict[str, Any]:
    content = document()
    content["metadata"] |= {"NAME": "tcp_bidirectional", "FAILED_RUNNERS": failed}
    content["results"]["TCP download"] = [None] * 21
    content["raw_values"]["TCP download"] = []
    content["metadata"]["SERIES_META"]["TCP download"] = {"UNITS": "Mbits/s", "RUNNER": "NetperfDemoRunner"}
    return content


def test_a_record_warns_of_programs_that_failed(tmp_path: Path) -> None:
    first = imported(tmp_path, with_an_empty_download(1))
    (file,) = export([first], tmp_path / "again.flent.gz")
    assert read_document(file).metadata["FAILED_RUNNERS"] == 1
    again = import_flent(file, tmp_path / "second")
    assert "1 of Flent's programs failed (FAILED_RUNNERS)" in again.manifest.warnings
    said = [
        "1 of Flent's programs failed (FAILED_RUNNERS)",
        "`TCP download` was asked for and has no samples",
    ]
    assert first.manifest.warnings == said
    shown = CliRunner().invoke(group, ["show", str(first.path)])
    assert all(one in " ".join(shown.output.split()) for one in said)


@pytest.mark.parametrize(("failed", "warns"), [(0, False), (None, False), ("0", False), ("2", True)])
def test_failures_may_be_told_in_several_ways(failed: object, warns: bool, tmp_path: Path) -> None:
    content = document()
    content["metadata"]["FAILED_RUNNERS"] = failed
    assert bool(imported(tmp_path, content).manifest.warnings) == warns


def test_statistics_that_no_table_holds_are_not_said_to_have_no_samples(tmp_path: Path) -> None:
    content = document()
    points = [{"t": T0 + 0.2 * n, "backlog_bytes": 3, "sent_bytes": 10, "dropped": 0} for n in range(20)]
    content["raw_values"]["qdisc_stats_router"] = points
    content["results"]["qdisc_stats_router::backlog_bytes"] = [3.0] * 21
    content["raw_values"]["cpu_stats_router"] = [{"t": T0 + 0.2 * n, "load": 0.5} for n in range(20)]
    record = imported(tmp_path, content)
    assert record.manifest.imported is not None
    assert record.manifest.imported.left_out == {
        "cpu_stats_router": "no table of a record holds such statistics (load)",
        "qdisc_stats_router": (
            "no table of a record holds such statistics (backlog_bytes, dropped, sent_bytes)"
        ),
    }
    assert record.manifest.warnings == []
    file = written(tmp_path, content, "two.flent.gz")
    done = CliRunner().invoke(group, ["import", str(file), "--out", str(tmp_path / "two")])
    assert "holds such statistics (load)" in " ".join((done.output + done.stderr).split())
