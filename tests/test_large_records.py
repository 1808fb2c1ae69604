"""Records with very many pings: pages begin with an overview, and read rows as they are asked for."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import expect

from browsing import WAIT_MS, Opened, opened
from local_ui import Served, begun, ended
from weirlab.errors import RecordError
from weirlab.plots.caption import number as written
from weirlab.record import open_record
from weirlab.stats import counted, describe, load_window_ns, loaded_pings, pings, summarise
from weirlab.viewer import is_large, overview_of, report_page
from weirlab.viewer.overview import SHARES
from weirlab.webapp import pages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from playwright.sync_api import Browser

    from weirlab.record import Record

PARTS, ROWS = 16, 100_000
PEAK_NS = 900_000_000


@pytest.fixture(scope="module")
def folder(rrul: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a record of 1.6 million pings of two probes; one in 1000 is lost, and one is long."""
    place: Path = tmp_path_factory.mktemp("large")
    with_pings(rrul[0], place / "large")
    return place


@pytest.fixture(scope="module")
def large(folder: Path) -> Record:
    return open_record(folder / "large")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    one = begun(folder)
    yield one
    ended(one)


def with_pings(record: Record, place: Path) -> None:
    """A copy of a record with many pings in place of its own."""
    shutil.copytree(record.path, place)
    shutil.rmtree(place / "latency")
    (place / "latency").mkdir()
    count = PARTS * ROWS
    rng = np.random.default_rng(7)
    t = np.arange(count) * (record.reached_ns // count)
    # As they are written: when the answer comes, and so nearly in order.
    t[1::2], t[:-1:2] = t[:-1:2].copy(), t[1::2].copy()
    rtt = (20_000_000 + rng.gamma(2, 3_000_000, count)).astype(np.int64)
    rtt[count // 2 + 123] = PEAK_NS
    values = pl.Series(rtt).set(pl.Series(np.arange(count) % 1000 == 500), None)
    whole = pl.DataFrame({name: np.zeros(count, np.int64) for name in record.latency.columns}).with_columns(
        t_ns=pl.Series(t), probe=pl.Series(np.arange(count) // 3 % 2), rtt_ns=values
    )
    digest = hashlib.sha256()
    for number in range(PARTS):
        content = io.BytesIO()
        part = whole.slice(number * ROWS, ROWS).cast(record.latency.schema)
        part.write_parquet(content, compression="snappy")
        digest.update(content.getvalue())
        (place / "latency" / f"part-{number:06}.parquet").write_bytes(content.getvalue())
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["tables"]["latency"] |= {"rows": count, "parts": PARTS, "sha256": digest.hexdigest()}
    (place / "manifest.json").write_text(json.dumps(manifest))


def test_the_overview_has_the_extremes_of_every_spell_as_rows_of_the_table(large: Record) -> None:
    assert is_large(large)
    found = overview_of(large)
    assert found.rows == PARTS * ROWS
    rows = pl.read_parquet(io.BytesIO(found.latency))
    assert rows.height < found.rows / 10
    every = large.latency.select(rows.columns)
    assert rows.join(every, on=rows.columns, how="semi", nulls_equal=True).height == rows.height
    spell = pl.col("t_ns") // round(found.spell_s * 1e9)
    figures = [
        pl.col("rtt_ns").min().alias("least"),
        pl.col("rtt_ns").max().alias("most"),
        pl.col("rtt_ns").is_null().any().alias("lost"),
    ]
    both = [
        one.group_by("probe", spell.alias("spell")).agg(figures).sort("probe", "spell")
        for one in (every, rows)
    ]
    assert both[0].equals(both[1])


def test_its_means_and_curves_are_those_of_all_pings(large: Record) -> None:
    found = overview_of(large)
    pings = large.pings.drop_nulls("rtt_ns")
    step = large.reached_ns // len(found.means_ms)
    wanted = pings.group_by(pl.col("t_ns") // step).agg(pl.col("rtt_ns").mean() / 1e6).sort("t_ns")["rtt_ns"]
    np.testing.assert_allclose(
        np.array(found.means_ms, float), wanted.to_numpy()[: len(found.means_ms)], rtol=1e-12
    )
    start, end = load_window_ns(large)
    loaded = pings.filter((pl.col("t_ns") >= start) & (pl.col("t_ns") < end))
    for probe, rows in ((-1, loaded), *((one, loaded.filter(pl.col("probe") == one)) for one in (0, 1))):
        ms, percent = found.curves[probe]
        values = np.sort(rows["rtt_ns"].to_numpy()) / 1e6
        assert ms[0] == pytest.approx(values[0])
        assert ms[-1] == pytest.approx(values[-1])
        assert percent[-1] == 100
        # A bucket is narrower than a 2000th of the median, 25 ms.
        at = np.searchsorted(values, np.array(ms) - 0.0125, side="right") / values.size * 100
        after = np.searchsorted(values, np.array(ms) + 0.0125, side="right") / values.size * 100
        assert (np.array(percent) >= at - 1e-5).all()
        assert (np.array(percent) <= after + 1e-5).all()
        np.testing.assert_allclose(found.reached[probe], np.percentile(values, SHARES), atol=0.0125)


def test_pings_of_a_span_are_those_of_the_table_by_the_time_of_sending(
    large: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = load_window_ns(large)
    inside = large.pings.filter(pl.col("t_ns").is_between(*window, closed="left"))
    read = open_record(large.path)
    for probe in (0, 1):
        rows = inside.filter(pl.col("probe") == probe)
        found = loaded_pings([read], probe=probe)
        assert (found.sent, found.lost) == (rows.height, rows["rtt_ns"].null_count())
        took_ms = rows["rtt_ns"].drop_nulls().to_numpy() / 1e6
        assert found.rtt_ms.tolist() == took_ms.tolist()
        assert found.distribution == describe(took_ms)
    monkeypatch.setattr(counted, "MOST_HELD", 1000)
    monkeypatch.setattr(pings, "MOST_HELD", 1000)
    every = loaded_pings([read])
    assert every.lost == inside["rtt_ns"].null_count()
    few, many = describe(inside["rtt_ns"].drop_nulls().to_numpy() / 1e6), every.distribution
    assert few is not None
    assert many is not None
    assert replace(many, mean=few.mean, std=few.std) == few
    assert (many.mean, many.std) == pytest.approx((few.mean, few.std), rel=1e-12)
    assert "latency" not in vars(read)
    monkeypatch.setattr(pings, "MOST_KEPT", 1000)
    again = loaded_pings([read])
    assert (again.sent, again.answered, again.lost) == (every.sent, every.answered, every.lost)
    assert not isinstance(again.rtt_ns, list)
    assert [sum(part.size for part in again.rtt_ns) for _ in range(2)] == [every.answered] * 2
    assert np.sort(again.rtt_ms).tolist() == np.sort(every.rtt_ms).tolist()
    anew = again.distribution
    assert anew is not None
    assert replace(anew, mean=many.mean, std=many.std) == many


def test_parts_say_when_their_pings_were_sent(large: Record) -> None:
    found = overview_of(open_record(large.path))
    for part, (start, end) in zip(large.parts("latency"), found.parts, strict=True):
        rows = pl.read_parquet(large.path / part)
        assert (start, end) == (rows["t_ns"].min() / 1e9, rows["t_ns"].max() / 1e9)  # type: ignore[operator]
    # Of rows that are held already it is not known which part has which: each may have any.
    assert large.latency.height
    assert overview_of(large).parts == [(0.0, None)] * PARTS


def test_columns_that_are_kept_are_read_once(large: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    record, read = open_record(large.path), []
    whole = record._store.contents

    def counted(names: Sequence[str]) -> Iterator[bytes]:
        for name, content in zip(names, whole(names), strict=True):
            read.append(name)
            yield content

    monkeypatch.setattr(record._store, "contents", counted)
    with record.keeping("latency", ["t_ns", "probe", "rtt_ns"]):
        record.check()
        held = summarise(record)
        assert is_large(record)
        overview_of(record)
    assert [part for part in read if part.startswith("latency/")] == record.parts("latency")
    assert held == summarise(open_record(large.path))
    assert sum(chunk.height for chunk in record.chunks("latency", ["t_ns"])) == PARTS * ROWS


@pytest.mark.parametrize("place", [4, 2000, -1])
def test_no_row_is_kept_of_a_table_that_is_not_what_was_written(
    large: Record, tmp_path: Path, place: int
) -> None:
    shutil.copytree(large.path, tmp_path / "changed")
    part = tmp_path / "changed" / large.parts("latency")[5]
    content = bytearray(part.read_bytes())
    content[place] ^= 1
    part.write_bytes(content)
    record = open_record(tmp_path / "changed")
    with (
        pytest.raises(RecordError, match="`latency` is damaged: its bytes are not those that were written"),
        record.keeping("latency", ["t_ns", "probe", "rtt_ns"]),
    ):
        pytest.fail("rows were kept")


def test_only_the_parts_that_are_asked_for_are_sent(served: Served) -> None:
    def names(more: str) -> list[str]:
        return zipfile.ZipFile(io.BytesIO(served.bytes(f"/record?record=large{more}"))).namelist()

    assert names("&parts=3-4") == ["manifest.json", *(f"latency/part-{one:06}.parquet" for one in (3, 4))]
    overview, whole = names("&overview"), names("")
    assert [one for one in overview if one.startswith("latency/")] == ["latency/part-000000.parquet"]
    assert sum(one.startswith("latency/") for one in whole) == PARTS
    assert {one for one in whole if not one.startswith("latency/")} <= set(overview)


@pytest.mark.parametrize("parts", ["", "4", "4-3", "0-16", "-1-3", "0-9999999999999", "a-b", "٣-٤"])
def test_what_is_no_range_of_parts_is_refused(served: Served, parts: str) -> None:
    status, page, _ = served.ask(
        f"/record?record=large&parts={parts.encode().hex() if not parts.isascii() else parts}"
    )
    assert status == 400
    assert "write FIRST-LAST, from 0 to 15" in page


def first_row(shown: Opened) -> list[str]:
    row = shown.chart("Ping").locator("table").first.locator("tbody tr").first
    row.wait_for()
    cells: list[str] = row.locator("th, td").all_inner_texts()
    return cells


def look_closely(shown: Opened, record: Record) -> None:
    """Zooms in until every ping is drawn, and out again; takes figures of a span and of the whole run."""
    page, chart = shown.page, shown.chart("Ping")
    shown.plot("Ping")
    remark = chart.locator(".remark")
    expect(remark).to_contain_text("Of 1,600,000 pings the shortest and the longest of each")
    chart.locator(".plot").focus()
    for _ in range(5):
        page.keyboard.press("+")
    expect(remark).not_to_contain_text("shortest and the longest")
    expect(remark).not_to_contain_text("being read")
    chart.get_by_text("Table of what is shown").click()
    caption = chart.locator("table caption").first
    caption.wait_for()
    start, end = map(float, re.findall(r"([\d.]+) s", caption.inner_text()))
    rows = record.round_trips(0)
    inside = rows.filter((pl.col("t_ns") >= round(start * 1e9)) & (pl.col("t_ns") < round(end * 1e9)))
    name = record.probe_names[0]
    row = first_row(shown)
    assert row[0] == name
    # The caption has milliseconds, of some 190.
    assert int(row[1]) == pytest.approx(inside["rtt_ns"].drop_nulls().len(), rel=0.02)
    chart.locator(".plot").focus()
    page.keyboard.press("0")
    figures = describe(rows["rtt_ns"].drop_nulls() / 1e6)
    assert figures is not None
    expect(chart.locator("table").first.locator("tbody tr").first.locator("td").first).to_have_text(
        str(figures.count), timeout=WAIT_MS
    )
    row = first_row(shown)
    assert [float(one) for one in row[2:8]] == pytest.approx(
        [figures.mean, figures.min, figures.median, figures.p95, figures.p99, figures.max], rel=0.005
    )
    assert int(row[8]) == rows["rtt_ns"].null_count()


def test_a_large_record_in_the_application(browser: Browser, served: Served, large: Record) -> None:
    with opened(browser, f"{served.link}view?record=large", within=served.link) as shown:
        shown.page.wait_for_selector("html[data-ready]", state="attached")
        look_closely(shown, large)
        assert shown.page.get_by_role("alert").count() == 0
        assert shown.barriers() == []
        lines = shown.lines("Ping")
        assert sum(times.size for times, _ in lines.values()) == PARTS * ROWS
        assert max(np.nanmax(values) for _, values in lines.values()) == PEAK_NS / 1e6


def test_a_large_record_in_a_page_of_its_own(browser: Browser, large: Record, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(report_page([large]), encoding="utf-8")
    with opened(browser, file) as shown:
        look_closely(shown, large)
        chart = shown.chart("Distribution of pings under load")
        chart.get_by_text("Table of what is shown").click()
        chart.locator("table").wait_for()
        cells = chart.locator("tbody tr").first.locator("td").all_inner_texts()
        loaded = summarise(large).probes[large.probe_names[0]]
        assert loaded is not None
        known = [loaded.p5, loaded.p25, loaded.median, loaded.p75, loaded.p95, loaded.p99, loaded.max]
        assert [cells[at] for at in (0, 1, 2, 3, 5, 6, 8)] == [written(one) for one in known]
        assert [float(cells[at]) for at in (4, 7)] == pytest.approx(overview_of(large).reached[0], rel=5e-3)


def test_large_records_are_compared_by_their_overviews(
    browser: Browser, large: Record, rrul: list[Record], tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(report_page([large, rrul[1]]), encoding="utf-8")
    with opened(browser, file) as shown:
        found = overview_of(large)
        means = next(iter(shown.lines("Ping, all runs").values()))[1]
        there = ~np.isnan(means)
        np.testing.assert_allclose(
            means[there][: len(found.means_ms)], np.array(found.means_ms, float), rtol=1e-12
        )
        curve = next(iter(shown.lines("Distribution of pings under load").values()))
        np.testing.assert_allclose(curve[0], found.curves[-1][0])


def test_parts_that_cannot_be_read_are_told(browser: Browser, folder: Path, rrul: list[Record]) -> None:
    place = folder / "later"
    with_pings(rrul[0], place)
    one = begun(folder)
    try:
        with opened(browser, f"{one.link}view?record=later", within=one.link) as shown:
            shown.page.wait_for_selector("html[data-ready]", state="attached")
            shown.provoked = "the server responded with a status of 400"
            shutil.rmtree(place)
            shown.plot("Ping")
            shown.chart("Ping").locator(".plot").focus()
            for _ in range(7):
                shown.page.keyboard.press("+")
            remark = shown.chart("Ping").locator(".remark")
            expect(remark).to_contain_text(
                "The pings of this span cannot be read: later: there is no such record in"
            )
            assert "<" not in remark.inner_text()
    finally:
        ended(one)
        shutil.rmtree(place, ignore_errors=True)


def test_while_very_many_are_read_a_page_says_so() -> None:
    page = pages.waiting_page("/token", 30_000_000, "/token/view?record=a&whole")
    assert "The figures of 30,000,000 pings are being computed" in page
    assert 'http-equiv="refresh" content="0; url=/token/view?record=a&amp;whole"' in page
