"""The study `speedtest-aqm`: its grid, what is kept of a run, and the arithmetic of its findings."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pytest

from weirlab.errors import LabError, UsageError
from weirlab.plots.canvas import measuring
from weirstudies.running import Manner
from weirstudies.speedtest_aqm import (
    calibration,
    charts,
    claims,
    cross,
    design,
    findings,
    lab,
    measure,
    page,
    rules,
)
from weirstudies.speedtest_aqm.design import Cell, all_cells, chosen, lab_cells, study, usual_cells
from weirstudies.speedtest_aqm.figures import Run, Way, spread

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record

OF = study()
CELL = Cell(rate_mbps=100, rtt_ms=20, queue="pfifo-4bdp", burst="g2", cross="none", method="weir")


def test_the_grid_is_the_issues() -> None:
    whole = all_cells(OF)
    count = len(design.methods(OF))
    assert len(whole) == 9 * 2 * 7 * 3 * 4 * count
    assert set(whole.values()) == {10}
    assert [one.name for one in OF.method] == ["ndt7", "cloudflare", "librespeed", "ookla", "rpm", "weir"]
    # What runs if nothing is said is a part of it, but for the authors' own sets and senders.
    strangers = {cell for cell in usual_cells(OF) if cell not in whole}
    assert {(cell.cross, cell.client_cc) for cell in strangers} == {
        ("cubic-up", "bbr"),
        ("cubic-up", None),
        ("none", "bbr"),
    }
    assert len(lab_cells(OF)) == 7 * 6 + 4 * 2 + 3 * 3 * 3
    assert set(lab_cells(OF)) <= set(usual_cells(OF))


def test_cells_have_names_and_are_chosen_by_patterns() -> None:
    assert CELL.name == "100mbit 20ms pfifo-4bdp g2 none weir"
    assert design.cell_named(CELL.name) == CELL
    bbr = "300mbit 20ms codel g2 cubic-up ndt7 bbr"
    assert design.cell_named(bbr).client_cc == "bbr"
    found = chosen(all_cells(OF), ["100mbit 10ms * g0 none weir"], repetitions=2)
    assert len(found) == 7
    assert set(found.values()) == {2}
    with pytest.raises(UsageError, match=r"no cell `150mbit \*`.*--full has all of them"):
        chosen(usual_cells(OF), ["150mbit *"])


def test_shapers_and_queues_are_the_authors() -> None:
    # 4 * 100 Mbit/s * 20 ms = 1 MB, in packets of 1514 bytes; 36 KiB of tokens a Mbit/s.
    assert design.queue_words(CELL, OF).splitlines() == [
        "qdisc add dev eth0 root handle 1: htb default 11",
        (
            "class add dev eth0 parent 1: classid 1:11 htb rate 100000kbit ceil 160000kbit burst 3600k "
            "cburst 3600k"
        ),
        "qdisc add dev eth0 parent 1:11 handle 20: pfifo limit 661",
    ]
    plain = Cell(rate_mbps=900, rtt_ms=10, queue="pfifo-1bdp", burst="g0", cross="none", method="weir")
    assert design.queue_words(plain, OF).splitlines()[1:] == [
        "class add dev eth0 parent 1: classid 1:11 htb rate 900000kbit",
        "qdisc add dev eth0 parent 1:11 handle 20: pfifo limit 744",
    ]


def test_cross_traffic_and_ramp() -> None:
    udp = Cell(rate_mbps=200, rtt_ms=20, queue="sfq", burst="g0", cross="udp", method="weir")
    scenario = design.runs_of(udp, of=OF, repetitions=1)[0].scenario
    streams = scenario["probes"][1:]
    # A tenth of 200 Mbit/s in packets of 1428 bytes.
    assert [one["period_ns"] for one in streams] == [571_200] * 5
    assert {one["payload_bytes"] for one in streams} == {1400}
    starts = [flow["start_ns"] for flow in scenario["flows"] if flow["direction"] == "down"]
    assert starts == [5_000_000_000] * 2 + [5_500_000_000] * 2 + [6_000_000_000] * 4
    up = Cell(rate_mbps=200, rtt_ms=20, queue="sfq", burst="g0", cross="cubic-up", method="weir")
    flows = design.runs_of(up, of=OF, repetitions=1)[0].scenario["flows"]
    assert [flow["direction"] for flow in flows if flow["name"].startswith("cross")] == ["up"] * 5


def test_a_simulated_cell_is_kept_and_goes_on(tmp_path: Path) -> None:
    how = Manner(folder=tmp_path, goes_on=True, jobs=2, quiet=True)

    def simulate(repetitions: int) -> list[Run]:
        return measure.simulate({CELL: repetitions}, how, of=OF)[CELL]

    (run,) = simulate(1)
    down = run.ways["down"]
    assert down.other is not None
    assert down.queue is not None
    # Eight flows fill four bandwidth-delay products: 80 ms on top of 20, less the troughs of CUBIC.
    assert 80 < down.other.median < 100
    assert abs(down.other.median - down.queue.median) < 2
    assert run.result["down_loaded_ms"] == pytest.approx(down.other.median, abs=3)
    assert run.seconds == 18.0
    assert measure.all_simulated(how.store) == {CELL: [run]}
    assert measure.everything(how, OF) == {CELL: [run]}
    finished = how.store.collected()["finished_at", "processor_s"].rows()
    assert simulate(2)[0] == run
    assert how.store.collected().height == 2
    assert finished[0] in how.store.collected()["finished_at", "processor_s"].rows()


def _run(cell: Cell, result: dict[str, Any], **ways: Way) -> Run:
    return Run(
        key="", cell=cell.name, seed=1, world="sim", result=result, seconds=20, idle_ms=20, ways={**ways}
    )


def _way(own: float, other: float, queue: float, *, mbps: float = 90) -> Way:
    def about(value: float) -> Any:
        return spread(np.array([value]))

    rates = spread(np.array([mbps]))
    assert rates is not None
    return Way(
        loaded_s=10,
        mbps=mbps,
        cross_mbps=None,
        rates=rates,
        own=about(own),
        srtt=about(own),
        other=about(other),
        queue=about(queue),
    )


def test_reported_figures() -> None:
    rpm = {metric.name: metric for metric in OF.method_named("rpm").metric}
    run = _run(CELL, {"download": {"rpm": 1200.0, "self_http_ms": 70.0}, "upload": None})
    assert calibration.reported_ms(run, rpm["60000/RPM down"]) == 50.0
    assert calibration.reported_ms(run, rpm["self down"]) == 70.0
    assert calibration.reported_ms(run, rpm["self up"]) is None


def test_calibration_is_by_run_then_by_cell() -> None:
    metric = OF.method_named("weir").metric[0]
    slow = CELL
    fast = Cell(rate_mbps=300, rtt_ms=20, queue="pfifo-4bdp", burst="g0", cross="none", method="weir")
    runs = {
        slow: [
            _run(slow, {"down_loaded_ms": 75.0}, down=_way(100, 80, 90)),
            _run(slow, {"down_loaded_ms": 100.0}, down=_way(100, 80, 90)),
            _run(slow, {"down_loaded_ms": None}, down=_way(100, 80, 90)),
        ],
        fast: [_run(fast, {"down_loaded_ms": 30.0}, down=_way(40, 30, 30))],
    }
    row = calibration.row(runs, metric, "pfifo-4bdp", crossed=False, world="sim")
    assert (row.cells, row.runs, row.missing) == (2, 4, 1)
    assert row.reported == calibration.Range(median=58.75, low=30, high=87.5)
    own = row.gaps["own"]
    assert own.difference == calibration.Range(median=-11.25, low=-12.5, high=-10)
    assert own.ratio == calibration.Range(median=0.8125, low=0.75, high=0.875)
    assert row.gaps["queue"].truth == calibration.Range(median=60, low=30, high=90)
    rows = calibration.rows(runs, OF)
    assert [(one.metric.name, one.world) for one in rows] == [
        ("loaded ping down", "sim"),
        ("loaded ping up", "sim"),
    ]
    assert rows[1].reported is None


def test_what_the_lab_spoiled_does_not_count() -> None:
    metric = OF.method_named("weir").metric[0]
    sound = _run(CELL, {"down_loaded_ms": 70.0}, down=_way(100, 80, 90))
    spoiled = _run(CELL, {"down_loaded_ms": 900.0}, down=_way(100, 80, 90))
    spoiled = spoiled.model_copy(update={"disturbed": "late"})
    (row, _) = calibration.rows({CELL: [sound, spoiled]}, OF)
    assert (row.metric, row.runs, row.reported) == (metric, 1, calibration.Range(median=70, low=70, high=70))
    quiet = {"late_p99_ns": 4_900_000, "overrun": 0, "refused": 0}
    assert lab.disturbed(quiet, 4.9) is None
    assert (
        lab.disturbed(quiet | {"late_p99_ns": 5_200_000}, 0) == "1 % of packets left 5.2 ms or more too late"
    )
    assert lab.disturbed(quiet | {"overrun": 3}, 0) == "3 packets were lost in front of the emulator"
    assert lab.disturbed(quiet, 7) == "a tenth of the pings were sent 7.0 ms or more too late"
    assert lab.at_another_age(5_500_000_000) is None
    assert (
        lab.at_another_age(7_300_000_000) == "the test began 7.3 s after the cross traffic, in place of 5 s"
    )


def test_how_far_srtt_is_from_round_trips_one_by_one() -> None:
    one = _way(100, 80, 90)
    runs = [
        _run(CELL, {}, down=one.model_copy(update={"srtt": spread(np.array([100.0 + late]))}))
        for late in range(21)
    ]
    assert calibration.stand_in({CELL: runs}) == calibration.Range(median=10, low=0.1, high=19.9)
    assert calibration.stand_in({CELL: [_run(CELL, {}, down=one.model_copy(update={"own": None}))]}) is None


def test_both_ends_of_the_lab_send_as_the_cell_says(tmp_path: Path) -> None:
    plain = Cell(rate_mbps=100, rtt_ms=20, queue="cake", burst="g0", cross="none", method="ookla")
    cubic = "ip route replace 10.0.0.0/8 dev weir0 proto kernel scope link congctl cubic && "
    assert lab.behind(plain, OF).startswith(f"{cubic}exec ")
    assert cubic in lab.before(plain, OF, tmp_path)
    test = "-m weirstudies.speedtest_aqm.client"
    named = f" {test} '100mbit 20ms cake g0 none ookla' server {tmp_path}/pings >{tmp_path}/said.json"
    assert lab.before(plain, OF, tmp_path).endswith(named)
    beside = Cell(rate_mbps=100, rtt_ms=20, queue="cake", burst="g0", cross="udp", method="weir")
    assert " serve --listen 8081 " in lab.behind(beside, OF)
    words = lab.before(beside, OF, tmp_path)
    assert "'100mbit 20ms cake g0 udp weir' server:8081 " in words
    named = f"{test} '100mbit 20ms cake g0 udp weir' server {tmp_path}/pings {tmp_path}/cross >"
    assert named in words
    # Five streams of a tenth of the rate, until after the test, 22 s at most, and 5 s before it.
    scenario = cross.run_of(beside, OF).scenario
    assert scenario["duration_ns"] == (22 + 5 + 60) * 1_000_000_000
    assert [one["period_ns"] for one in scenario["probes"]] == [1_142_400] * 5
    assert scenario["path"] == {"up": [], "down": []}


def test_a_sender_with_another_congestion_control_is_refused() -> None:
    """Of the test, and of the five flows each way beside it; not of what ends tell each other."""
    cell = Cell(rate_mbps=100, rtt_ms=20, queue="pfifo-4bdp", burst="g0", cross="bbr", method="ookla")

    def line(**of_last_up: str) -> Record:
        """A connection of the test, the session of the cross traffic, and its five flows each way."""
        plain = {"client_congestion_control": "cubic", "server_congestion_control": "cubic"}
        up, down = plain | {"client_congestion_control": "bbr"}, plain | {"server_congestion_control": "bbr"}
        beside = [
            {"server": "10.1.0.1:8081", **one} for one in [plain, *[up] * 4, up | of_last_up, *[down] * 5]
        ]
        flows = [(2, 400), (3, 700), *[(2 * place, 9_000) for place in range(2, 7)]]
        flows += [(2 * place + 1, 8_000) for place in range(7, 12)]
        told = SimpleNamespace(
            manifest=SimpleNamespace(extra={"connections": [{"server": "10.1.0.1:8080", **plain}, *beside]}),
            throughput=pl.DataFrame(flows, schema=["flow", "bytes"], orient="row"),
        )
        return cast("Record", told)

    lab.check_senders(cell, OF, line())
    instead = "sent with cubic in place of bbr"
    with pytest.raises(LabError, match=f"client of a connection to port 8081 {instead}"):
        lab.check_senders(cell, OF, line(client_congestion_control="cubic"))
    uploads = dataclasses.replace(cell, method="ndt7")
    with pytest.raises(LabError, match=f"server of a connection to port 8080 {instead}"):
        lab.check_senders(uploads, OF, line())


def test_connections_of_the_lab_are_told_apart() -> None:
    """The test's are those to its port, and its senders count while they move data."""
    cell = Cell(rate_mbps=100, rtt_ms=20, queue="fq_codel", burst="g0", cross="cubic", method="ookla")
    tick = 100_000_000
    line = SimpleNamespace(
        manifest=SimpleNamespace(
            extra={
                "connections": [
                    {"server": "10.1.0.1:8081"},
                    {"server": "10.1.0.1:8080"},
                    {"server": "10.1.0.1:8080"},
                ],
                "monotonic_zero_ns": 1_000,
            },
        ),
        interval_ns=lambda _table: tick,
        # Cross traffic down (1); the test's load down (3), its pings on another connection (5), and what it
        # asks for (2).
        throughput=pl.DataFrame(
            {
                "t_ns": [tick, tick, tick, tick, 2 * tick],
                "flow": [1, 2, 3, 5, 3],
                "bytes": [900_000, 500, 250_000, 300, 125_000],
                "wire_bytes": [0] * 5,
            }
        ),
        tcp=pl.DataFrame(
            {
                "t_ns": [tick, tick, tick, tick, 2 * tick],
                "flow": [1, 2, 3, 5, 3],
                "srtt_ns": [90_000_000, 21_000_000, 30_000_000, 20_000_000, 34_000_000],
            }
        ),
        queue=pl.DataFrame(
            {
                "t_ns": [tick, tick, 2 * tick],
                "queue": ["down/router", "up/router", "down/router"],
                "class": ["", "", ""],
                "sojourn_mean_ns": [5_000_000, 1_000_000, None],
            }
        ),
    )
    pings = SimpleNamespace(
        manifest=SimpleNamespace(extra={"monotonic_zero_ns": 1_000 + tick}),
        # On their own clock, which began an interval later.
        pings=pl.DataFrame({"t_ns": [50_000_000, 2 * tick], "rtt_ns": [20_500_000, 99_000_000]}),
    )
    seen = lab.seen_of(cell, cast("Record", line), cast("Record", pings))
    assert (seen.first_loaded_ns(), seen.last_loaded_ns()) == (0, 2 * tick)
    ways = seen.ways()
    assert list(ways) == ["down"]
    down = ways["down"]
    # 375 and 0.3 KB in 0.2 s; cross traffic 900 KB in the same.
    assert (down.mbps, down.cross_mbps) == (15.012, 36.0)
    assert down.own is None
    assert down.srtt == spread(np.array([30.0, 34.0]))
    assert down.other == spread(np.array([20.5]))
    assert down.queue == spread(np.array([26.0, 20.0]))


def _cross(queue: str, rate: int, mbps: float, srtt: float) -> tuple[Cell, list[Run]]:
    cell = Cell(
        rate_mbps=rate,
        rtt_ms=20,
        queue=queue,
        burst="g2",
        cross="cubic-up",
        method="ndt7",
        client_cc="bbr",
    )
    return cell, _seeds(_run(cell, {}, up=_way(srtt, 20, 20, mbps=mbps)))


def _seeds(run: Run) -> list[Run]:
    """Five repetitions that are alike."""
    return [run.model_copy(update={"seed": seed}) for seed in range(1, 6)]


def _judge(found: dict[Cell, list[Run]], beginning: str) -> findings.Judged:
    (one,) = [one for one in findings.judged(found, OF) if one.rule.says.startswith(beginning)]
    return one


def test_statements_are_judged_by_their_rules() -> None:
    fair = dict(
        _cross(queue, rate, share * rate / 6, 30)
        for rate in claims.COMPARED
        for queue, share in (("fq_codel", 1.0), ("sfq", 0.95), ("codel", 2.5))
    )
    assert _judge(fair, "Beside five flows a queue for each").seen is True
    bbr = _judge(fair, "Beside five CUBIC")
    assert bbr.seen is True
    assert "of a sixth at 100 2.5 [2.5, 2.5]" in bbr.evidence[0]
    unfair = fair | dict([_cross("sfq", 300, 0.8 * 50, 30)])
    assert _judge(unfair, "Beside five flows a queue for each").seen is False
    baseline = fair | dict(_cross("pfifo-100", rate, 10, 25) for rate in claims.COMPARED)
    assert _judge(baseline, "The drop-tail baseline").seen is True
    missing = _judge({}, "The drop-tail baseline")
    assert missing.seen is None
    assert missing.evidence == [findings.NOT_RUN]
    # What was not run cannot be decided by more repetitions.
    assert findings.wanting([missing]) == set()


def test_more_repetitions_are_wanted_where_an_interval_holds_the_bound() -> None:
    """Codel's share of a sixth differs from run to run, on both sides of the bound."""
    found = dict(_cross("codel", rate, 2.5 * rate / 6, 30) for rate in (100, 200, 300))
    cell, runs = _cross("codel", 100, 1, 30)
    found[cell] = [
        run.model_copy(update={"ways": {"up": _way(30, 20, 20, mbps=1.8 * 100 / 6 + run.seed - 3)}})
        for run in runs
    ]
    one = _judge(found, "Beside five CUBIC")
    assert one.seen is None
    assert findings.wanting([one]) == set(found)


def test_the_sender_of_the_first_set_is_an_assumption_that_is_shown() -> None:
    """With BBR the uploads are the authors', with CUBIC a tenth less: BBR counts, CUBIC stands beside it."""
    published = OF.published["g0"]
    found = {}
    for rate in claims.COMPARED:
        for sender, share in (("bbr", 1.0), (None, 0.9)):
            cell = Cell(
                rate_mbps=rate,
                rtt_ms=10,
                queue="sfq",
                burst="g0",
                cross="none",
                method="ndt7",
                client_cc=sender,
            )
            mbps = published.at("upload_mbps", "sfq", rate) * share
            found[cell] = _seeds(_run(cell, {"upload_mbps": mbps}))
    one = _judge(found, "Upload through sfq")
    assert one.seen is True
    assert "BBR" in one.rule.changed
    assert any(line.startswith("With a CUBIC sender: **not seen**") for line in one.evidence)


def test_min_rtt_says_nothing_of_the_queue() -> None:
    def runs(low: float, usual: float) -> dict[Cell, list[Run]]:
        cells = {}
        for number, queue in enumerate(("codel", "fq_codel", "sfq")):
            for rate in claims.COMPARED:
                cell = Cell(
                    rate_mbps=rate,
                    rtt_ms=10,
                    queue=queue,
                    burst="g0",
                    cross="none",
                    method="ndt7",
                    client_cc="bbr",
                )
                up = _way(12 + usual * number, 10, 10)
                cells[cell] = _seeds(_run(cell, {"latency_ms": 10 + low * number}, up=up))
        return cells

    assert _judge(runs(0.1, 3.0), "MinRTT").seen is True
    assert _judge(runs(0.3, 3.0), "MinRTT").seen is False
    assert _judge(runs(0.1, 0.1), "MinRTT").seen is False


def test_every_statement_says_when_it_is_seen() -> None:
    assert len({one.says for one in rules.RULES}) == len(rules.RULES) == 21
    for one in rules.RULES:
        assert one.rule
        assert one.by
        # A rule that was changed after its result was known stands beside the one before.
        assert bool(one.others) or not one.changed, one.says
    captions = [one for one in rules.RULES if one.says.startswith("Figure ")]
    assert [one.says[7] for one in captions] == list("12345")


def test_spreads_of_captions_are_judged_by_difference_and_by_ratio_as_before() -> None:
    """Uploads spread more beside cross traffic: figure 5 is seen by the difference and by the ratio."""
    found = {}
    for rate in claims.CAPTIONED:
        for cross_traffic, step in (("none", 1), ("cubic-up", 10)):
            for number, queue in enumerate(claims.QUEUES_OF_AUTHORS):
                cell = Cell(
                    rate_mbps=rate,
                    rtt_ms=20,
                    queue=queue,
                    burst="g2",
                    cross=cross_traffic,
                    method="ndt7",
                    client_cc="bbr",
                )
                found[cell] = _seeds(_run(cell, {"upload_mbps": 50 + step * number}))
    one = _judge(found, "Figure 5")
    assert one.seen is True
    # Means are 51.5 and 65, ranges 3 and 30.
    (ratio,) = (line for line in one.evidence if line.startswith("By their ratio, as before"))
    assert "**seen**: spread at 100 over that of figure 3 7.92 [7.92, 7.92]" in ratio
    assert next(why for why, _ in _judge(found, "Figure 1").others).startswith("By their ratio")


def test_the_page_says_what_was_run() -> None:
    cell, runs = _cross("codel", 100, 40, 30)
    text = page.page({cell: runs}, OF, None)
    assert "Simulator: 1 cells, 5 runs. Lab: 0 cells, 0 runs." in text
    assert "| codel | 40 |" in text
    assert text.count("## ") >= 5
    ndt7 = Cell(rate_mbps=100, rtt_ms=20, queue="cake", burst="g0", cross="none", method="ndt7")
    told = _run(ndt7, {"download_mbps": 93.0, "upload_mbps": 41.4}, up=_way(30, 20, 20))
    late = told.model_copy(update={"world": "lab", "late_ms": 2.5})
    spoiled = late.model_copy(update={"late_ms": 7.5, "disturbed": "late"})
    text = page.page({ndt7: [told, late, spoiled]}, OF, None)
    assert text.count("| ndt7 | none |  |  |  |  |  |  | 93 / 41 |") == 2
    assert "2.5 to 2.5 ms (median of runs 2.5) or more too late; 1 of 1 runs warn of it." in text
    assert " 1 more in which either was over 5 ms" in text
    assert "| lab: real server and client" in text
    # Where both worlds ran: goodput, own flow and pings; nothing was loaded down.
    medians = "none / 90.0 | none / 90.0 | none / 30.0 | none / 30.0 | none / 20.0 |"
    row = f"| cake | 100 | none | ndt7 | 1 | {medians}"
    assert row in text
    rpm = dataclasses.replace(ndt7, method="rpm")
    goodput = {"download": {"goodput_mbps": 91.2}, "upload": {"goodput_mbps": 88.8}}
    assert "| rpm | none |  |  |  |  |  |  | 91 / 89 |" in page.page({rpm: [_run(rpm, goodput)]}, OF, None)


def test_tables_and_charts_do_not_mix_senders() -> None:
    alone = Cell(rate_mbps=500, rtt_ms=20, queue="sfq", burst="g0", cross="none", method="ndt7")
    beside = dataclasses.replace(alone, rate_mbps=charts.AT_MBPS, burst="g2", cross="cubic-up")
    found: dict[Cell, list[Run]] = {}
    for cell, cubic, bbr in ((alone, 230.0, 346.0), (beside, 48.0, 255.0)):
        for sender, mbps, times in ((None, cubic, 1), ("bbr", bbr, 3)):
            one = dataclasses.replace(cell, client_cc=sender)
            way = _way(mbps / 10, 20, 20, mbps=mbps)
            run = _run(one, {"download_mbps": 345.0, "upload_mbps": mbps}, up=way)
            found[one] = [run.model_copy(update={"seconds": mbps / 10})] * times
    text = page.page(found, OF, None)
    assert "BBR down, CUBIC up.\n\nRound trip 20 ms:" in text
    assert "\n| sfq | 345 / 230 |\n" in text
    assert text.count("\n| sfq | 255 |\n") == 1
    assert text.count("\n| sfq | 25.5 |\n") == 1
    # How long a test takes is told of the grid's cells, which send as the method does.
    assert "\n| ndt7 | nothing | 23.0 (23.0 to 23.0) |" in text
    assert "\n| ndt7 | cross traffic |" not in text
    drawn = {name: set(chart.select(found, OF)) for name, chart in charts.CHARTS.items()}
    theirs = dataclasses.replace(beside, client_cc="bbr")
    assert {name: cells for name, cells in drawn.items() if cells} == {
        "throughput": {alone},
        "over-time": {theirs},
        "durations": {alone},
    }


def test_throughput_is_drawn_by_queue_and_cross_traffic() -> None:
    alone = Cell(rate_mbps=100, rtt_ms=20, queue="sfq", burst="g0", cross="none", method="ndt7")
    beside = dataclasses.replace(alone, cross="cubic")
    found = {
        alone: [_run(alone, {}, up=_way(30, 20, 20, mbps=90), down=_way(30, 20, 20, mbps=80))],
        beside: [_run(beside, {}, up=_way(30, 20, 20, mbps=16))],
        CELL: [_run(CELL, {}, up=_way(30, 20, 20, mbps=1))],
    }
    chart = charts.CHARTS["throughput-cdf"]
    cells = chart.select(found, OF)
    assert set(cells) == {alone, beside}
    drawn = [
        {float(x) for line in axes.lines for x in np.asarray(line.get_xdata())}
        for axes in chart.draw(cells, OF).axes
    ]
    # Downloads alone and beside cross traffic, then uploads.
    assert drawn == [{80.0}, set(), {90.0}, {16.0}]


def test_the_legend_of_methods_stands_between_heading_and_panels() -> None:
    alone = Cell(rate_mbps=100, rtt_ms=20, queue="cake", burst="g0", cross="none", method="ndt7")
    crosses = [one.name for one in OF.cross if not one.extra]
    found = {
        cell: [_run(cell, {}, up=_way(60, 20, 20), down=_way(60, 20, 20))]
        for cross in crosses
        for method in OF.method
        for cell in [dataclasses.replace(alone, method=method.name, cross=cross)]
    }
    chart = charts.CHARTS["cross-traffic"]
    figure = chart.draw(chart.select(found, OF), OF)
    renderer = measuring(figure)
    figure.draw(renderer)
    (legend,) = figure.legends
    named = legend.get_window_extent(renderer)
    headings = [text.get_window_extent(renderer) for text in figure.texts[:3]]
    panels = [box for axes in figure.axes if (box := axes.get_tightbbox(renderer)) is not None]
    assert named.y1 <= min(one.y0 for one in headings)
    assert named.y0 >= max(one.y1 for one in panels)
    assert headings[0].x0 <= named.x0
    assert named.x1 <= figure.bbox.x1 - headings[0].x0


def test_logarithmic_axes_of_charts_say_so() -> None:
    cell = Cell(rate_mbps=100, rtt_ms=20, queue="cake", burst="g0", cross="none", method="ndt7")
    found = {
        one: [_run(one, {"latency_ms": 20.0, "srtt_ms": 30.0}, up=_way(60, 20, 20), down=_way(60, 20, 20))]
        for one in (cell, dataclasses.replace(cell, method="weir"), dataclasses.replace(cell, method="rpm"))
    }
    for name in ("latency", "round-trips"):
        chart = charts.CHARTS[name]
        drawn = [axes for axes in chart.draw(chart.select(found, OF), OF).axes if axes.axison]
        assert {axes.get_xscale() for axes in drawn} == {"log"}
        labels = [axes.get_xlabel() for axes in drawn]
        assert set(labels) - {""} == {"ms, log scale"}
        # One a column, at the bottom.
        assert len([label for label in labels if label]) == min(len(labels), 3)


def test_charts_of_the_lab_leave_out_what_was_spoiled() -> None:
    cell = Cell(rate_mbps=100, rtt_ms=20, queue="cake", burst="g0", cross="none", method="weir")
    simulated = _run(cell, {"down_loaded_ms": 20.0}, down=_way(30, 20, 20))
    real = simulated.model_copy(update={"world": "lab"})
    spoiled = real.model_copy(update={"disturbed": "late"})
    found = {cell: [simulated, real, spoiled]}
    assert charts.CHARTS["latency-lab"].select(found, OF) == {cell: [real]}
    assert charts.CHARTS["latency"].select(found, OF) == {cell: [simulated]}
