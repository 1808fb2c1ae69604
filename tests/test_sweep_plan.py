"""Plans of sweeps: their axes, their points, and all that can be wrong with them."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weirlab.errors import UsageError
from weirlab.forms.tables import without_table
from weirlab.scenario.units import rate_bps, time_ns
from weirlab.sweeps.axes import Span, Unusable
from weirlab.sweeps.design import MAX_POINTS, points
from weirlab.sweeps.plan import load_plan, plan_of
from weirlab.sweeps.runs import scenario_at, sweep_of
from weirlab.sweeps.sweeping import RUN_LIMIT_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCENARIO = {"test": "rrul", "link": "cable-20-8", "phases": {"idle": "1s", "load": "2s", "cooldown": "0s"}}


def plan(**sweep: Any) -> Any:
    return plan_of({**SCENARIO, "sweep": sweep})


def columns(**sweep: Any) -> list[dict[str, Any]]:
    return list(points(plan(**sweep)).columns.iter_rows(named=True))


def faults(tmp_path: Path, text: str) -> str:
    file = tmp_path / "plan.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as refused:
        sweep_of(load_plan(file))
    return str(refused.value).replace(str(file), "plan.toml")


def test_a_grid_has_each_value_with_each_in_the_order_of_the_plan() -> None:
    found = columns(axes={"queue": ["pfifo_fast", "fq_codel"], "phases.load": ["1s", "2s"]})
    assert found == [
        {"queue": "pfifo_fast", "phases_load_ms": 1000.0},
        {"queue": "pfifo_fast", "phases_load_ms": 2000.0},
        {"queue": "fq_codel", "phases_load_ms": 1000.0},
        {"queue": "fq_codel", "phases_load_ms": 2000.0},
    ]


def test_a_range_has_steps_of_equal_difference_or_of_equal_ratio() -> None:
    linear = {"key": "link.down.cmts.delay", "from": "5ms", "to": "20ms", "steps": 4}
    log = {"key": "link.down.cmts.rate", "from": "1mbit", "to": "1gbit", "steps": 4, "scale": "log"}
    step = {"key": "parameters.streams", "from": 1, "to": 9, "step": 4}
    axes = plan(axes={"delay": linear, "rate": log, "streams": step}).axes
    assert [axis.values for axis in axes] == [
        ("5ms", "10ms", "15ms", "20ms"),
        ("1mbit", "10mbit", "100mbit", "1gbit"),
        (1, 5, 9),
    ]
    assert [axis.column for axis in axes] == ["delay_ms", "rate_mbps", "streams"]


@pytest.mark.parametrize("design", ["random", "latin", "sobol"])
def test_quantities_of_other_units_stand_in_their_column_as_they_are_written(design: str) -> None:
    queue = {"key": "link.down.cmts.queue.limit", "from": "40kb", "to": "90kb"}
    for row in columns(axes={"limit": queue}, design=design, points=4):
        assert row["limit"].endswith("kb")
        assert 40 <= float(row["limit"].removesuffix("kb")) <= 90


def test_axes_that_advance_together_are_one_dimension() -> None:
    found = columns(
        axes={
            "down": {"key": "link.down.cmts.rate", "values": ["20mbit", "50mbit"]},
            "up": {"key": "link.up.modem.rate", "values": ["5mbit", "10mbit"]},
            "queue": ["pfifo_fast", "fq_codel"],
        },
        zip=[["down", "up"]],
    )
    assert [(one["down_mbps"], one["up_mbps"]) for one in found] == [(20, 5), (20, 5), (50, 10), (50, 10)]


def test_a_condition_leaves_points_out() -> None:
    axes = {
        "down": {"key": "link.down.cmts.rate", "values": ["10mbit", "20mbit", "50mbit"]},
        "up": {"key": "link.up.modem.rate", "values": ["10mbit", "20mbit"]},
    }
    kept = columns(axes=axes, where=["up_mbps <= down_mbps", "down_mbps < 50"])
    assert [(one["down_mbps"], one["up_mbps"]) for one in kept] == [(10, 10), (20, 10), (20, 20)]
    with pytest.raises(UsageError, match="no point is left"):
        points(plan(axes=axes, where="up_mbps > 100"))


QUEUES_OF_CONDITIONS = ["pfifo_fast", "fq_codel", "sfq"]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("queue = 'sfq'", ["sfq"]),
        ("queue <> 'sfq' AND NOT queue = 'fq_codel'", ["pfifo_fast"]),
        ("queue IN ('sfq', 'pfifo_fast')", ["pfifo_fast", "sfq"]),
        ("queue not in ('sfq', 'pfifo_fast')", ["fq_codel"]),
        ("queue LIKE '%f%_f%'", ["pfifo_fast"]),
        ("queue NOT LIKE 's_q'", ["pfifo_fast", "fq_codel"]),
        ("queue = 'sfq' OR queue = 'fq_codel' AND 1 = 2", ["sfq"]),
        ("(\"queue\" = 'sfq' OR queue = 'fq_codel') AND streams BETWEEN 3 AND 5", ["fq_codel", "sfq"]),
        ("queue IS NULL", []),
        ("queue IS NOT NULL AND streams / 8 = 0.5", QUEUES_OF_CONDITIONS),
        ("streams - 1 - 2 = 1 AND streams * 2 + 1 = 9 AND streams % 3 = 1", QUEUES_OF_CONDITIONS),
        ("abs(-streams) = 4 AND least(streams, 9) = greatest(1, streams) AND 1e1 > .5", QUEUES_OF_CONDITIONS),
        ("streams = NULL", []),
        ("true", QUEUES_OF_CONDITIONS),
    ],
)
def test_a_condition_means_what_it_means_in_sql(where: str, kept: list[str]) -> None:
    asked = plan(axes={"queue": QUEUES_OF_CONDITIONS, "streams": {"key": "x.s", "values": [4]}}, where=where)
    if kept:
        assert points(asked).columns["queue"].to_list() == kept
    else:
        with pytest.raises(UsageError, match="no point is left"):
            points(asked)


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("queue IN (SELECT queue FROM read_csv('{file}'))", "`SELECT` is no part of a condition there"),
        ("queue IN (SELECT queue FROM '{file}')", "`SELECT` is no part of a condition there"),
        ("EXISTS (SELECT * FROM read_csv('{file}'))", "`EXISTS` is no part of a condition there"),
        ("(SELECT max(queue) FROM read_parquet('{file}')) = 'sfq'", "`SELECT` is no part of a condition"),
        ("queue IN (WITH t AS (SELECT 1) SELECT * FROM t)", "no column `WITH`"),
        ("read_csv('{file}') = 1", "no function `read_csv`"),
        ("queue = 'sfq' FROM read_csv('{file}')", "`FROM` is not expected there"),
        ("queue = 'sfq' UNION SELECT 1", "`UNION` is not expected there"),
        ("queue = 'sfq' -- '{file}'", "write a condition on"),
        ("queue = getenv('HOME')", "no function `getenv`"),
    ],
)
def test_a_condition_opens_no_file(tmp_path: Path, where: str, says: str) -> None:
    file = tmp_path / "names.csv"
    file.write_text("queue\nsfq\n")
    with pytest.raises(UsageError) as refused:
        points(plan(axes={"queue": ["sfq"]}, where=where.format(file=file)))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@given(st.text(alphabet="queue()'\"=<>!-+*/%,. 01andorinlikeNULL_;", max_size=60))
def test_no_text_breaks_the_reader_of_conditions(text: str) -> None:
    try:
        columns(axes={"queue": ["sfq"]}, where=text)
    except UsageError as error:
        assert str(error)  # noqa: PT017 - either is right


@pytest.mark.parametrize("design", ["random", "sobol"])
def test_more_points_of_a_design_begin_with_those_of_fewer(design: str) -> None:
    axes = {
        "rate": {"key": "link.down.cmts.rate", "from": "1mbit", "to": "1gbit", "scale": "log"},
        "queue": ["pfifo_fast", "fq_codel"],
    }
    few = columns(axes=axes, design=design, points=8)
    many = columns(axes=axes, design=design, points=16)
    assert many[:8] == few
    assert len(many) == 16
    assert all(1 <= one["rate_mbps"] <= 1000 for one in many)
    assert columns(axes=axes, design=design, points=8, design_seed=2) != few


def test_a_latin_hypercube_has_a_point_in_each_slice_of_each_axis() -> None:
    axes = {"delay": {"key": "link.down.cmts.delay", "from": "0ms", "to": "100ms"}}
    found = columns(axes=axes, design="latin", points=10)
    assert sorted(int(one["delay_ms"] // 10) for one in found) == list(range(10))


def test_a_value_may_stand_at_several_places_and_in_elements_of_lists() -> None:
    one = plan(
        axes={
            "delay": {"key": ["link.down.cmts.delay", "link.up.1.delay"], "values": ["30ms"]},
            "framing": {"key": "link.up.*.framing", "values": ["ethernet"]},
        }
    )
    written = scenario_at(one, points(one).points[0], {})
    assert written["link"]["down"][0]["delay"] == "30ms"
    assert [hop["framing"] for hop in written["link"]["up"]] == ["ethernet", "ethernet"]
    assert written["link"]["up"][1]["delay"] == "30ms"
    # What the axes do not name is that of the shipped link.
    assert written["link"]["down"][0]["rate"] == "20mbit"
    assert one.scenario["link"] == "cable-20-8"


def test_a_whole_link_is_an_axis_by_name_beside_one_that_changes_it() -> None:
    axes = {"link": ["cable-20-8", "vdsl-100-40"], "load": {"key": "phases.load", "values": ["1s"]}}
    found = sweep_of(plan(axes=axes))
    assert [run.configuration.columns["link"] for run in found.runs] == ["cable-20-8", "vdsl-100-40"]


def test_equal_runs_are_one_run_and_names_are_no_part_of_it() -> None:
    base = sweep_of(plan(axes={"queue": ["pfifo_fast"]}))
    # `default` and `pfifo_fast` differ, `phases.load` written in two ways does not.
    same = sweep_of(
        plan(axes={"queue": ["pfifo_fast"], "load": {"key": "phases.load", "values": ["2000ms"]}})
    )
    assert [run.key for run in same.runs] == [run.key for run in base.runs]
    noted = sweep_of(
        plan_of({**SCENARIO, "note": "x", "name": "y", "sweep": {"axes": {"queue": ["pfifo_fast"]}}})
    )
    assert [run.key for run in noted.runs] == [run.key for run in base.runs]
    other = sweep_of(plan_of({**SCENARIO, "seed": 2, "sweep": {"axes": {"queue": ["pfifo_fast"]}}}))
    assert {run.key for run in other.runs}.isdisjoint(run.key for run in base.runs)


def test_repetitions_have_the_next_seeds_and_the_first_of_all_points_come_first() -> None:
    found = sweep_of(
        plan_of({**SCENARIO, "seed": 5, "sweep": {"repeat": 2, "axes": {"queue": ["pfifo_fast", "sfq"]}}})
    )
    assert [(run.seed, run.configuration.columns["queue"]) for run in found.runs] == [
        (5, "pfifo_fast"),
        (5, "sfq"),
        (6, "pfifo_fast"),
        (6, "sfq"),
    ]


def test_all_faults_of_a_file_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    said = faults(
        tmp_path,
        """test = "rrul"
link = "cable-20-8"
repeat = 3
phases = { lode = "3s" }

[sweep]
zip = [["queue", "rat"]]
design = "sobol"
points = 100
budget = "5"

[sweep.axes]
queue = ["pfifo_fast", "pfifo_fast"]
rate = { from = "10mbit", to = "5ms", steps = 3 }
1rate = { key = "link.down.cmts.rate", from = "10mbit", to = "1mbit" }
seed = [1, 2]
""",
    )
    assert said == (
        "plan.toml has 9 faults:\n"
        "  line 3: repeat: in a sweep the repetitions are `sweep.repeat`\n"
        "  line 4: phases.lode: unknown key, did you mean `load`? (known: idle, load, cooldown)\n"
        "  line 7: sweep.zip.0: no axis `rat` (known: queue, rate, 1rate, seed)\n"
        "  line 9: sweep.points: 100: a Sobol sequence is balanced at powers of 2 only: write 64 or 128\n"
        "  line 10: sweep.budget: `5` is a time without its unit: write `5s`, `5ms` or `5us`\n"
        "  line 13: sweep.axes.queue: `pfifo_fast` is listed twice: write each value once\n"
        "  line 14: sweep.axes.rate: from `10mbit` to `5ms`: write two quantities of one kind with the same "
        "unit\n"
        "  line 15: sweep.axes.1rate: from `10mbit` to `1mbit`: write the smaller one first\n"
        "  line 16: sweep.axes.seed: `seed` is no axis: the repetitions of a point have the seeds from the "
        "scenario's `seed` on"
    )


def test_values_that_no_scenario_takes_are_told_with_their_lines(tmp_path: Path) -> None:
    said = faults(
        tmp_path,
        """test = "rrul"
link = "cable-20-8"

[sweep.axes]
queue = [
    "pfifo_fast",
    "fq_codel flows 65537",
    "no_such_queue",
]
load = { key = "phases.load", values = ["3s", "5"] }
""",
    )
    assert said.startswith("plan.toml has 3 faults:\n  line 5: sweep.axes.queue.1: ")
    assert "`flows 65537`: write a number from 1 to 65536" in said
    assert "\n  line 5: sweep.axes.queue.2: " in said
    assert said.endswith(
        "\n  line 10: sweep.axes.load.1: `5` is a time without its unit: write `5s`, `5ms` or `5us`"
    )


@pytest.mark.parametrize(
    ("sweep", "says"),
    [
        ({}, "axes: this key is missing"),
        ({"axes": {}}, "sweep.axes"),
        ({"axes": {"queue": []}}, "it has 0 values"),
        (
            {"axes": {"queue": {"values": ["fq_codel"], "from": 1, "to": 2}}},
            "either `values`, or `from` and `to`",
        ),
        ({"axes": {"x": {"from": 1}}}, "a range has both `from` and `to`"),
        ({"axes": {"x": {"from": 1, "to": 5}}}, "a grid needs `steps` or `step`"),
        ({"axes": {"x": {"from": 0, "to": 5, "steps": 3, "scale": "log"}}}, "begins above 0"),
        ({"axes": {"x": {"from": 0, "to": 5, "step": "0ms"}}}, "write a quantity above 0"),
        ({"axes": {"x": {"from": 0, "to": 1e9, "step": 1}}}, "an axis has 10000 at most"),
        ({"axes": {"x": {"from": 0, "to": 5, "steps": 10**9}}}, "10000 or less"),
        ({"axes": {"x": {"from": 0, "to": 5, "steps": 3, "step": 1}}}, "exclude each other"),
        ({"axes": {"phases..load": ["1s"]}}, "write a key of a scenario"),
        ({"axes": {"queue": ["sfq"], "q": {"key": "queue", "values": ["sfq"]}}}, "is varied by `queue` too"),
        ({"axes": {"a.b": ["sfq"], "a-b": ["sfq"]}}, "its column `a_b` is that of `a.b` too"),
        ({"axes": {"queue": ["sfq"]}, "points": 3}, "leave `points` out"),
        ({"axes": {"queue": ["sfq"]}, "design_seed": 2}, "leave `design_seed` out"),
        (
            {"axes": {"queue": ["sfq"]}, "samples": "load"},
            'write `none`, `all`, or a list of phases such as `["load"]`',
        ),
        ({"axes": {"queue": ["sfq"]}, "design": "random"}, "needs `points`"),
        ({"axes": {"queue": ["sfq"]}, "repeat": 0}, "1 or more"),
        ({"axes": {"queue": ["sfq"]}, "zip": [["queue"]]}, "two axes or more"),
        ({"axes": {"queue": ["sfq"]}, "colour": 1}, "unknown key"),
        ({"axes": {"queue": {"values": ["sfq", "codel"], "labels": ["a", "a"]}}}, "a label of its own"),
    ],
)
def test_a_plan_that_cannot_be_used_is_refused(sweep: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        plan(**sweep)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("sweep", "says"),
    [
        (
            {"axes": {"queue": ["sfq"]}, "where": "no_such_column > 1"},
            "write a condition on the columns queue",
        ),
        ({"axes": {"queue": ["sfq"]}, "where": "queue"}, "neither true nor false"),
        ({"axes": {"queue": ["sfq"]}, "where": "((((("}, "write a condition on"),
        ({"axes": {"queue": ["sfq"]}, "where": "(" * 900 + "1=1" + ")" * 20}, "write a condition on"),
        ({"axes": {"queue": ["sfq"]}, "where": "1 = 1; DROP TABLE x"}, "write a condition on"),
        ({"axes": {"queue": ["sfq"]}, "where": "abs(" * 240 + "1"}, "nested more than 50 deep"),
        ({"axes": {"queue": ["sfq"]}, "where": "1 +"}, "it ends too early"),
        ({"axes": {"queue": ["sfq"]}, "where": "1 = 1 queue"}, "`queue` is not expected there"),
        ({"axes": {"queue": ["sfq"]}, "where": "queue LIKE 5"}, "a text in single quotes, not `5`"),
        ({"axes": {"queue": ["sfq"]}, "where": "abs(1, 2) = 1"}, "`abs` takes one value, not 2"),
        ({"axes": {"queue": ["sfq"]}, "where": "queue > 5"}, "write a condition on"),
        ({"axes": {"queue": ["sfq"]}, "where": "1=1 " * 500}, "it has 2000 characters"),
        (
            {"axes": {"link.down.nowhere.rate": ["1mbit"]}},
            "no element `nowhere` (known: cmts, router, or `*` for all)",
        ),
        ({"axes": {"test.title.x": ["1mbit"]}}, "there is no table before `x`"),
        ({"axes": {"colour": ["red"]}}, "unknown key"),
        ({"axes": {"link": ["no-such-link"]}}, "no-such-link"),
        (
            {"axes": {n: {"key": f"x.{n}", "from": 0, "to": 9999, "steps": 10000} for n in ("a", "b", "c")}},
            f"a sweep has {MAX_POINTS} at most",
        ),
        ({"axes": {"a": {"from": 0, "to": 9999, "steps": 10000}}, "repeat": 100_000}, "runs at most"),
    ],
)
def test_points_that_cannot_be_run_are_refused(sweep: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        sweep_of(plan(**sweep))
    assert says in str(refused.value)


@pytest.mark.parametrize("design", ["random", "latin", "sobol"])
def test_points_that_a_design_draws_again_are_told(design: str) -> None:
    rate = {"key": "link.down.cmts.rate", "values": ["10mbit", "20mbit", "30mbit"]}
    axes = {"queue": ["pfifo_fast", "sfq", "fq_codel"], "rate": rate}
    found = sweep_of(plan(axes=axes, design=design, points=64))
    assert (found.points, len(found.runs), found.drawn_again) == (9, 9, 55)
    (said,) = found.remarks
    assert said == (
        f"55 of 64 points that the design `{design}` drew are the same as others, which run once: 9 are "
        "left; axes with more values, such as ranges, have more points"
    )
    ranged = {"queue": ["sfq"], "rate": {"key": "link.down.cmts.rate", "from": "10mbit", "to": "30mbit"}}
    assert list(sweep_of(plan(axes=ranged, design=design, points=8)).remarks) == []


def test_lists_that_compare_are_written_as_axes() -> None:
    compared = {**SCENARIO, "queue": ["sfq", "codel"], "sweep": {"axes": {"phases.load": ["1s"]}}}
    with pytest.raises(UsageError, match="compares 2 configurations"):
        sweep_of(plan_of(compared))


def test_a_scenario_without_axes_is_no_plan() -> None:
    with pytest.raises(UsageError, match="there is no table `sweep`"):
        plan_of(SCENARIO)


@given(
    low=st.integers(1, 10**9),
    width=st.integers(1, 10**9),
    steps=st.integers(2, 50),
    log=st.booleans(),
    kind=st.sampled_from(["us", "kbit", "", "%"]),
)
def test_a_range_begins_and_ends_as_written_and_rises(
    low: int, width: int, steps: int, log: bool, kind: str
) -> None:
    ends = [low, low + width] if kind == "" else [f"{low}{kind}", f"{low + width}{kind}"]
    values = Span.of(*ends, log=log).steps(steps)

    def number(value: Any) -> float:
        readers: dict[str, Callable[[Any], float]] = {
            "us": time_ns,
            "kbit": rate_bps,
            "%": lambda text: float(text.removesuffix("%")),
            "": float,
        }
        read = readers[kind]
        return float(read(value))

    found = [number(value) for value in values]
    if kind != "%":  # which is rounded to six digits
        assert (found[0], found[-1]) == (number(ends[0]), number(ends[1]))
    assert found == sorted(found)
    assert len(values) == len(set(values)) <= steps


@given(share=st.floats(0, 1, exclude_max=True), low=st.integers(1, 10**6), width=st.integers(1, 10**6))
def test_a_drawn_value_lies_within_its_range(share: float, low: int, width: int) -> None:
    span = Span.of(f"{low}us", f"{low + width}us", log=True)
    assert low * 1000 <= time_ns(span.at(share)) <= (low + width) * 1000


def test_whole_numbers_are_drawn_equally_often_at_the_ends_too() -> None:
    span = Span.of(1, 4, log=False)
    assert Counter(span.at(number / 400) for number in range(400)) == {1: 100, 2: 100, 3: 100, 4: 100}


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 5))
@settings(max_examples=30)
def test_a_grid_has_as_many_points_as_its_axes_multiplied(lengths: list[int], at_most: int) -> None:
    axes = {f"a{n}": {"key": f"x.y{n}", "values": list(range(length))} for n, length in enumerate(lengths)}
    found = points(plan(axes=axes, where=f"a0 < {at_most}"))
    assert len(found.points) == found.columns.height == math.prod([min(lengths[0], at_most), *lengths[1:]])
    assert len(set(found.points)) == len(found.points)


@given(
    st.lists(
        st.sampled_from(
            [
                "[sweep]",
                "[sweep.axes]",
                "[[sweep.x]]",
                "[other]",
                "[ 'sweep' . y ]",
                "sweep.z = 1",
                "a = 1",
                "",
                "# [sweep]",
                'b = """\n[sweep]\n"""',
                "c = [\n1,\n2]",
                "sweeper = 1",
                "x = '[sweep]'",
            ]
        ),
        max_size=12,
    )
)
def test_a_table_is_taken_out_and_the_lines_of_all_else_stay(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        whole = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    rest = without_table(text, "sweep")
    assert tomllib.loads(rest) == {key: value for key, value in whole.items() if key != "sweep"}
    assert rest.count("\n") == text.count("\n")


@given(st.one_of(st.integers(), st.floats(), st.text(), st.none(), st.lists(st.integers())), st.text())
def test_no_ends_of_a_range_break_the_reader(low: Any, high: str) -> None:
    try:
        Span.of(low, high, log=False)
    except Unusable as error:
        assert str(error)  # noqa: PT017 - either is right


def test_a_plan_that_says_no_limit_of_a_run_has_that_of_studies_and_checks(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('test = "ping"\nlink = "cable-20-8"\n[sweep.axes]\nip = [4, 6]\n')
    assert load_plan(file).run_limit_s == RUN_LIMIT_S
