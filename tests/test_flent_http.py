"""Times of web pages in Flent's own files: they are drawn, and no pings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from click.testing import CliRunner

import weirlab
from flent_files import T0, document, imported
from weirlab.cli import weir as group
from weirlab.flent.exporting import flent_document
from weirlab.plots.series import latency_ms
from weirlab.record import configurations
from weirlab.stats import loaded_pings, summarise

if TYPE_CHECKING:
    from pathlib import Path


def with_pages(test: str, **without: str) -> dict[str, Any]:
    """A file with pages of 50 ms, each beside a ping of 20 ms; without a series if one is named."""
    content = document()
    content["metadata"]["NAME"] = test
    content["raw_values"]["HTTP latency"] = [{"t": T0 + 0.2 * n + 0.05, "val": 50.0} for n in range(20)]
    content["results"]["HTTP latency"] = [50.0] * 21
    for name in without.values():
        del content["raw_values"][name], content["results"][name]
    return content


def test_an_average_of_pings_has_no_pages_in_it(tmp_path: Path) -> None:
    record = imported(tmp_path, with_pages("http-1up"))
    assert record.probe_names[0] == "HTTP latency"
    lines = latency_ms(record)
    assert lines is not None
    assert set(lines.average.tolist()) == {20.0}


def test_pings_beside_pages_are_not_those_of_an_idle_line(tmp_path: Path) -> None:
    record = imported(tmp_path, with_pages("http-1up"))
    summary = summarise(record)
    assert summary.latency.idle is None
    assert summary.idle_remark == (
        "`HTTP latency` loads the line in the phase `idle` already: pings there are not those of an idle "
        "line, and there is no increase to tell."
    )


def test_files_of_one_test_are_repetitions_whenever_their_pages_came(tmp_path: Path) -> None:
    content = with_pages("http-1up")
    (tmp_path / "later").mkdir()
    first = imported(tmp_path, content)
    for page in content["raw_values"]["HTTP latency"]:
        page["t"] += 0.01
    later = imported(tmp_path / "later", content)
    assert len(configurations([first, later])) == 1


def test_pages_that_begin_with_the_load_leave_the_line_idle_before_it(tmp_path: Path) -> None:
    content = with_pages("http-1up")
    pages = content["raw_values"]["HTTP latency"]
    content["raw_values"]["HTTP latency"] = [page for page in pages if page["t"] >= T0 + 1.25]
    summary = summarise(imported(tmp_path, content))
    assert summary.idle_remark is None
    assert summary.latency.idle is not None
    assert summary.latency.increase_mean_ms == pytest.approx(0)


def drawn(folder: Path, *words: str) -> str:
    """What `weir plot` says of the record in `folder`; nothing but the name of the picture if all is well."""
    target = folder / "one.png"
    done = CliRunner().invoke(group, ["plot", str(folder / "record"), *words, "--out", str(target)])
    return str(done.exception) if done.exception else target.name


@pytest.mark.parametrize("kind", ["cdf", "box", "bar", "ping"])
def test_pages_beside_pings_are_drawn_if_they_are_asked_for(kind: str, tmp_path: Path) -> None:
    imported(tmp_path, with_pages("http", upload="TCP upload"))
    assert drawn(tmp_path, "--kind", kind, "--probe", "HTTP*") == "one.png"


@pytest.mark.parametrize("kind", ["cdf", "box", "bar", "ping"])
def test_pages_without_pings_are_drawn(kind: str, tmp_path: Path) -> None:
    imported(tmp_path, with_pages("http", upload="TCP upload", ping="Ping (ms) ICMP"))
    assert drawn(tmp_path, "--kind", kind) == "one.png"


def test_the_list_of_plots_says_how_pages_of_flent_are_drawn() -> None:
    for name, chart in (
        ("http_delay", "ping"),
        ("http_delay_cdf", "cdf"),
        ("http_box_combine", "box"),
        ("cdf_combine", "cdf"),
    ):
        done = CliRunner().invoke(group, ["list", "flent-plots", "--json", name])
        assert chart in done.output
        assert "--probe 'HTTP*'" in done.output


def test_a_page_belongs_to_the_phase_in_which_it_was_asked_for(tmp_path: Path) -> None:
    """As pages that Weir loads itself: a file of its own says of them what its record said."""
    phases = {"idle": "1s", "load": "12s", "cooldown": "0s"}
    (record,) = weirlab.run("http-1up", phases=phases, out=tmp_path / "out")
    wanted = record.transfers.filter(pl.col("outcome") == "done").sort("t_ns")
    again = imported(tmp_path, flent_document(record))
    probe = again.probe_names.index("HTTP latency")
    pages = again.latency.filter(pl.col("probe") == probe).sort("t_ns")
    assert pages["rtt_ns"].to_list() == wanted["took_ns"].to_list()
    # Flent's times are floating-point seconds since 1970: a quarter of a microsecond.
    shift = pages["t_ns"][0] - wanted["t_ns"][0]
    assert (pages["t_ns"] - wanted["t_ns"] - shift).abs().max() < 1000
    loaded = loaded_pings([again], probe=probe)
    told = summarise(record).applications["HTTP latency"]
    assert (loaded.sent, loaded.all_ns.mean() / 1e6) == (told.done, pytest.approx(told.mean_ms))
    assert loaded.sent < len(pages)


def test_an_imported_page_is_written_at_the_time_at_which_it_was_there(tmp_path: Path) -> None:
    content = with_pages("http-1up")
    record = imported(tmp_path, content)
    written = flent_document(record)
    points = written["raw_values"]["HTTP latency"]
    assert [(point["val"], round(point["t"], 6)) for point in points] == [
        (one["val"], round(one["t"], 6)) for one in content["raw_values"]["HTTP latency"]
    ]
    assert written["metadata"]["SERIES_META"]["HTTP latency"]["RUNNER"] == "HttpGetterRunner"
    assert not [text for text in record.manifest.warnings if "HTTP" in text]


def test_pages_on_steps_are_means_and_stay_where_they_are(tmp_path: Path) -> None:
    content = with_pages("http-1up")
    del content["raw_values"]["HTTP latency"]
    record = imported(tmp_path, content)
    at = record.latency.filter(pl.col("probe") == 0)["t_ns"].to_list()
    (tmp_path / "again").mkdir()
    again = imported(tmp_path / "again", flent_document(record))
    assert record.manifest.imported is not None
    assert again.manifest.imported is not None
    assert record.manifest.imported.means == again.manifest.imported.means == {0}
    found = again.latency.filter(pl.col("probe") == 0)["t_ns"].to_list()
    assert found == [pytest.approx(one, abs=1000) for one in at]
