"""Charts of a sweep's store, and what they are computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import rv_discrete, sobol_indices

from weirlab.errors import UsageError
from weirlab.sweeps.charts import KINDS, draw, heat, lines, usual_kind
from weirlab.sweeps.charts.asked import Asked
from weirlab.sweeps.charts.data import drawn, is_logarithmic, text, words
from weirlab.sweeps.charts.data import number as number_of
from weirlab.sweeps.charts.pareto import front
from weirlab.sweeps.sensitivity import indices
from weirlab.sweeps.store import Store

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Weir = Callable[..., subprocess.CompletedProcess[str]]

RATES, DELAYS, QUEUES, SEEDS = [1.0, 3.0, 10.0], [5.0, 20.0], ["codel", "pie"], [1, 2]


def row(number: int, queue: str, rate: float, delay: float, seed: int) -> dict[str, Any]:
    """A run whose figures follow from its axes alone."""
    slow = 30.0 if queue == "pie" else 10.0
    return {
        "run": f"{number:032x}",
        "world": "sim",
        "queue": queue,
        "rate_mbps": rate,
        "delay_ms": delay,
        "seed": seed,
        "complete": True,
        "increase_p95_ms": slow / rate + delay / 10,
        "down_goodput_mbps": 0.9 * rate,
        "weir": "1.0",
        "finished_at": "2026-01-01T00:00:00Z",
    }


def grid() -> list[dict[str, Any]]:
    points = [(q, r, d, s) for q in QUEUES for r in RATES for d in DELAYS for s in SEEDS]
    return [row(number, *point) for number, point in enumerate(points)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return stored(tmp_path / "store", grid())


def stored(place: Path, rows: list[dict[str, Any]]) -> Store:
    made = Store.made(place)
    made.append(rows, {"rate_mbps": pl.Float64, "delay_ms": pl.Float64})
    return made


def test_a_part_whose_rows_are_damaged_is_named(weir_here: Weir, store: Store) -> None:
    """Its foot is whole, so that its columns are known."""
    (part,) = (store.path / "runs").glob("*.parquet")
    content = part.read_bytes()
    part.write_bytes(content[:4] + b"\xff" * 500 + content[504:])
    for command in (("show",), ("plot", "--out", "chart.svg")):
        done = weir_here("sweep", command[0], str(store.path), *command[1:])
        assert done.returncode == 3
        assert done.stderr.startswith(f"weir: `{part}` is damaged: ")
        assert len(done.stderr.splitlines()) == 1


RENAMED = """
test = "tcp_upload"
link = "line-50"
phases = { idle = "500ms", load = "500ms", cooldown = "0s" }

[sweep]
repeat = 2

[sweep.axes]
rate = { key = "link.up.line.rate", values = ["5mbit", "20mbit"] }
q = { key = "queue", values = ["pfifo limit 10", "codel"], labels = ["short", "managed"] }
control = { key = ["cc"], values = ["reno", "cubic"] }
"""


def test_what_an_axis_of_another_name_varies_is_no_further_axis(weir_here: Weir, tmp_path: Path) -> None:
    """The columns `queue` and `cc` say what `q` and `control` do: the grid has three axes and is full."""
    plan, place = tmp_path / "plan.toml", tmp_path / "plan.sweep"
    plan.write_text(RENAMED)
    assert weir_here("sweep", "run", str(plan)).returncode == 0
    made = Store.opened(str(place))
    assert made.axes() == ["rate_mbps", "q", "control"]
    rows = made.collected()
    assert rows.select(pl.col("queue", "cc", "q").n_unique()).row(0) == (2, 2, 2)
    figure = ("--figure", "up_goodput_mbps")
    chart = tmp_path / "chart.svg"
    done = weir_here("sweep", "plot", str(place), "--kind", "sensitivity", *figure, "--out", str(chart))
    assert done.returncode == 0, done.stderr
    done = weir_here("sweep", "plot", str(place), *figure, "--by", "q", "--out", str(chart))
    assert done.returncode == 0, done.stderr
    assert drawn(made).over("rate_mbps", "q") == "control and seeds"


def test_an_axis_that_goes_with_another_is_not_said_to_be_averaged(tmp_path: Path) -> None:
    """Each rate has one delay: the line along the rates is one along the delays as well."""
    points = [(queue, rate, 5 * rate, seed) for queue in QUEUES for rate in RATES for seed in SEEDS]
    coupled = drawn(stored(tmp_path / "coupled", [row(n, *point) for n, point in enumerate(points)]))
    assert coupled.over("rate_mbps", "queue") == "seeds"
    assert coupled.beside("rate_mbps", "queue").startswith(
        " Not averaged: delay, of which each place has one"
    )
    read = lines.told(coupled, Asked(figure="increase_p95_ms", x="rate_mbps", by="queue")).figures
    assert read.endswith(coupled.beside("rate_mbps", "queue"))
    whole = drawn(stored(tmp_path / "whole", grid()))
    assert (whole.over("rate_mbps", "queue"), whole.beside("rate_mbps", "queue")) == ("delay and seeds", "")


def test_lines_of_single_runs_promise_no_bands(tmp_path: Path) -> None:
    points = [(queue, rate, 5.0, 1) for queue in QUEUES for rate in RATES]
    asked = Asked(figure="increase_p95_ms", x="rate_mbps", by="queue")

    def small_print(name: str, points: list[tuple[str, float, float, int]]) -> str:
        made = stored(tmp_path / name, [row(n, *point) for n, point in enumerate(points)])
        return " ".join(one.get_text().replace("\n", " ") for one in lines.figure(drawn(made), asked).texts)

    assert "Lines: single runs." in (once := small_print("once", points))
    assert "Bands" not in once
    single = drawn(stored(tmp_path / "single", [row(n, *point) for n, point in enumerate(points)]))
    assert lines.told(single, asked).figures.startswith("Single runs, as they are drawn.")
    assert heat.told(single, asked).figures.startswith("Single runs, each point once, ")
    twice = small_print("twice", [*points, *((*point[:3], 2) for point in points)])
    assert "Lines: medians over seeds. Bands: " in twice


def test_a_front_that_lacks_a_figure_says_what_there_is(tmp_path: Path) -> None:
    """Uploads have no goodput of downloads."""
    rows = [one | {"down_goodput_mbps": None, "up_goodput_mbps": 1.0} for one in grid()]
    asked = Asked(figure="increase_p95_ms", against="down_goodput_mbps")
    with pytest.raises(UsageError) as refused:
        draw(stored(tmp_path / "up", rows), "pareto", asked, tmp_path / "chart.svg")
    told = "no run has both `increase_p95_ms` and `down_goodput_mbps`: --against may be up_goodput_mbps"
    assert str(refused.value) == told


def test_indices_are_those_of_the_analysis_of_variance() -> None:
    # y = a + b + a b over a in {-1, 1} and b in {-2, 2}: variances 1, 4 and 4 of 9; the seed changes nothing.
    rows = pl.DataFrame(
        [{"a": a, "b": b, "seed": s, "y": a + b + a * b} for a in (-1, 1) for b in (-2, 2) for s in (1, 2)]
    )
    found = {one.axis: (one.first, one.total) for one in indices(rows, ["a", "b"], "y")}
    assert found["a"] == pytest.approx((1 / 9, 5 / 9))
    assert found["b"] == pytest.approx((4 / 9, 8 / 9))
    assert found["seed"] == pytest.approx((0, 0), abs=1e-12)


def test_indices_are_those_that_sampling_comes_to() -> None:
    levels = [np.array([1.0, 2.0, 5.0]), np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 10.0])]

    def y(a: Any, b: Any, c: Any) -> Any:
        return a * c + b**2 + np.sin(a * b)

    rows = pl.DataFrame(
        [
            {"a": a, "b": b, "c": c, "seed": 1, "y": float(y(a, b, c))}
            for a in levels[0]
            for b in levels[1]
            for c in levels[2]
        ]
    )
    found = {one.axis: one for one in indices(rows, ["a", "b", "c"], "y")}
    numbers = [rv_discrete(values=(range(one.size), np.full(one.size, 1 / one.size))) for one in levels]
    sampled = sobol_indices(
        func=lambda x: y(*(one[np.round(at).astype(int)] for one, at in zip(levels, x, strict=True))),
        n=2**14,
        dists=numbers,
        rng=np.random.default_rng(1),
    )
    for number, name in enumerate("abc"):
        assert found[name].first == pytest.approx(sampled.first_order[number], abs=0.02)
        assert found[name].total == pytest.approx(sampled.total_order[number], abs=0.02)


def test_what_is_no_full_grid_has_no_indices() -> None:
    rows = pl.DataFrame(grid())
    axes = ["queue", "rate_mbps", "delay_ms"]
    with pytest.raises(UsageError, match="23 runs are no full grid of 2 queue x 3 rate_mbps"):
        indices(rows[1:], axes, "increase_p95_ms")
    lacking = rows.with_columns(
        pl.when(pl.col("run") != rows["run"][0]).then("increase_p95_ms").alias("gone")
    )
    with pytest.raises(UsageError, match="1 of 24 runs have no `gone`"):
        indices(lacking, axes, "gone")
    with pytest.raises(UsageError, match="the same in all runs"):
        indices(rows.with_columns(same=pl.lit(0.1)), axes, "same")


def test_the_front_is_what_no_other_point_beats() -> None:
    rng = np.random.default_rng(1)
    costs, gains = rng.integers(0, 20, (2, 200)).astype(float)
    chosen = front(costs, gains)

    def beaten(one: int) -> bool:
        as_good = (costs <= costs[one]) & (gains >= gains[one])
        return bool((as_good & ((costs < costs[one]) | (gains > gains[one]))).any())

    best = {(costs[one], gains[one]) for one in range(200) if not beaten(one)}
    assert {(costs[one], gains[one]) for one in chosen} == best
    assert len(chosen) == len(best)


def test_scales_of_equal_ratios_are_told() -> None:
    assert is_logarithmic([1, 3, 10, 30])
    assert not is_logarithmic([5, 10, 15, 20])
    assert not is_logarithmic([0, 1, 10, 100])
    assert not is_logarithmic([1, 10])


def test_a_logarithmic_scale_says_so_and_a_linear_one_does_not(store: Store) -> None:
    for x, label in (("rate_mbps", "rate, Mbit/s, log scale"), ("delay_ms", "delay, ms")):
        chart = lines.figure(drawn(store), Asked(figure="increase_p95_ms", x=x))
        assert [axes.get_xlabel() for axes in chart.axes] == [label]
        assert chart.axes[0].get_xscale() == ("log" if "log" in label else "linear")


def test_numbers_have_no_exponent() -> None:
    assert [number_of(one) for one in (999.6, 1e6, 1234.5, 0.00005, -0.0123456, 12.345, 99.96, 1e-14)] == [
        *("1000", "1000000", "1234", "0.00005", "-0.0123", "12.3", "100", "0")
    ]
    assert [text(one) for one in (10_000.0, 25_000.5, 9_999.9, 0.00002, 12.5, 3, True, "cake")] == [
        *("10000", "25000", "10000", "0.00002", "12.5", "3", "True", "cake")
    ]


def test_one_run_is_no_runs(tmp_path: Path) -> None:
    store = Store.made(tmp_path / "one.sweep")
    store.append([row(1, "pie", 1.0, 5.0, 7)], {"rate_mbps": pl.Float64, "delay_ms": pl.Float64})
    assert drawn(store).origin() == "world sim · 1 run of 1 point · seed 7 · one.sweep"


def test_units_stand_behind_names() -> None:
    assert words("down_goodput_mbps") == "down goodput, Mbit/s"
    assert words("queue") == "queue"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("panels", [None, "queue"])
def test_each_chart_is_drawn_the_same_each_time(
    store: Store, tmp_path: Path, kind: str, panels: str | None
) -> None:
    asked = Asked(figure="increase_p95_ms", against="down_goodput_mbps", panels=panels)
    both = [draw(store, kind, asked, tmp_path / f"{number}.svg").read_bytes() for number in range(2)]
    assert both[0] == both[1]
    text = both[0].decode()
    assert "24 runs of 12 points" in text
    assert ("queue: codel" in text) == (panels is not None)


def test_heat_has_the_means(store: Store, tmp_path: Path) -> None:
    asked = Asked(figure="increase_p95_ms", against="", x="rate_mbps", by="queue")
    text = draw(store, "heat", asked, tmp_path / "heat.svg").read_text(encoding="utf-8")
    # 30 / 1 and 10 / 10, plus the mean of 0.5 and 2.
    assert ">31.2<" in text
    assert ">2.25<" in text


def test_runs_that_are_left_out_are_counted(tmp_path: Path) -> None:
    failed = {**row(99, "codel", 1.0, 5.0, 3), "error": "it broke", "increase_p95_ms": None}
    older = {**row(98, "codel", 1.0, 5.0, 4), "weir": "0.9", "finished_at": "2025-01-01T00:00:00Z"}
    place = stored(tmp_path / "store", [*grid(), failed, older])
    asked = Asked(figure="increase_p95_ms", against="down_goodput_mbps")
    text = draw(place, "pareto", asked, tmp_path / "pareto.svg").read_text(encoding="utf-8")
    assert "24 runs of 12 points" in text
    assert "1 run that failed left out; 1 run of other versions than 1.0 left out" in " ".join(text.split())


@pytest.mark.parametrize(
    ("kind", "asked", "says"),
    [
        ("heat", {"figure": "speed"}, "--figure speed: no such column"),
        ("heat", {"figure": "queue"}, "--figure queue: the column has no numbers"),
        ("lines", {"x": "queue"}, "--x queue: the column has no numbers"),
        ("lines", {"panels": "run"}, "--panels run: 24 values; a chart has room for 1 to 16"),
        ("pareto", {"x": "queue"}, "--x queue: a Pareto front has figures on both scales"),
        (
            "pareto",
            {"figure": "down_goodput_mbps"},
            "--figure and --against are both down_goodput_mbps: a Pareto front is of two",
        ),
        ("heat", {"x": "queue", "by": "queue"}, "--x queue and --by queue: name two axes"),
        ("lines", {"x": "rate_mbps", "panels": "rate_mbps"}, "--x rate_mbps and --panels rate_mbps: name"),
        ("sensitivity", {"by": "queue"}, "--by queue: sensitivity shows all axes"),
        ("donut", {}, "there is no chart `donut` of a sweep"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    store: Store, tmp_path: Path, kind: str, asked: dict[str, str], says: str
) -> None:
    target = tmp_path / "chart.png"
    with pytest.raises(UsageError, match=says):
        draw(
            store,
            kind,
            Asked(**{"figure": "increase_p95_ms", "against": "down_goodput_mbps", **asked}),
            target,
        )
    assert not target.exists()


def many(place: Path, *, delays: int) -> Store:
    """A store of 61 rates, one more than a heat map has room for, with some delays each."""
    points = [("pie", 1.0 + rate, 5.0 * (1 + delay), 1) for rate in range(61) for delay in range(delays)]
    rows = [row(number, *point) for number, point in enumerate(points)]
    # One that came before the plan had rates.
    return stored(place, [*rows, row(len(rows), "pie", 1.0, 5.0, 2) | {"rate_mbps": None}])


def test_axes_without_room_are_no_default(tmp_path: Path, weir_here: Weir) -> None:
    place = many(tmp_path / "many", delays=13)
    assert usual_kind(place) == "lines"
    assert usual_kind(stored(tmp_path / "few", grid())) == "heat"
    for kind in (None, "lines", "pareto"):
        out = tmp_path / f"{kind}.png"
        words = [] if kind is None else ["--kind", kind]
        done = weir_here("sweep", "plot", str(place.path), *words, "--out", str(out))
        assert done.returncode == 0, done.stderr
        assert out.exists()
    done = weir_here("sweep", "plot", str(place.path), "--kind", "heat", "--out", str(tmp_path / "heat.png"))
    assert done.returncode == 2
    assert " ".join(done.stderr.split()) == (
        "weir: a heat map needs two axes that vary, of 2 to 60 values each, and rate_mbps has 61: "
        "`--kind lines` has room for more from left to right"
    )
    named = weir_here("sweep", "plot", str(place.path), "--x", "rate_mbps", "--kind", "heat")
    assert "--x rate_mbps: 61 values; a chart has room for 1 to 60" in named.stderr


def test_axes_of_which_other_values_failed_are_no_default(tmp_path: Path) -> None:
    runs = [(queue, rate) for queue in ("pie", "cake") for rate in (1.0, 2.0, 3.0)]
    rows = [row(number, *run, 5.0, 1) for number, run in enumerate(runs)]
    failed = [one | {"error": "it broke" if one["queue"] == "pie" else None} for one in rows]
    place = stored(tmp_path / "failed", failed)
    assert usual_kind(place) == "lines"
    assert draw(place, usual_kind(place), Asked(), tmp_path / "lines.png").exists()


def test_the_command_draws(store: Store, tmp_path: Path, weir_here: Weir) -> None:
    out = tmp_path / "lines.png"
    assert weir_here("sweep", "plot", str(store.path), "--kind", "lines", "--out", str(out)).returncode == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "no such column" in weir_here("sweep", "plot", str(store.path), "--by", "colour").stderr
    told = weir_here(
        "sweep", "plot", str(store.path), "--kind", "heat", "--against", "down_goodput_mbps"
    ).stderr
    assert "--against down_goodput_mbps: only the chart `pareto` has it, `heat` has not" in told
    twice = [{**row(90 + number, "codel", 1.0, 5.0, 1), "seed": 1} for number in range(2)]
    doubled = stored(store.path.parent / "doubled", [*grid(), *twice])
    drawn = weir_here(
        "sweep", "plot", str(doubled.path), "--kind", "heat", "--out", str(out.with_suffix(".svg"))
    )
    told = " ".join(drawn.stderr.split())
    assert "stand at a point where another has the same seed" in told


@pytest.mark.parametrize(
    ("kind", "vary"),
    [
        ("heat", {"queue", "rate_mbps", "delay_ms"}),
        ("lines", {"rate_mbps"}),
        ("pareto", {"queue"}),
        ("pareto", set()),
    ],
)
def test_who_names_no_chart_gets_one_that_the_axes_are_enough_for(
    kind: str, vary: set[str], tmp_path: Path, weir_here: Weir
) -> None:
    still = {"queue": "codel", "rate_mbps": 3.0, "delay_ms": 5.0}
    wanted = {name: value for name, value in still.items() if name not in vary}
    stored(tmp_path / "some", [one for one in grid() if wanted.items() <= one.items()])
    drawn = weir_here("sweep", "plot", "some")
    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert [file.name for file in tmp_path.glob("*.png")] == [f"{kind}.png"]
