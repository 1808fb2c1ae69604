"""Scores: exact values of each formula."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pytest

from weirlab.net.quality import of_second_bottlenecks, of_the_interface, warnings_of_method
from weirlab.record.columns import Columns
from weirlab.record.round_trips import round_trips_in
from weirlab.report.location import location_table
from weirlab.report.scores import advice
from weirlab.scores import (
    Loaded,
    Measured,
    Scores,
    Verdict,
    aim,
    bufferbloat,
    measured,
    quality_of_outcome,
    responsiveness,
    score_all,
    verdict,
    verdict_of_pings,
)
from weirlab.scores.bufferbloat import MEANING
from weirlab.scores.locate import Hop, Location, another, begin
from weirlab.scores.scores import Score
from weirlab.stats import Distribution, Pings, describe
from weirlab.worlds.machine import signal_dbm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


def distribution(values: list[float]) -> Distribution:
    """The figures of some numbers."""
    figures = describe(pl.Series(values))
    assert figures is not None
    return figures


def pings_of(rtt_ms: NDArray[np.float64], lost: int) -> Pings:
    """Pings of which some were answered after that long, and others were lost."""
    return Pings(
        rtt_ns=[np.rint(rtt_ms * 1e6).astype(np.int64)],
        sent=rtt_ms.size + lost,
        answered=rtt_ms.size,
        lost=lost,
    )


def loaded(phase: str, rtt: float, *, lost: int = 0, in_flow: float | None = None) -> Loaded:
    """A phase in which every ping took `rtt` ms, and 20 ms before it."""
    took = np.full(100, rtt)
    return Loaded(
        phase=phase,
        start_ns=0,
        end_ns=1,
        latency=distribution(took.tolist()),
        pings=pings_of(took, lost),
        in_flow_ms=np.full(10, rtt if in_flow is None else in_flow),
        down_mbps=60.0,
        up_mbps=12.0,
        increase_ms=rtt - 20,
    )


def test_of(*phases: Loaded) -> Measured:
    """A test with these phases after an idle one."""
    idle = [20.0, 22.0] * 50
    return Measured(
        idle=distribution(idle),
        before=pings_of(np.array(idle), 0),
        loaded={one.phase: one for one in phases},
    )


test_of.__test__ = False  # type: ignore[attr-defined] # a helper


@pytest.mark.parametrize(
    ("increase", "letter"),
    [
        (-1, "A+"),
        (4.9, "A+"),
        (5, "A"),
        (29.9, "A"),
        (30, "B"),
        (60, "C"),
        (200, "D"),
        (399, "D"),
        (400, "F"),
    ],
)
def test_grades_change_at_their_thresholds(increase: float, letter: str) -> None:
    """DSLReports, FAQ 17930."""
    assert bufferbloat.grade(increase) == letter


VECTOR = Path(__file__).parent.parent / "vectors" / "test-figures.json"
"""Rows of a test and its figures, to which `weir-agent test` is held too (crates/client/src/figures.rs)."""


def record_of(vector: dict[str, Any], reached_ns: int | None = None) -> Any:
    """As much of a record as figures are taken from, with the rows of the vector, all unless `reached_ns`."""
    spans = {phase["name"]: (phase["start_ns"], phase["end_ns"]) for phase in vector["phases"]}
    senders = pl.DataFrame(schema={"t_ns": pl.Int64, "srtt_ns": pl.Int64})
    pings = Columns.of_frame("latency", pl.DataFrame(vector["latency"]))
    tables = {"tcp": senders, "throughput": pl.DataFrame(vector["throughput"]).with_columns(wire_bytes=0)}
    flows = [{"flow": number, "protocol": "tcp", **flow} for number, flow in enumerate(vector["flows"])]
    return SimpleNamespace(
        phase=spans.get,
        ping_probes=[0],
        round_trip_chunks=lambda: iter([round_trips_in(pings)]),
        pieces=lambda table, _: iter([Columns.of_frame(table, tables[table])]),
        flow_rows=flows,
        flows_in=lambda way: [flow for flow in flows if flow["direction"] == way],
        interval_ns=lambda _table: vector["interval_ns"],
        has_rows=lambda _table: True,
        manifest=SimpleNamespace(
            extra={"ramps": vector["ramps"]}, imported=None, scenario={"phases": vector["phases"]}
        ),
        reached_ns=reached_ns if reached_ns is not None else vector["phases"][-1]["end_ns"],
    )


@pytest.mark.parametrize("late_ns", [0, 12_000_000])
def test_figures_of_a_test_are_those_of_the_vector(late_ns: int) -> None:
    """Samples that are taken a little late tell of the same intervals."""
    vector = json.loads(VECTOR.read_text(encoding="utf-8"))
    for row in vector["throughput"]:
        row["t_ns"] += late_ns
    figures = measured(cast("Any", record_of(vector)))
    assert figures is not None
    loaded = {
        name: {
            "pings": {
                "sent": one.pings.sent,
                "lost": one.pings.lost,
                "mean_ms": one.latency.mean,
                "median_ms": one.latency.median,
            },
            "increase_ms": one.increase_ms,
            "down_mbps": one.down_mbps,
            "up_mbps": one.up_mbps,
        }
        for name, one in figures.loaded.items()
    }
    idle = {
        "sent": figures.before.sent,
        "lost": figures.before.lost,
        "mean_ms": figures.idle.mean,
        "median_ms": figures.idle.median,
    }
    assert vector["figures"] == {
        "idle": idle,
        "loaded": loaded,
        "down_mbps": figures.down_mbps,
        "up_mbps": figures.up_mbps,
        "worst_increase_ms": figures.worst.increase_ms,
    }


@pytest.mark.parametrize(
    ("reached_s", "said"),
    [
        (21, "the upload and both at once"),
        (30, "both at once"),
    ],
)
def test_a_test_that_was_cut_short_has_figures_and_no_grade(reached_s: int, said: str) -> None:
    vector = json.loads(VECTOR.read_text(encoding="utf-8"))
    record = record_of(vector, reached_s * 1_000_000_000)
    figures = measured(record)
    assert figures is not None
    assert figures.down_mbps == vector["figures"]["down_mbps"]
    scores = score_all(record, figures)
    assert (scores.grade, scores.as_dict()) == (None, [])
    (told,) = [text.plain for text in advice(figures, scores)]
    assert told.endswith(f", and the test did not come to the end of {said}.")


@pytest.mark.parametrize("share", [0.79, 0.81, 2.0])
def test_a_line_of_which_the_server_lets_only_so_much_pass_is_not_called_full(share: float) -> None:
    vector = json.loads(VECTOR.read_text(encoding="utf-8"))
    record = record_of(vector)
    most = max(vector["figures"]["down_mbps"], vector["figures"]["up_mbps"])
    limits = {"rate_bps": None}, {"rate_bps": round(most * 1e6 / share)}
    record.manifest.extra["servers"] = [{"name": "s", "limits": one} for one in limits]
    found = measured(record)
    assert found is not None
    figures = replace(found, ungraded=None)
    scores = Scores(scores=[Score(**bufferbloat.worse_direction(figures))])
    told = " ".join(text.plain for text in advice(figures, scores))
    assert ("With as much as the server lets pass (" in told) == (share > 0.8)
    assert ("With the line full" in told) == (share < 0.8)
    assert ("which may be more than this server let pass" in told) == (share > 0.8)
    assert ("of what was measured" in told) == (share < 0.8)


SILENCES = json.loads((VECTOR.parent / "test-silences.json").read_text(encoding="utf-8"))
"""What came in of tests, and why they have no grade, here and in crates/client/src/silence.rs."""


@pytest.mark.parametrize("case", SILENCES["cases"], ids=lambda case: case["name"])
def test_a_test_whose_path_or_server_fell_silent_has_no_grade(case: dict[str, Any]) -> None:
    def rows(of: str) -> Iterator[tuple[int, int]]:
        for start, end, last in case.get(of, []):
            step = 100 if of == "pings_answered" else last
            yield from ((ms * 1_000_000, last * 1_000_000) for ms in range(start, end, step))

    vector = {
        "interval_ns": 100_000_000,
        "phases": [{"name": "idle", "start_ns": 0, "end_ns": 4_000_000_000}, *SILENCES["phases"]],
        "ramps": [{"phase": "download", "direction": "down", "flows": 2, "full_ns": None}],
        "flows": [
            {"direction": way, "start_ns": 4_000_000_000, "stop_ns": 32_000_000_000} for way in ("down", "up")
        ],
        "latency": [{"t_ns": at, "probe": 0, "rtt_ns": rtt} for at, rtt in rows("pings_answered")],
        "throughput": [
            {"t_ns": at, "flow": flow, "bytes": 1000}
            for flow, way in enumerate(("down", "up"))
            for of in ("data", f"data_{way}")
            for at, _ in rows(of)
        ],
    }
    record = record_of(vector, case["reached_ms"] * 1_000_000)
    figures = measured(record)
    assert figures is not None
    assert figures.ungraded == case["why"]
    if case["why"] is not None:
        scores = score_all(record, figures)
        assert scores.grade is None
        assert [text.plain for text in advice(figures, scores)] == [f"No grade: {case['why']}."]


def test_the_worst_phase_is_graded_and_the_mean_of_both() -> None:
    """170 ms in the upload alone are a C; DSLReports takes the mean with the download."""
    figures = test_of(loaded("download", 24), loaded("upload", 190))
    assert bufferbloat.worse_direction(figures)["value"] == "C"
    both = bufferbloat.dslreports(figures)
    assert both is not None
    assert (both["value"], both["parts"]["increase_ms"]) == ("C", 87.0)


def test_rpm_by_both_formulas() -> None:
    """Self 100 ms, foreign 10 ms: 3300 by the draft, 1091 by goresponsiveness."""
    draft, other = responsiveness.rpm(test_of(loaded("download", 10, in_flow=100)))
    assert (draft["value"], other["value"]) == (3300, 1091)
    assert draft["says"] == "good."


def test_the_trimmed_mean_of_many_pings_is_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    pings = pings_of(np.random.default_rng(5).gamma(2, 10, 5001), 3)
    held = responsiveness.trimmed_mean_of(pings)
    assert held == responsiveness.trimmed_mean(pings.rtt_ms)
    monkeypatch.setattr(responsiveness, "MOST_HELD", 1000)
    assert responsiveness.trimmed_mean_of(pings) == pytest.approx(held, rel=1e-12)


def test_the_trimmed_mean_leaves_the_worst_out() -> None:
    """5 of 100."""
    values = np.array([1.0] * 95 + [1000.0] * 5)
    assert responsiveness.trimmed_mean(values) == 1.0


def test_aim_points_are_sums() -> None:
    """Latency 21 ms: 5, jitter 2 ms: 10, no loss: 10, 60 Mbit/s: 20, 59 ms more: 0."""
    streaming, gaming, calls = aim.points(test_of(loaded("download", 80)))
    assert (streaming["value"], streaming["says"]) == (35, "average.")
    assert (gaming["value"], gaming["says"]) == (15, "average.")
    assert (calls["value"], calls["says"]) == (25, "good.")


def test_an_outcome_is_that_of_its_weakest_part() -> None:
    """A game at 125 ms is half way between 50 and 200; a stream does not care."""
    figures = test_of(loaded("download", 125))
    call, game, stream = quality_of_outcome.applications(figures)
    assert (call["value"], game["value"], stream["value"]) == (95, 50, 100)
    assert game["says"] == "held back by latency during the download."


def test_the_wait_begins_where_half_of_it_is() -> None:
    """A router that says nothing is passed over; one that is slow of itself does not count."""

    def hop(name: str, more: float | None) -> Hop:
        increase = {} if more is None else {"upload": more}
        return Hop(name=name, ttl=None, idle_ms=1.0, increase_ms=increase, answered=1.0)

    hops = [
        hop("router 1", 90),
        hop("router 2", 1),
        hop("router 3", None),
        hop("router 4", 95),
        hop("server", 100),
    ]
    assert begin("upload", hops) == "router 4"
    assert begin("upload", [hop("router 1", 1), hop("server", 3)]) is None
    assert begin("upload", [hop("router 1", 99), hop("server", 100)]) == "router 1"


def hops(**increases: float) -> list[Hop]:
    """Hops in order, each with its increase in the upload."""
    return [
        Hop(name=name, ttl=None, idle_ms=1.0, increase_ms={"upload": more}, answered=1.0)
        for name, more in increases.items()
    ]


@pytest.mark.parametrize(
    ("increases", "first", "second"),
    [
        ({"r1": 0, "r2": 60, "server": 100}, "r2", "server"),
        ({"r1": 30, "r2": 30, "server": 100}, "server", "r1"),
        ({"r1": 0, "r2": 90, "server": 100}, "r2", None),
        # Router 1 answers late of itself.
        ({"r1": 50, "r2": 1, "server": 100}, "server", None),
        ({"r1": 1, "server": 4}, None, None),
    ],
)
def test_a_second_bottleneck_adds_a_quarter(
    increases: dict[str, float], first: str | None, second: str | None
) -> None:
    """Of the whole increase, at a hop besides the one at which the wait begins."""
    all_hops = hops(**increases)
    assert begin("upload", all_hops) == first
    assert another("upload", all_hops) == second


def test_routers_that_never_answer_are_no_rows() -> None:
    """They are named below the table, with where the queue is: once, if it is the same in all phases."""
    more = {"download": 62.0, "upload": 70.0}
    hops = [
        Hop(name="router 1", ttl=1, idle_ms=0.3, increase_ms=dict.fromkeys(more, 0.1), answered=1.0),
        Hop(name="router 2", ttl=2, idle_ms=None, increase_ms={}, answered=0.0),
        Hop(name="router 3", ttl=3, idle_ms=None, increase_ms={}, answered=0.0),
        Hop(name="server", ttl=None, idle_ms=5.0, increase_ms=more, answered=1.0),
    ]
    table = location_table(Location(hops=hops, begins=dict.fromkeys(more, "server"), also={}))
    assert list(table.columns[0].cells) == ["router 1", "server"]
    assert table.caption == "no answer from routers 2, 3; the queue is before server in every phase"
    different = Location(hops=hops[:1], begins={"download": "router 1", "upload": None}, also={})
    assert (
        location_table(different).caption
        == "the queue is, in phase download: before router 1; upload: no wait to be placed"
    )


def test_two_bottlenecks_are_a_caution() -> None:
    """Where two hops wait, and where both directions take from each other without a wait."""
    place = Location(hops=[], begins={"upload": "router 2"}, also={"upload": "server"})
    said = list(of_second_bottlenecks(test_of(loaded("upload", 90)), place))
    assert said == ["pings wait at router 2 and also at server in phase upload: two bottlenecks"]
    down, up, both = (loaded(name, 30) for name in ("download", "upload", "load"))
    assert list(of_second_bottlenecks(test_of(down, up, both), None)) == []
    shared = replace(both, down_mbps=30.0, up_mbps=7.2)
    (caution,) = of_second_bottlenecks(test_of(down, up, shared), None)
    assert "reached 50% and 60% of what each had alone" in caution
    # With a deep queue the acknowledgements wait in it: that is one bottleneck.
    bloated = replace(shared, increase_ms=100.0)
    assert list(of_second_bottlenecks(test_of(down, up, bloated), None)) == []


def test_offloads_are_a_caution_where_they_make_the_wait() -> None:
    """64 KiB at 12 Mbit/s are 44 ms."""
    offloads = {"tso": True, "gso": True, "gro": True, "lro": False}
    machine = {"interface": "eth0", "wireless": False, "power_save": None, "offloads": offloads}
    (caution,) = of_the_interface(machine, test_of(loaded("upload", 60)))
    assert "up to 44 ms of this line each: waits of 40 ms" in caution
    assert list(of_the_interface(machine, test_of(loaded("upload", 500)))) == []
    assert list(of_the_interface(machine | {"offloads": None}, test_of(loaded("upload", 60)))) == []
    joined = machine | {"offloads": offloads | {"tso": False, "gso": False, "lro": True}}
    (caution,) = of_the_interface(joined, test_of(loaded("upload", 60)))
    assert "large-receive-offload" in caution


def test_a_radio_is_a_caution() -> None:
    """Its sleep, and a signal too weak for its rates."""
    table = (
        "Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE\n"
        " face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22\n"
        " wlan0: 0000   30.  -80.  -256        0      0      0      4     70        0\n"
    )
    assert signal_dbm(table, "wlan0") == -80.0
    assert signal_dbm(table, "wlan1") is None
    assert signal_dbm(table.replace("-80.", "  50"), "wlan0") is None
    machine = {"interface": "wlan0", "wireless": True, "power_save": True, "signal_dbm": -80.0}
    asleep, weak = of_the_interface(machine, test_of(loaded("upload", 60)))
    assert "wireless and saves power" in asleep
    assert "-80 dBm" in weak


def test_a_truncated_foreign_test_is_a_caution() -> None:
    """A tail that is missing."""
    result: Any = {
        "method": "ndt7",
        "latency_ms": 150.0,
        "download_duration_s": 10.0,
        "upload_duration_s": 1.14,
        "truncated": {"download": False, "upload": True},
    }
    truncated, far = warnings_of_method(result)
    assert truncated.startswith("the upload ended after 1.1 s where 10 s were due")
    assert far.startswith("the server is 150 ms away")


def test_a_line_that_was_never_full_has_no_grade() -> None:
    """Of the method `http`: a file that is over at once leaves the line idle, and pings quick."""

    def of(download: dict[str, Any] | None, upload: dict[str, Any] | None) -> Verdict:
        result: Any = {"method": "http", "download": download, "upload": upload}
        return verdict(result)

    small = {"saturated": False, "latency_increase_ms": 0.1}
    assert of(small, None) == Verdict(
        grade=None, says="No grade: the line was never full, so that nothing is known of it."
    )
    full = {"saturated": True, "latency_increase_ms": 70.0}
    judged = of(small, full)
    assert judged.grade == "C"
    assert judged.says.endswith("70 ms longer during the upload: " + MEANING["C"])
    assert of(None, None).grade is None


@pytest.mark.parametrize(
    ("result", "grade", "words"),
    [
        (
            {
                "method": "cloudflare",
                "latency_ms": 20.0,
                "download_loaded_latency_ms": 49.9,
                "upload_loaded_latency_ms": None,
            },
            "A",
            "30 ms longer during the download: " + MEANING["A"],
        ),
        (
            {
                "method": "ookla",
                "latency_ms": 20.0,
                "download_loaded_latency_ms": 19.0,
                "upload_loaded_latency_ms": 420.0,
            },
            "F",
            "400 ms longer during the upload",
        ),
        ({"method": "ndt7", "latency_ms": 20.0}, None, "ndt7 showed no latency while the line was full"),
        (
            {"method": "rpm", "download": {"rpm": 299.9}, "upload": {"rpm": 6000.0}},
            None,
            "during the download is poor: 300 round trips a minute",
        ),
        ({"method": "rpm", "download": None, "upload": {"rpm": 1000.0}}, None, "during the upload is good"),
        ({"method": "rpm", "download": {"rpm": None}, "upload": None}, None, "no probe was answered"),
    ],
)
def test_a_foreign_test_is_judged_by_the_same_grades(result: Any, grade: str | None, words: str) -> None:
    judged = verdict(result)
    assert judged.grade == grade
    assert words in judged.says


def test_pings_beside_a_foreign_test_have_the_same_grades() -> None:
    for increase, letter in ((-3.0, "A+"), (5.0, "A"), (59.9, "B"), (400.0, "F")):
        judged = verdict_of_pings(increase)
        assert judged.grade == letter
        assert f"{max(increase, 0):.0f} ms longer on average" in judged.says
        assert judged.says.endswith(f"grade {letter}, {MEANING[letter]}")


def test_a_foreign_test_says_which_figures_it_lacks() -> None:
    cloudflare: Any = {
        "method": "cloudflare",
        "latency_ms": 1.0,
        "download_loaded_latency_ms": None,
        "download_mbps": 9000.0,
        "upload_mbps": None,
    }
    assert warnings_of_method(cloudflare) == [
        "no download took 250 ms: this method then has no latency under load",
        "no upload took 10 ms: this method then has no rate for it",
    ]
    rpm: Any = {"method": "rpm", "download": {"rpm": 12.3}, "upload": {"rpm": None}}
    assert warnings_of_method(rpm) == ["no probe was answered in the upload: it has no responsiveness"]
