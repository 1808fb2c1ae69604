"""Stores of sweeps in `weir ui`: listed beside the records, drawn, and their figures in a table."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import polars as pl
import pytest
from playwright.sync_api import expect

from browsing import SCREENS, WAIT_MS, opened
from local_ui import Served, begun, ended
from test_sweep_charts import QUEUES, grid, stored
from weirlab.errors import RecordError
from weirlab.record import record_paths
from weirlab.sweeps.sensitivity import indices
from weirlab.viewer import as_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from weirlab.record import Record

HOSTILE = "<b>sweep & 'more'"
LINES = "kind=lines&x=rate_mbps&by=queue"


def _truncated(part: bytes) -> bytes:
    """As what a full disk leaves."""
    return part[: len(part) // 2]


def _garbage(part: bytes) -> bytes:
    """Nothing of a Parquet file."""
    return bytes(range(256)) * (1 + len(part) // 256)


def _overwritten(part: bytes) -> bytes:
    """A whole foot, and pages that are none."""
    return part[:4] + b"\xff" * 500 + part[504:]


DAMAGES = [_truncated, _garbage, _overwritten]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, rrul: list[Record]) -> Iterator[Served]:
    """A folder with two stores and a record."""
    folder = tmp_path_factory.mktemp("sweeps")
    for name in ("rates.sweep", HOSTILE):
        stored(folder / name, grid())
    (folder / "run").symlink_to(rrul[0].path)
    yield (one := begun(folder))
    ended(one)


def test_stores_are_listed_as_sweeps_and_not_as_broken_records(served: Served) -> None:
    _, sweeps, _ = served.ask("/sweeps")
    assert f"sweep?store={quote('rates.sweep')}" in sweeps
    assert "&lt;b&gt;sweep" in sweeps
    assert "<b>sweep" not in sweeps
    assert "damaged" not in served.ask("/")[1]


def test_a_store_is_no_record(tmp_path: Path) -> None:
    stored(tmp_path / "rates.sweep", grid())
    with pytest.raises(RecordError, match=r"a store of a sweep: `weir sweep show .*rates\.sweep`"):
        record_paths(tmp_path)


def test_the_page_has_the_chart_the_command_and_the_figures(served: Served) -> None:
    status, page, _ = served.ask(f"/sweep?store=rates.sweep&{LINES}")
    assert status == 200
    assert as_command("--kind lines --x rate_mbps --by queue") in page
    assert page.count("<tr>") == 1 + len({(one["rate_mbps"], one["queue"]) for one in grid()})
    assert all(queue in page for queue in QUEUES)
    chart = served.bytes(f"/sweep/chart?store=rates.sweep&{LINES}").decode()
    assert chart.lstrip().startswith("<?xml")
    assert "</svg>" in chart


def shown(served: Served, query: str) -> tuple[str, list[list[str]]]:
    """The text alternative of a chart, and the rows of the table below it."""
    status, page, _ = served.ask(f"/sweep?store=rates.sweep&{query}")
    assert status == 200
    (says,) = re.findall(r'<img class="sweep" [^>]*alt="([^"]*)"', page)
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    return unescape(says), [
        [unescape(one) for one in re.findall(r"<t[hd][^>]*>(.*?)</t", row)] for row in rows
    ]


def test_the_shares_of_a_chart_of_sensitivity_are_read_and_tabled(served: Served) -> None:
    says, (head, *rows) = shown(served, "kind=sensitivity")
    found = indices(pl.DataFrame(grid()), ["queue", "rate_mbps", "delay_ms"], "increase_p95_ms")
    assert head == ["axis", "first order: by itself", "total: with its interactions"]
    assert [[name.replace("_mbps", "").replace("_ms", "") for name in row[:1]] for row in rows] == [
        [one.axis.removesuffix("_mbps").removesuffix("_ms")] for one in found
    ]
    assert [row[1:] for row in rows] == [[f"{one.first:.4g}", f"{one.total:.4g}"] for one in found]
    assert says.startswith("Chart: which axis matters to increase p95. Total, with its interactions: ")
    assert f"{found[0].total:.3g} (axis " in says
    _, (head, *rows) = shown(served, "kind=sensitivity&panels=queue")
    assert (head[0], {row[0] for row in rows}) == ("queue", set(QUEUES))


def test_the_medians_of_a_chart_of_lines_are_read_and_tabled(served: Served) -> None:
    says, (head, *rows) = shown(served, LINES)
    assert head == ["queue", "rate, Mbit/s", "median increase p95, ms", "10th percentile", "90th percentile"]
    runs = pl.DataFrame(grid()).filter(queue=rows[0][0], rate_mbps=float(rows[0][1]))["increase_p95_ms"]
    low, high = (runs.quantile(share, "linear") for share in (0.1, 0.9))
    medians: list[Any] = [runs.median(), low, high]
    assert rows[0][2:] == [f"{one:.4g}" for one in medians]
    assert says.startswith("Chart: increase p95 by rate and queue. Median increase p95, ms: from ")
    assert re.search(r"\(queue [a-z_]+, rate \d+ Mbit/s\) to ", says)
    assert says.endswith(" The table below has all of its figures.")


def test_the_cells_of_a_heat_map_and_the_points_of_a_front_are_tabled(served: Served) -> None:
    _, (head, *rows) = shown(served, "kind=heat&x=rate_mbps&by=queue")
    assert head == ["queue", "rate, Mbit/s", "increase p95, ms"]
    cell = pl.DataFrame(grid()).filter(queue=rows[0][0], rate_mbps=float(rows[0][1]))
    assert float(rows[0][2]) == pytest.approx(cell["increase_p95_ms"].mean(), rel=1e-3)
    # What is named elsewhere is not chosen for another place.
    for query, columns in (
        ("kind=heat&panels=queue", ["queue", "delay, ms", "rate, Mbit/s"]),
        ("kind=heat&by=queue", ["queue", "rate, Mbit/s"]),
        ("kind=lines&panels=rate_mbps", ["rate, Mbit/s", "queue", "delay, ms"]),
        ("kind=lines&by=rate_mbps", ["rate, Mbit/s", "delay, ms"]),
    ):
        _, (head, *_) = shown(served, query)
        assert head[: len(columns)] == columns, query
    says, (head, *rows) = shown(served, "kind=pareto&panels=queue")
    assert head[-1] == "on the front"
    assert len(rows) == pl.DataFrame(grid()).select("queue", "rate_mbps", "delay_ms").n_unique()
    assert {row[-1] for row in rows} <= {"yes", "no"}
    assert "yes" in {row[-1] for row in rows}
    assert says.startswith("Chart: down goodput against increase p95. Increase p95, ms: from ")


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("store=../rates.sweep", "there is no such store"),
        ("store=/etc", "there is no such store"),
        ("store=run", "there is no such store"),
        ("store=rates.sweep&kind=pie", "there is no chart `pie`"),
        ("store=rates.sweep&figure=nonsense", "no column `nonsense` in"),
        ("store=rates.sweep&figure=queue", "column `queue` has no numbers"),
        ("store=rates.sweep&by=<b>", "no column"),
    ],
)
def test_what_is_not_there_is_refused_in_a_sentence(served: Served, query: str, says: str) -> None:
    for page in ("/sweep", "/sweep/chart"):
        status, content, _ = served.ask(f"{page}?{query.replace('<', '%3C').replace('>', '%3E')}")
        assert status == 400
        assert "<b>" not in content
    assert says in served.ask(f"/sweep?{query.replace('<', '%3C').replace('>', '%3E')}")[1].replace(
        "<code>", "`"
    ).replace("</code>", "`")


def test_a_chart_that_cannot_be_drawn_says_why_beside_its_figures(served: Served) -> None:
    status, page, _ = served.ask("/sweep?store=rates.sweep&kind=sensitivity&x=rate_mbps")
    assert status == 200
    assert "sensitivity shows all axes" in page
    assert "<img" not in page
    assert '<table class="list">' in page


def test_one_figure_against_itself_is_a_chart(served: Served) -> None:
    query = "store=rates.sweep&kind=pareto&figure=increase_p95_ms&against=increase_p95_ms"
    status, page, _ = served.ask(f"/sweep?{query}")
    assert status == 200, page


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_store_is_told_in_a_sentence_and_the_others_are_drawn(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    for name in ("whole.sweep", "damaged.sweep"):
        stored(tmp_path / name, grid())
    (part,) = (tmp_path / "damaged.sweep" / "runs").glob("*.parquet")
    part.write_bytes(damage(part.read_bytes()))
    one = begun(tmp_path)
    try:
        for page in ("/sweep", "/sweep/chart"):
            status, content, _ = one.ask(f"{page}?store=damaged.sweep&{LINES}")
            assert status == 400
            (told,) = re.findall(r'<p class="error" role="alert">(.*?)</p>', content, re.DOTALL)
            assert part.name in told
            assert "is damaged" in told
            assert "\n" not in told
        # Neither the list nor another store has anything of it, and the server lives.
        assert "damaged.sweep" in one.ask("/sweeps")[1]
        assert one.ask(f"/sweep?store=whole.sweep&{LINES}")[0] == 200
        assert one.ask("/")[0] == 200
    finally:
        assert ended(one) == 0


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
def test_a_chart_is_chosen_and_drawn_and_nothing_keeps_anybody_out(
    browser: Browser, served: Served, viewport: dict[str, int], scheme: str
) -> None:
    with opened(
        browser, f"{served.link}sweeps", within=served.link, viewport=viewport, color_scheme=scheme
    ) as shown:
        page = shown.page
        page.get_by_text(HOSTILE).click()
        expect(page.locator("h1")).to_have_text(HOSTILE)
        page.locator("[name=kind]").select_option("lines")
        page.locator("[name=x]").select_option("rate_mbps")
        page.get_by_role("button", name="Draw").click()
        expect(page.locator("pre")).to_contain_text("--kind lines --x rate_mbps")
        lines = page.locator("pre .option").evaluate_all("all => all.map(one => one.getClientRects().length)")
        assert set(lines) == {1}, "an option is broken behind its dashes"
        picture = page.locator("img.sweep")
        expect(picture).to_be_visible()
        page.wait_for_load_state()
        assert picture.evaluate("one => one.naturalWidth") > 0
        # What another kind does not ask for is gone, from the page and from what is sent.
        page.locator("[name=kind]").select_option("sensitivity")
        expect(page.locator("[name=x]")).to_be_hidden()
        page.get_by_role("button", name="Draw").click()
        expect(page.locator("pre")).to_contain_text("--kind sensitivity", timeout=WAIT_MS)
        expect(picture).to_be_visible()
        page.wait_for_load_state()
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
        assert page.locator("main b").count() == 0
        assert shown.barriers() == []
        # Who comes back finds the form as it stood when that chart was drawn.
        page.go_back()
        expect(page.locator("pre")).to_contain_text("--kind lines", timeout=WAIT_MS)
        expect(page.locator("[name=kind]")).to_have_value("lines")
