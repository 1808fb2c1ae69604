"""Bounds of grades, words and remarks: each by its source, on both sides."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
import pytest

import weirlab
from weirlab.scores import aim, gradable, quality_of_outcome, responsiveness
from weirlab.scores.gradable import is_gradable
from weirlab.stats import bypassed_queues, e_model, waiting
from weirlab.stats.probing import idle_loss_remark
from weirlab.stats.udp_losses import udp_rows

if TYPE_CHECKING:
    from pathlib import Path

AIM_POINTS: dict[str, tuple[list[float], list[int]]] = {
    "latency": ([10, 20, 50, 100, 500], [20, 10, 5, 0, -10, -20]),
    "increase": ([10, 20, 50, 100, 500], [20, 10, 5, 0, -10, -20]),
    "jitter": ([10, 20, 100, 500], [10, 5, 0, -10, -20]),
    "loss": ([0.01, 0.05, 0.25, 0.5], [10, 5, 0, -10, -20]),
    "download": ([1, 10, 50, 100], [0, 5, 10, 20, 30]),
}
"""`aimMeasurementScoring` of Cloudflare's `internalConfig.js`: each bound belongs to what is above it."""

AIM_WORDS: dict[str, tuple[tuple[str, ...], dict[str, int]]] = {
    "AIM, streaming": (
        ("latency", "loss", "download", "increase"),
        {"poor": 15, "average": 20, "good": 40, "great": 60},
    ),
    "AIM, gaming": (
        ("latency", "loss", "increase"),
        {"poor": 5, "average": 15, "good": 25, "great": 30},
    ),
    "AIM, real-time calls": (
        ("latency", "jitter", "loss", "increase"),
        {"poor": 5, "average": 15, "good": 25, "great": 40},
    ),
}
"""`aimExperiencesDefs` there: the points that a word takes at least; below the first it is `bad`."""


def of_a_line(**figures: float) -> Any:
    """As much of a test as AIM takes points from; loss as a share, jitter, latency and increase in ms."""
    latency = figures.get("latency", 0.0)
    jitter_ns = round(figures.get("jitter", 0.0) * 1e6)
    rtt_ns = np.array([1_000_000_000, 1_000_000_000 + jitter_ns])
    return SimpleNamespace(
        idle=SimpleNamespace(median=latency),
        before=SimpleNamespace(rtt_ns=[rtt_ns], answered=2),
        loaded={
            "load": SimpleNamespace(
                latency=SimpleNamespace(median=latency + figures.get("increase", 0.0)),
            )
        },
        loss_rate=figures.get("loss", 0.0),
        down_mbps=figures.get("download", 200.0),
    )


@pytest.mark.parametrize("part", AIM_POINTS)
def test_points_of_aim_change_at_the_bounds_of_cloudflare(part: str) -> None:
    bounds, given = AIM_POINTS[part]
    score = "AIM, real-time calls" if part == "jitter" else "AIM, streaming"

    def points(value: float) -> int:
        scores = {one["name"]: one for one in aim.points(of_a_line(**{part: value}))}
        return int(scores[score]["parts"][part])

    assert points(0.0) == given[0]
    for place, bound in enumerate(bounds):
        below = bound - (1e-6 if part == "jitter" else bound * 1e-9)
        assert (points(below), points(bound)) == (given[place], given[place + 1]), bound


@pytest.mark.parametrize("name", AIM_WORDS)
def test_words_of_aim_change_at_the_bounds_of_cloudflare(name: str) -> None:
    """Of every sum of points that there is."""
    needed, least = AIM_WORDS[name]
    told: dict[int, str] = {}
    for values in itertools.product(*([0.0, *AIM_POINTS[part][0]] for part in needed)):
        (score,) = [
            one
            for one in aim.points(of_a_line(**dict(zip(needed, values, strict=True))))
            if one["name"] == name
        ]
        assert told.setdefault(int(score["value"]), score["says"]) == score["says"]
    for bound in least.values():
        assert {bound, bound - 5} <= told.keys(), "both sides are seen"
    for total, says in told.items():
        words = [word for word, bound in least.items() if total >= bound]
        assert says == f"{words[-1] if words else 'bad'}.", total


@pytest.mark.parametrize(
    ("rpm", "word"),
    [
        (299.9, "poor"),
        (300, "fair"),
        (999.9, "fair"),
        (1000, "good"),
        (5999.9, "good"),
        (6000, "excellent"),
    ],
)
def test_words_of_responsiveness_change_at_the_bounds_of_the_draft(rpm: float, word: str) -> None:
    """The bounds of draft-ietf-ippm-responsiveness-09."""
    assert responsiveness.band(rpm) == word


NEEDS: list[tuple[str, str, float, float]] = [
    ("video call", "latency", 100, 600),
    ("video call", "loss", 0.01, 0.05),
    ("video call", "download", 3, 0.5),
    ("video call", "upload", 3, 0.5),
    ("game", "latency", 50, 200),
    ("game", "loss", 0.005, 0.05),
    ("game", "download", 1, 0.1),
    ("game", "upload", 0.5, 0.05),
    ("stream", "latency", 500, 5000),
    ("stream", "loss", 0.02, 0.1),
    ("stream", "download", 16, 1.5),
]
"""What an application has of each where it is perfect and where it is of no use: Weir's thresholds 1."""


@pytest.mark.parametrize(("application", "part", "perfect", "useless"), NEEDS)
def test_an_outcome_is_between_perfect_and_useless(
    application: str, part: str, perfect: float, useless: float
) -> None:
    percentile = {"video call": "p95", "game": "p99", "stream": "p95"}[application]

    def value(of_part: float) -> float:
        # Of the percentiles only the one that counts is there.
        latency = {percentile: of_part if part == "latency" else 1.0}
        sent = 1_000_000_000
        pings = SimpleNamespace(sent=sent, unanswered=of_part * sent if part == "loss" else 0)
        figures = SimpleNamespace(
            down_mbps=of_part if part == "download" else 100.0,
            up_mbps=of_part if part == "upload" else 100.0,
        )
        one = SimpleNamespace(latency=SimpleNamespace(**latency), pings=pings)
        (needs,) = [needs for needs in quality_of_outcome.APPLICATIONS if needs.name == application]
        parts = quality_of_outcome._parts(needs, cast("Any", one), cast("Any", figures))
        assert all(place == 100 for name, place in parts.items() if name != part)
        return parts[part]

    step = (useless - perfect) / 1000
    assert value(perfect - step) == 100
    assert value(perfect + step) == pytest.approx(99.9)
    assert value((perfect + useless) / 2) == pytest.approx(50)
    assert value(useless - step) == pytest.approx(0.1)
    assert value(useless + step) == 0


def test_outcomes_are_of_all_that_is_told_here() -> None:
    told = {
        (one.name, part)
        for one in quality_of_outcome.APPLICATIONS
        for part in ("latency", "loss", "download", *(["upload"] if one.up_mbps else []))
    }
    assert told == {(name, part) for name, part, _, _ in NEEDS}


def test_a_delay_is_too_long_from_100_ms_on() -> None:
    """G.107, equation 7-28: Idd is 0 up to 100 ms, then 25 ((1 + X^6)^(1/6) - 3 (1 + (X/3)^6)^(1/6) + 2)."""
    assert e_model._too_long(100) == 0
    for delay_ms, known in ((150, 0.16), (200, 3.04), (400, 24.07)):
        x = math.log(delay_ms / 100) / math.log(2)
        by_hand = 25 * ((1 + x**6) ** (1 / 6) - 3 * (1 + (x / 3) ** 6) ** (1 / 6) + 2)
        assert e_model._too_long(delay_ms) == pytest.approx(by_hand, rel=1e-9)
        assert by_hand == pytest.approx(known, abs=0.01)


@pytest.mark.parametrize("delay_ms", [0, 1, 10, 50, 100, 150, 200, 300, 400, 800])
def test_a_rating_is_what_the_default_values_of_the_recommendation_make_of_it(delay_ms: float) -> None:
    """G.107, clause 7 with the default values of table 3, in the order of its equations, by hand."""
    slr, rlr, stmr, telr, wepl, ds, dr, nc, nfor, ps, pr = 8, 2, 15, 65, 110, 3, 3, -70, -64, 35, 35
    olr = slr + rlr
    nos = ps - slr - ds - 100 + 0.004 * (ps - olr - ds - 14) ** 2
    pre = pr + 10 * math.log10(1 + 10 ** ((10 - (stmr + dr)) / 10))
    nor = rlr - 121 + pre + 0.008 * (pre - 35) ** 2
    no = 10 * math.log10(sum(10 ** (one / 10) for one in (nc, nos, nor, nfor + rlr)))
    ro = 15 - 1.5 * (slr + no)

    x = (olr + 0.2 * (64 + no - rlr)) / 8
    iolr = 20 * ((1 + x**8) ** (1 / 8) - x)
    stmro = -10 * math.log10(10 ** (-stmr / 10) + math.exp(-delay_ms / 4) * 10 ** (-telr / 10))
    ist = (
        12 * (1 + abs((stmro - 13) / 6) ** 8) ** (1 / 8)
        - 28 * (1 + ((stmro + 1) / 19.4) ** 35) ** (1 / 35)
        - 13 * (1 + ((stmro - 3) / 33) ** 13) ** (1 / 13)
        + 29
    )
    g = 1.07 + 0.258 * 37 + 0.0602 * 37**2
    iq = 15 * math.log10(1 + 10 ** ((ro - 100) / 15 + 46 / 8.4 - g / 9) + 10 ** (46 / 30 - g / 40))

    terv = telr - 40 * math.log10((1 + delay_ms / 10) / (1 + delay_ms / 150))
    terv += 6 * math.exp(-0.3 * delay_ms**2)
    half = (-1.5 * (no - rlr) - (80 + 2.5 * (terv - 14))) / 2
    idte = (half + math.sqrt(half**2 + 100) - 1) * (1 - math.exp(-delay_ms))
    half = (ro - 10.5 * (wepl + 7) * (2 * delay_ms + 1) ** -0.25) / 2
    idle = half + math.sqrt(half**2 + 169)
    by_hand = ro - (iolr + ist + iq) - idte - idle - e_model._too_long(delay_ms)
    assert e_model.rating(delay_ms, 0) == pytest.approx(by_hand, abs=0.02)


@pytest.mark.parametrize(
    ("loaded_ms", "busy", "gradable_"),
    [(9000, 0.5, True), (8999, 0.5, False), (9000, 0.4999, False), (9000, None, True)],
)
def test_a_run_is_gradable_from_nine_tenths_of_load_and_half_of_a_line_on(
    monkeypatch: pytest.MonkeyPatch, loaded_ms: int, busy: float | None, gradable_: bool
) -> None:
    shares = {"up": busy, "down": None}
    monkeypatch.setattr(gradable, "busy_share", lambda _record, way, *_window: shares[way])
    monkeypatch.setattr(gradable, "load_window_ns", lambda _record: (0, 0))
    monkeypatch.setattr(gradable, "idle_window_ns", lambda _record: None)
    monkeypatch.setattr(gradable, "answered_of_each", lambda _record, _window: {0: 20})
    load = {"name": "load", "start_ns": 2_000_000_000, "end_ns": 12_000_000_000}
    record = SimpleNamespace(
        manifest=SimpleNamespace(scenario={"phases": [load]}),
        reached_ns=12_000_000_000,
        flow_rows=[{"start_ns": load["start_ns"], "stop_ns": 2_000_000_000 + loaded_ms * 1_000_000}],
    )
    assert is_gradable(cast("Any", record)) is gradable_


@pytest.mark.parametrize(
    ("own_ms", "other_ms", "told"),
    [(0.49, 5.0, True), (0.49, 4.99, False), (0.5, 5.0, False)],
)
def test_a_queue_is_bypassed_where_packets_wait_5_ms_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_ms: float, other_ms: float, told: bool
) -> None:
    """5 ms are CoDel's target (RFC 8289, section 4.3)."""
    phases = {"idle": "100ms", "load": "200ms", "cooldown": "0s"}
    (record,) = weirlab.run("rrul", link="cable-20-8", queue="fq_codel", phases=phases, out=tmp_path / "run")
    waits = {"up/router": own_ms, "up/modem": other_ms}
    monkeypatch.setattr(waiting, "_waits_and_acts", lambda _record: (waits, set[str]()))
    assert [one.other_hop for one in bypassed_queues(record)] == (["modem"] if told else [])


@pytest.mark.parametrize(("silence_ms", "lost"), [(1000, 50), (999, 0)])
def test_packets_are_overdue_once_nothing_came_for_a_second(silence_ms: int, lost: int) -> None:
    """Of a flow whose packets take 4 s; in the second before the last that arrived half of them did."""
    intervals = 20
    rows = pl.DataFrame(
        {
            "t_ns": [(n + 1) * 100_000_000 for n in range(intervals)],
            "flow": [0] * intervals,
            "sent_packets": [10] * intervals,
            "received_packets": [10] * 10 + [5] * 10,
            "lost_packets": [0] * intervals,
            "delay_max_ns": [4_000_000_000] * intervals,
        }
    )
    record = SimpleNamespace(
        udp=rows,
        interval_ns=lambda _table: 100_000_000,
        totals=lambda column: [200] if column == "sent_segments" else None,
        flow_rows=[{"flow": 0}],
        manifest=SimpleNamespace(world="lab", scenario={"flows": []}),
        reached_ns=2_000_000_000 + silence_ms * 1_000_000,
    )
    assert udp_rows(cast("Any", record))["lost_packets"].sum() == lost


def test_idle_losses_are_told_from_a_twentieth_on() -> None:
    assert idle_loss_remark([("run", 0.05)], named=False) is not None
    assert idle_loss_remark([("run", 0.0499)], named=False) is None
