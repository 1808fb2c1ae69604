"""The study `thesis`, and markers in scenarios."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from weirlab.api import run_all
from weirlab.errors import UsageError
from weirlab.scenario import ScenarioSpec, load_link, resolve
from weirlab.worlds import world_named
from weirstudies.thesis import page as report
from weirstudies.thesis import study as thesis
from weirstudies.thesis.findings import ORDER, near, pairs, statements

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from weirlab.record import Record

    Weir = Callable[..., subprocess.CompletedProcess[str]]

STUDY = thesis.study()
SECOND = 1_000_000_000


def records_of(cells: list[thesis.Cell], out: Path, *, seeds: int = 1, seconds: int = 15) -> list[Record]:
    runs = [
        run
        for cell in cells
        for run in thesis.runs_of(cell, of=STUDY, seeds=seeds, duration_ns=seconds * SECOND)
    ]
    return run_all(runs, world_named("sim"), out)


def test_every_row_of_the_thesis_has_its_combination() -> None:
    tables = thesis.published()
    assert len(tables) == 32
    assert tables["A", 100, "tcp_friendly", "frio"].timeouts == 41
    assert tables["D", 50, None, "rio"].variation == 0.35
    places = {
        (cell.configuration.name, cell.flows, cell.case.marker, cell.case.queue)
        for cell in thesis.cells(STUDY)
    }
    assert set(tables) <= places


def test_the_controls_that_the_thesis_lacks_are_there() -> None:
    combinations = {(case.marker, case.queue) for case in STUDY.case}
    for marker in (None, "token_bucket", "tcp_friendly_1", "tcp_friendly"):
        assert {(marker, "rio"), (marker, "frio")} <= combinations
    assert {(None, "tail_drop"), (None, "fq_codel"), (None, "cake")} <= combinations


def test_every_fitted_setting_is_chosen_and_all_have_reasons() -> None:
    for setting in STUDY.setting:
        assert setting.reason
        assert setting.status == "chosen" or not setting.fitted, setting.name


def test_markers_and_queues_sit_where_the_thesis_has_them() -> None:
    [cell] = [one for one in thesis.cells(STUDY) if one.name == "C/50 TCP Friendly & FRIO"]
    [run] = thesis.runs_of(cell, of=STUDY, seeds=1)
    conditioner, bottleneck = run.scenario["path"]["down"]
    assert conditioner["marker"].startswith("tcp_friendly tokens 296000 interval 400ms")
    assert bottleneck["marker"] is None
    assert "out_max 30000" in bottleneck["queue"]
    assert bottleneck["rate"] == {"bps": 10_000_000}
    assert len(run.scenario["flows"]) == 50
    assert run.scenario["flows"][0]["tcp"]["overrides"]["sack"] is True


def test_every_other_reading_can_be_run() -> None:
    readings = thesis.variants(STUDY)
    assert {cell.variant.name for cell in readings if cell.variant} == {one.name for one in STUDY.variant}
    for cell in readings:
        thesis.runs_of(cell, of=STUDY, seeds=1)


def test_figures_are_those_of_section_3_2(tmp_path: Path) -> None:
    [cell] = thesis.chosen(["A/100 No Marker & RED"], of=STUDY)
    [record] = records_of([cell], tmp_path / "o")
    whole, late = thesis.figures(record, 0), thesis.figures(record, 10 * SECOND)
    delivered = record.flows["delivered_bytes"].to_numpy()
    assert whole.timeouts == int(record.flows["timeouts"].sum())
    assert whole.goodput == pytest.approx(delivered.mean() / 15)
    assert whole.variation == pytest.approx(delivered.std() / delivered.mean())
    # All data packets are of one size but the last: bytes are lost as packets are.
    queue = record.queue.filter((pl.col("queue") == "down/r1") & (pl.col("class") == ""))
    dropped = sum(int(queue[f"dropped_{why}"].sum()) for why in ("early", "forced", "overlimit"))
    share = dropped / (dropped + int(queue["departed_packets"].sum()))
    assert whole.loss_percent == pytest.approx(100 * share, rel=0.02)
    assert 0 < late.timeouts < whole.timeouts
    # The link was not yet full at the start.
    assert late.goodput > whole.goodput


def test_without_a_marker_every_packet_is_out(tmp_path: Path) -> None:
    cells = thesis.chosen(["A/50 No Marker & RED", "A/50 TCP Friendly & RIO"], of=STUDY)
    friendly, plain = records_of(cells, tmp_path / "o", seconds=5)
    by_class = [
        dict(
            record.queue.filter(pl.col("queue") == "down/r1")
            .group_by("class")
            .agg(pl.col("departed_packets").sum())
            .iter_rows()
        )
        for record in (friendly, plain)
    ]
    assert by_class[1]["in"] == 0 < by_class[1]["out"]
    assert by_class[0]["in"] > by_class[0]["out"] > 0
    assert by_class[0][""] == by_class[0]["in"] + by_class[0]["out"]


def test_pairs_say_order_and_separation() -> None:
    [better, worse] = [
        cell for cell in thesis.cells(STUDY) if cell.name in {f"A/100 {ORDER[2]}", f"A/100 {ORDER[3]}"}
    ]

    def figures(timeouts: float) -> thesis.Figures:
        return thesis.Figures(timeouts=timeouts, loss_percent=8, goodput=9000, variation=0.3)

    def row(cell: thesis.Cell, timeouts: list[float]) -> thesis.Row:
        runs = [figures(one) for one in timeouts]
        published = thesis.published()["A", 100, cell.case.marker, "rio"]
        return thesis.Row(cell=cell, whole=runs, late=runs, published=published)

    rows = [row(better, [100, 101, 102]), row(worse, [200, 201, 202])]
    found = {pair.metric: pair.word for pair in pairs(rows)}
    assert found == {"timeouts": "yes", "loss_percent": "no, overlapping", "variation": "no, overlapping"}
    assert report.is_missed(rows[0], "timeouts")
    assert not report.is_missed(rows[0], "loss_percent")
    # Statements about four configurations need all of them.
    assert statements(rows, [], STUDY) == []
    page = report.page(rows, [], [], STUDY, None)
    assert "| Token Bucket & RIO | **911 / 101 [99, 103] (0.11)**; *101* |" in page
    assert "| A/100 Token Bucket & RIO | the number of timeouts | 0.11 |" in page
    assert near(rows)["timeouts"] == (0, 2)


def made_up(worse: float) -> list[thesis.Row]:
    """All of the thesis' rows, each case `worse` times what the next better one has."""
    figures: dict[tuple[str, int, str], float] = {}
    for place, case in enumerate(ORDER):
        for flows in (50, 100):
            for name in "ABCD":
                scale = float(worse**place) * (2 if flows == 100 else 1) * (1.5 if name in "BD" else 1)
                figures[name, flows, case] = scale
    return [
        thesis.Row(
            cell=cell,
            whole=[
                thesis.Figures(
                    timeouts=100 * scale * (1 + seed / 1000),
                    loss_percent=scale * (1 + seed / 1000),
                    goodput=9000 / scale * (1 + seed / 1000),
                    variation=scale / 10 * (1 + seed / 1000),
                )
                for seed in range(5)
            ],
            late=[],
            published=None,
        )
        for cell in thesis.cells(STUDY)
        for scale in [figures.get((cell.configuration.name, cell.flows, cell.case.name))]
        if scale is not None
    ]


def test_the_order_of_the_cases_is_judged_by_intervals() -> None:
    def order(worse: float) -> list[bool | None]:
        return [one.seen for one in statements(made_up(worse), [], STUDY) if "falls in the order" in one.text]

    assert order(3.0) == [True, True, True]
    assert order(1 / 3) == [False, False, False]
    # Equal in every run: nothing falls.
    assert order(1.0) == [False, False, False]


def test_what_the_thesis_states_is_seen_where_it_is_so_and_not_in_the_mirror() -> None:
    """The token bucket has 9 times what the marker with FRIO has, or a ninth."""
    found = {one.text: one.seen for one in statements(made_up(3.0), [], STUDY) if one.rulings}
    mirror = {one.text: one.seen for one in statements(made_up(1 / 3), [], STUDY) if one.rulings}
    for text in ("The probability of loss is halved in all cases.", "The average goodput is always higher"):
        [seen] = [value for said, value in found.items() if said.startswith(text)]
        [not_seen] = [value for said, value in mirror.items() if said.startswith(text)]
        assert (seen, not_seen) == (True, False)


def test_rules_that_the_thesis_own_tables_fail_say_so() -> None:
    tables = thesis.published()
    rows = [
        replace(row, published=tables[configuration.name, row.cell.flows, case.marker, case.queue])
        for row in made_up(3.0)
        for configuration, case in [(row.cell.configuration, row.cell.case)]
    ]
    said = {one.text: one.grounds for one in statements(rows, [], STUDY)}
    for text, found in (
        ("The number of timeouts falls by two orders of magnitude.", "1 of 8 below 0.02"),
        ("The probability of loss is halved in all cases.", "5 of 8 below 0.5"),
        ("The coefficient of variation is 1.5 orders of magnitude lower.", "0 of 8 below 0.0316"),
    ):
        assert said[text].endswith(found)
        assert "in the thesis' own tables it is " in said[text]
    # Without them there is nothing to say of them.
    assert not any("own tables" in one.grounds for one in statements(made_up(3.0), [], STUDY))


def test_aims_are_those_that_are_counted() -> None:
    tables = thesis.published()
    rows = [
        replace(row, published=tables[configuration.name, row.cell.flows, case.marker, case.queue])
        for row in made_up(3.0)
        for configuration, case in [(row.cell.configuration, row.cell.case)]
    ]
    first = report.verdict(rows, [], STUDY).splitlines()[0]
    assert " of 32 aims of the RED and token-bucket rows met" in first
    assert first.endswith("(timeouts within a factor of 1.5, loss within 30 %).")
    page = report.page([replace(row, late=row.whole) for row in rows], [], [], STUDY, None)
    outside = page.partition("## Rows outside the bounds\n")[2].partition("\n## ")[0]
    assert (
        "goodput within 30 %, variation within a factor of 2. Aims are those of timeouts and of loss"
        in outside
    )
    aimed = [row for row in outside.splitlines() if row.startswith("| A/") and "(no aim)" not in row]
    assert aimed
    assert all("timeouts" in row or "the loss" in row for row in aimed)


def test_an_unknown_combination_is_one_sentence() -> None:
    with pytest.raises(
        UsageError, match=r"study `thesis` has no combination `E/50` \(write .*; they are called as `A/50 "
    ):
        thesis.chosen(["E/50"], of=STUDY)


def test_the_command_writes_report_figures_and_charts(weir_here: Weir, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("study", "thesis", "--only", "A/50 Token*", "--repeat", "2", "--out", str(out))
    rows = json.loads(weir_here(*words, "--json").stdout)
    assert [row["name"] for row in rows] == ["A/50 Token Bucket & RIO", "A/50 Token Bucket & FRIO"]
    assert rows[0]["published"]["timeouts"] == 253
    assert rows[0]["from_0s"]["timeouts"]["count"] == 2
    assert sorted(file.name for file in out.iterdir()) == [
        "figure-4-1.png",
        "figures.csv",
        "report.md",
        "runs.sweep",
    ]
    assert len((out / "figures.csv").read_text().splitlines()) == 1 + 2 * 2 * 2
    again = weir_here(*words)
    assert again.returncode == 0, again.stderr
    assert "A/50 Token Bucket & RIO" in again.stdout
    (out / "mine.txt").touch()
    refused = weir_here(*words)
    assert refused.returncode == 2
    assert "holds other things, such as `mine.txt`" in refused.stderr


def test_a_marker_that_cannot_be_read_is_one_sentence() -> None:
    link = load_link("thesis-10")
    down = [link.down[0].model_copy(update={"marker": "paint"}), link.down[1]]
    spec = ScenarioSpec(test="tcp_download", link=link.model_copy(update={"down": down}))
    with pytest.raises(
        UsageError, match="path down, hop `r0`: unknown marker `paint` \\(known: token_bucket, "
    ):
        resolve(spec)


def test_the_lab_refuses_a_marker_that_asks_for_the_senders_window() -> None:
    [cell] = thesis.chosen(["A/100 TCP Friendly & RIO"], of=STUDY)
    oracle = next(one for one in STUDY.variant if "window sender" in one.marker.get("tcp_friendly", ""))
    [run] = thesis.runs_of(replace(cell, variant=oracle), of=STUDY, seeds=1)
    world_named("sim").check(run)
    with pytest.raises(
        UsageError, match="hop `r0`: its marker asks for the sender's window, which only the "
    ):
        world_named("lab").check(run)


def test_markers_are_listed(weir_here: Weir) -> None:
    names = [one["name"] for one in json.loads(weir_here("list", "markers", "--json").stdout)]
    assert names[:2] == ["token_bucket", "tcp_friendly"]
    assert len(names) == 7
    assert "RFC 2697" in weir_here("list", "markers", "srtcm").stdout
