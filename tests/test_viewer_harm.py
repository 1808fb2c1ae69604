"""The viewer in a real browser: nothing in a record harms it, and tables are read however they are packed."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
import xml.etree.ElementTree as ET
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Error

import weirlab
from browsing import WAIT_MS, box_of, opened, written
from live import weir_in
from weirlab.plots import series
from weirlab.record import open_record
from weirlab.viewer import report_page

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from weirlab.record import Record


MARKUP = "</script><img src=x onerror=\"window.harmed = 'yes'\"><b>bold</b>"


def hostile(record: Record, folder: Path) -> Record:
    """A copy of `record` in which every name is markup and numbers are huge."""
    shutil.copytree(record.path, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    scenario = manifest["scenario"]
    for one in (*scenario["flows"], *scenario["probes"], *scenario["phases"], *scenario["hosts"]):
        one["name"] = f"{one['name']}{MARKUP}"
    for way in ("up", "down"):
        for hop in scenario["path"][way]:
            hop["queue"] = f"{hop['queue']} {MARKUP}"
            # The largest that a manifest may say of it; of what no figure needs it may say more.
            hop["delay_ns"], hop["jitter_ns"] = 2**63 - 1, 10**30
    scenario["phases"].append({"name": "x" * 10_000, "start_ns": 10**17, "end_ns": 10**18})
    manifest |= {
        "title": MARKUP,
        "queue": MARKUP,
        "note": MARKUP,
        "configuration": MARKUP * 50,
        "warnings": [MARKUP],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return open_record(folder)


def test_hostile_names_and_numbers_harm_nothing(browser: Browser, rrul: list[Record], tmp_path: Path) -> None:
    one = hostile(rrul[0], tmp_path / "record")
    for name, records in (("one", [one]), ("two", [one, rrul[1]])):
        file = written(tmp_path / f"{name}.html", report_page(records))
        with opened(browser, file) as shown:
            assert shown.page.evaluate("window.harmed") is None
            assert shown.page.locator("img[src=x]").count() == 0
            assert shown.page.locator("main b").count() == 0
            assert shown.page.locator("section.chart").count() >= 4
            title = "Ping" if name == "one" else "Ping, all runs"
            ET.fromstring(shown.saved(title, "Save as SVG"))  # noqa: S314


def test_a_notebook_shows_the_page_and_keeps_it_apart(
    browser: Browser, rrul: list[Record], tmp_path: Path
) -> None:
    shown_in_cell = weirlab.view([hostile(rrul[0], tmp_path / "record"), rrul[1]], height_px=500)
    assert "2 records" in repr(shown_in_cell)
    assert len(repr(shown_in_cell)) < 100
    cell = f"<main><h1>Notebook</h1>{shown_in_cell._repr_html_()}</main>"
    notebook = f"<!doctype html><html lang=en><meta charset=utf-8><title>Notebook</title>{cell}</html>"
    file = written(tmp_path / "notebook.html", notebook)
    # As a string: the notebook itself is no page of Weir's, which would say that it is ready.
    with opened(browser, file.as_uri()) as shown:
        frame = shown.page.frame_locator("iframe")
        frame.locator("html[data-ready]").wait_for(state="attached")
        chart = frame.locator('section.chart[aria-label="Ping, all runs"]')
        chart.scroll_into_view_if_needed()
        chart.locator("canvas").wait_for()
        assert frame.locator("img[src=x], main b").count() == 0
        assert box_of(shown.page.locator("iframe"))["height"] == pytest.approx(500, abs=2)
        inside = shown.page.frames[1]
        assert inside.evaluate("origin") == "null"
        assert inside.evaluate("window.harmed") is None
        with pytest.raises(Error, match="cross-origin"):
            inside.evaluate("parent.document.title")
        with shown.page.expect_download(timeout=WAIT_MS) as found:
            frame.get_by_role("button", name=re.compile("^Save .*weir$")).last.click()
        assert zipfile.is_zipfile(found.value.path())
        assert shown.barriers() == []


def with_archive(page: str, content: bytes) -> str:
    """The page with another archive in it."""
    shown = base64.b64encode(content).decode()
    return re.sub(r'(id="weir-record-0">)[^<]*', lambda found: found[1] + shown, page)


def repacked(page: str, part: str, content: bytes, *, alone: bool = False) -> bytes:
    """The archive of the page with other bytes for one of its files, which may be its table's only one."""
    (kept,) = re.findall(r'id="weir-record-0">([^<]*)', page)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(kept))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            if name != part and not (alone and name.startswith(f"{part.partition('/')[0]}/")):
                new.writestr(name, old.read(name))
        new.writestr(part, content)
    return out.getvalue()


@pytest.mark.parametrize(
    "packed",
    [
        {"compression": "snappy", "row_group_size": 500},
        {"compression": "uncompressed"},
        {"compression": "zstd"},
    ],
)
def test_tables_are_read_however_they_are_packed(
    browser: Browser, one_page: Path, rrul: list[Record], tmp_path: Path, packed: dict[str, Any]
) -> None:
    """Weir's own parts are decoded by the page itself, what is packed otherwise by a library."""
    page = one_page.read_text(encoding="utf-8")
    for table in (rrul[0].latency, rrul[0].queue):
        content = io.BytesIO()
        table.write_parquet(content, **packed)
        name = "latency" if table is rrul[0].latency else "queue"
        page = with_archive(
            page, repacked(page, f"{name}/part-000000.parquet", content.getvalue(), alone=True)
        )
    with opened(browser, written(tmp_path / "page.html", page)) as shown:
        ours = rrul[0].latency.filter(pl.col("probe") == 1).drop_nulls("rtt_ns")
        times, values = shown.lines("Ping")[rrul[0].probe_names[1]]
        there = ~np.isnan(values)
        np.testing.assert_allclose(times[there], ours["t_ns"].to_numpy() / 1e9, atol=1e-12)
        np.testing.assert_allclose(values[there], ours["rtt_ns"].to_numpy() / 1e6, rtol=1e-12)
        queue = rrul[0].queue.filter((pl.col("queue") == "up/modem") & (pl.col("class") == ""))
        backlog = shown.lines("Queue backlog")
        assert len(backlog) == rrul[0].queue["queue"].n_unique()
        np.testing.assert_allclose(backlog["up/modem"][1], queue["backlog_bytes"].to_numpy() / 1e3)


def test_a_record_of_very_many_part_files_is_read_to_its_end(
    browser: Browser, one_page: Path, tmp_path: Path
) -> None:
    """More than 65535 files, which a live run of an hour has, are counted where zip64 has its numbers."""
    page = one_page.read_text(encoding="utf-8")
    (kept,) = re.findall(r'id="weir-record-0">([^<]*)', page)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(kept))) as old, zipfile.ZipFile(out, "w") as new:
        first, *others = old.namelist()
        new.writestr(first, old.read(first))
        for number in range(1 << 16):
            new.writestr(f"a/{number}", b"")
        for name in others:
            new.writestr(name, old.read(name))
    with opened(browser, written(tmp_path / "page.html", with_archive(page, out.getvalue()))) as shown:
        with opened(browser, one_page) as usual:
            wanted = usual.lines("Ping")
        found = shown.lines("Ping")
        assert found.keys() == wanted.keys()
        for name, (times, values) in wanted.items():
            np.testing.assert_array_equal(found[name][0], times)
            np.testing.assert_array_equal(found[name][1], values)


def test_means_of_steps_are_of_the_pings_that_were_sent_in_them(
    browser: Browser, two_page: Path, rrul: list[Record], tmp_path: Path
) -> None:
    """Also of those that were sent at the very beginning of a step, as those of Flent are."""
    page = two_page.read_text(encoding="utf-8")
    count = rrul[0].reached_ns // 200_000_000
    latency = pl.DataFrame(
        {
            "t_ns": [number * 200_000_000 for number in range(count)],
            "probe": [0] * count,
            "rtt_ns": [(number + 1) * 1_000_000 for number in range(count)],
        }
    )
    content = io.BytesIO()
    latency.write_parquet(content, compression="uncompressed")
    one = re.sub(r'id="weir-record-1">[^<]*', "", page)
    archive = repacked(one, "latency/part-000000.parquet", content.getvalue(), alone=True)
    with opened(browser, written(tmp_path / "page.html", with_archive(page, archive))) as shown:
        times, values = next(iter(shown.lines("Ping, all runs").values()))
        np.testing.assert_allclose(times, [0.1 + 0.2 * number for number in range(count)], atol=1e-9)
        np.testing.assert_array_equal(values, range(1, count + 1))


def longer(part: bytes, rows: int) -> bytes:
    """A Parquet file whose footer says one row more than its row groups have."""

    def field(value: int) -> bytes:
        """`num_rows` of the footer as Thrift's compact protocol packs it, and the head of the row groups."""
        zigzag, packed = 2 * value, b""
        while zigzag > 127:
            packed, zigzag = packed + bytes([zigzag % 128 + 128]), zigzag // 128
        return b"\x16" + packed + bytes([zigzag]) + b"\x19"

    assert part.count(field(rows)) == 1
    return part.replace(field(rows), field(rows + 1))


def test_broken_files_are_told_and_harm_nothing(browser: Browser, one_page: Path, tmp_path: Path) -> None:
    page = one_page.read_text(encoding="utf-8")
    part = "latency/part-000000.parquet"
    (kept,) = re.findall(r'id="weir-record-0">([^<]*)', page)
    archive = base64.b64decode(kept)
    with zipfile.ZipFile(io.BytesIO(archive)) as opened_archive:
        latency = opened_archive.read(part)
    middle = len(latency) // 2
    for number, content in enumerate(
        [
            b"",
            b"PK\x05\x06",
            archive[: len(archive) // 2],
            repacked(page, part, b"no Parquet"),
            repacked(page, part, latency[: len(latency) // 2]),
            repacked(page, part, latency[:200] + b"\xff" * (middle - 200) + latency[middle:]),
            repacked(page, part, latency[:-8] + b"\xff\xff\xff\x7fPAR1"),
            repacked(page, part, longer(latency, pl.read_parquet(latency).height)),
        ]
    ):
        file = written(tmp_path / f"{number}.html", with_archive(page, content))
        with opened(browser, file) as shown:
            said = shown.page.locator("#weir-charts .error").inner_text()
            assert re.fullmatch(r"“.*” cannot be shown: .{5,400}\.", said), said
            assert shown.page.get_by_role("heading", name="Figures").count() == 1


def test_the_pages_own_policy_refuses_the_network(browser: Browser, one_page: Path) -> None:
    with opened(browser, one_page) as shown:
        with pytest.raises(Error, match="fetch"):
            shown.page.evaluate("fetch('https://example.net/')")
        assert any("Content Security Policy" in text for text in shown.errors)
        shown.errors.clear()


def test_a_record_that_was_imported_is_shown_as_far_as_it_goes(
    browser: Browser, rrul: list[Record], tmp_path: Path
) -> None:
    """It has no queues, no seed and no service classes, and its tables are packed otherwise."""
    assert weir_in(tmp_path, "export", str(rrul[0].path), "--flent", "--out", "flent").returncode == 0
    (file,) = (tmp_path / "flent").iterdir()
    done = weir_in(tmp_path, "import", str(file), "--out", "imported")
    assert done.returncode == 0, done.stderr
    record = open_record(tmp_path / "imported")
    page = report_page([record])
    assert "seed None" not in page
    assert "this is the file from which it was imported" in page
    with opened(browser, written(tmp_path / "page.html", page)) as shown:
        assert shown.page.locator(".error").count() == 0
        ours = series.throughput_mbps(record, "down")
        assert ours is not None
        theirs = shown.lines("Download")
        for name, values in ours.lines.items():
            np.testing.assert_allclose(theirs[name][1], values, atol=1e-9)
