"""Runs that are repetitions, records that are one run, and differences between others, in words."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import weirlab
from weirlab.record import Record, configurations, open_record
from weirlab.record.configurations import distinct, run_names, same_runs, slug
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.stats import compare

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Weir = Callable[..., subprocess.CompletedProcess[str]]

PHASES = {"idle": "200ms", "load": "300ms", "cooldown": "0s"}
LINE = {"name": "line", "rate": "20mbit", "delay": "5ms"}


@pytest.fixture(scope="session")
def short(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The shortest of runs, of which others are made by changing its manifest."""
    (record,) = weirlab.run("rrul_be", phases=PHASES, out=tmp_path_factory.mktemp("short") / "out")
    return record


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("htb rate 95% fq_codel", "htb-rate-95-fq-codel"),
        ("日本", "日本"),
        ("Привет, мир!", "привет-мир"),
        ("U\u0308nïcode", "ünïcode"),
        ("हिन्दी", "हिन्दी"),
        ("../a\\b\0c\u202ed", "a-b-c-d"),
        ("!?", "queue"),
        ("\u26a1\ufe0f", "queue"),
        ("after \u26a1\ufe0f 2", "after-2"),
        ("本" * 80, "本" * 40),
    ],
)
def test_letters_of_every_script_are_kept_in_names_of_files(text: str, name: str) -> None:
    assert slug(text) == name


def scenario(**words: Any) -> dict[str, Any]:
    base: dict[str, Any] = {"test": "rrul_be", "link": "cable-20-8", "phases": PHASES}
    return base | words


def as_if(record: Record, **words: Any) -> Record:
    """`record` as if it were of that scenario."""
    (run,) = resolve(ScenarioSpec.model_validate(scenario(**words)))
    copy = open_record(record.path)
    copy.manifest = replace(
        copy.manifest,
        seed=run.seed,
        queue=run.queue,
        title=run.test.title,
        configuration=run.configuration,
        link=run.link.model_dump(mode="json"),
        test=run.test.model_dump(mode="json"),
        scenario=run.scenario,
    )
    return copy


def own_link(**hop: Any) -> dict[str, Any]:
    """A link of one hop each way, whose name and title say nothing of its numbers."""
    return {"name": "own", "title": "My line", "up": [LINE], "down": [LINE | hop]}


def test_of_no_records_there_are_no_configurations() -> None:
    """As of a test without loads when charts of loads are drawn."""
    assert configurations([]) == []


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ({}, {"tcp": {"congestion_control": "bbr"}}, ["cubic", "bbr"]),
        ({}, {"tcp": {"ecn": True}}, ["no ECN", "ECN"]),
        ({"tcp": {"sack": False}}, {"tcp": {"sack": True}}, ["no SACK", "SACK"]),
        (
            {"tcp": {"receive_window": 65_536}},
            {"tcp": {"receive_window": 131_072}},
            ["receive window 65536 bytes", "receive window 131072 bytes"],
        ),
        ({}, {"phases": PHASES | {"load": "500ms"}}, ["load 300 ms", "load 500 ms"]),
        ({}, {"phases": PHASES | {"cooldown": "1s"}}, ["phases idle, load", "phases idle, load, cooldown"]),
        (
            {},
            {"phases": {"idle": "100ms", "load": "500ms", "cooldown": "1s"}},
            ["phases idle 200 ms, load 300 ms", "phases idle 100 ms, load 500 ms, cooldown 1 s"],
        ),
        ({}, {"ip": 6}, ["IPv4", "IPv6"]),
        ({}, {"sampling": {"ping": "20ms"}}, ["ping every 10 ms", "ping every 20 ms"]),
        ({}, {"start_jitter": "1ms"}, ["start jitter 50 ms", "start jitter 1 ms"]),
        (
            {"queue": ["fq_codel"]},
            {"queue": ["fq_codel"], "shaper": ["fixed up 90% down 90%"]},
            ["fq_codel", "shaper fixed up 90% down 90%, fq_codel"],
        ),
        (
            {"test": "tcp_ndown", "parameters": {"streams": 1}},
            {"test": "tcp_ndown", "parameters": {"streams": 3}},
            ["1 download", "3 downloads"],
        ),
        (
            {"link": own_link()},
            {"link": own_link(rate="50mbit")},
            ["down line rate 20 Mbit/s", "down line rate 50 Mbit/s"],
        ),
        (
            {"link": own_link()},
            {"link": own_link(loss={"model": "random", "probability": 0.01})},
            ["down line no loss", "down line loss random probability 0.01"],
        ),
        (
            {"link": own_link()},
            {"link": own_link(changes=[{"at": "2s", "rate": "3mbit"}])},
            ["down line unchanged", "down line changes at 2 s rate 3 Mbit/s"],
        ),
        (
            {"link": "cable-20-8"},
            {"link": "fios-25-25"},
            ["Cable, 20 Mbit/s down, 8 Mbit/s up", "Fibre, 25 Mbit/s each way"],
        ),
        (
            {"link": "cable-20-8", "tcp": {"congestion_control": "reno"}},
            {"link": "fios-25-25", "tcp": {"congestion_control": "bbr"}},
            ["Cable, 20 Mbit/s down, 8 Mbit/s up · reno", "Fibre, 25 Mbit/s each way · bbr"],
        ),
    ],
)
def test_whatever_differs_is_named_and_nothing_else(
    short: Record, first: dict[str, Any], second: dict[str, Any], names: list[str]
) -> None:
    records = [as_if(short, **first), as_if(short, **second)]
    assert run_names(records) == names
    assert [one.name for one in configurations(records)] == names


def test_changes_of_a_line_are_told_in_short_by_the_instant(short: Record) -> None:
    def named(*changes: tuple[int, Any]) -> str:
        record = as_if(short, link=own_link())
        (line,) = record.manifest.scenario["path"]["down"]
        line["changes"] = [{"at_ns": at_ns, "to": to} for at_ns, to in changes]
        return run_names([as_if(short, link=own_link()), record])[1]

    lost = {"loss": {"model": "random", "probability": 0.015}}
    whole = {"loss": {"model": "random", "probability": 0.0}}
    first, second = 2_939_590_953, 6_552_556_341
    assert named(
        *((first, to) for to in ({"rate_bps": 5_000_000}, {"delay_ns": 40_000_000}, lost)),
        *((second, to) for to in ("down", {"delay_ns": 2_500_000}, whole)),
    ) == (
        "down line changes at 2.94 s rate 5 Mbit/s, delay 40 ms, loss 1.5 %; "
        "at 6.553 s down, delay 2.5 ms, no loss"
    )
    bursts = {
        "model": "gilbert_elliott",
        "good_to_bad": 0.1,
        "bad_to_good": 0.5,
        "loss_when_bad": 1,
        "loss_when_good": 0,
    }
    said = "gilbert_elliott good to bad 0.1 bad to good 0.5 loss when bad 1 loss when good 0"
    assert named((9_000, {"loss": bursts})) == f"down line changes at 9 us loss {said}"
    several = [(second_ns * 10**9, {"rate_bps": 10**6}) for second_ns in range(1, 6)]
    assert named(*several) == (
        "down line changes at 1 s rate 1 Mbit/s; at 2 s rate 1 Mbit/s; 3 more times until 5 s"
    )


def test_links_of_one_title_are_told_apart_beside_another_link(short: Record) -> None:
    links = [own_link(), own_link(rate="50mbit"), "cable-20-8"]
    first, second, third = run_names([as_if(short, link=link) for link in links])
    assert first.startswith("My line · ")
    assert "down line rate 20 Mbit/s" in first
    assert "down line rate 50 Mbit/s" in second
    assert third.startswith("Cable, 20 Mbit/s down, 8 Mbit/s up")


def test_one_of_several_flows_that_differs_is_named(short: Record) -> None:
    def one_bbr(place: int) -> Record:
        record = as_if(short)
        flows = [dict(flow) for flow in record.manifest.scenario["flows"]]
        flows[place]["tcp"] = flows[place]["tcp"] | {"congestion_control": "bbr"}
        changed = record.manifest.scenario | {"flows": flows}
        record.manifest = replace(record.manifest, scenario=changed)
        return record

    assert run_names([as_if(short), one_bbr(1)]) == ["cubic", "cubic+bbr"]
    names = run_names([one_bbr(1), one_bbr(2)])
    assert names[0] != names[1]
    assert "bbr" in names[0]
    assert not any(name.endswith("(1)") for name in names)


def test_flows_that_start_at_other_times_than_the_load_are_told_by_these(short: Record) -> None:
    def with_start(start: str | None) -> Record:
        late = {"name": "b", "direction": "up"} | ({} if start is None else {"start": start})
        flows = [{"name": "a", "direction": "up"}, late]
        test = {"name": "two", "title": "Two", "phases": PHASES, "flows": flows, "probes": []}
        return as_if(short, test=test, start_jitter="0s")

    found = configurations([with_start(None), with_start("0s"), with_start("300ms")])
    assert [one.name for one in found] == ["usual start", "usual start+start 0 s", "usual start+start 300 ms"]


def test_the_folders_of_two_records_that_differ_in_nothing_else(short: Record) -> None:
    left, right = as_if(short), as_if(short)
    for record, folder in ((left, "a"), (right, "b")):
        record.path = record.path / folder / "01-default"
        record.manifest = replace(record.manifest, world="lab", started_at=folder)
    assert run_names([left, right]) == ["the link's own queue · a", "the link's own queue · b"]


def test_one_run_given_twice_is_no_repetition(short: Record, tmp_path: Path) -> None:
    copy = tmp_path / "copy.weir"
    weirlab.record.pack(short, copy)
    twice = [short, open_record(short.path), open_record(copy)]
    assert distinct(twice) == [short]
    assert [(other.path, counts.path) for other, counts in same_runs(twice)] == [
        (short.path, short.path),
        (copy, short.path),
    ]
    (one,) = compare(twice)
    assert len(one.runs) == 1
    assert one.down_mbps is not None
    assert (one.down_mbps.count, one.down_mbps.low) == (1, None)
    assert [len(one.runs) for one in compare([short, short])] == [1]


def test_a_simulation_with_another_seed_is_a_repetition(short: Record) -> None:
    (one,) = configurations([as_if(short), as_if(short, seed=2)])
    assert [record.manifest.seed for record in one.records] == [1, 2]


def test_live_runs_with_one_seed_are_runs_of_their_own(short: Record) -> None:
    live = [as_if(short), as_if(short)]
    for record, started in zip(live, ("2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"), strict=True):
        record.manifest = replace(record.manifest, world="lab", started_at=started)
    assert distinct(live) == live
    assert same_runs(live) == []


def test_tests_of_a_line_are_told_apart_by_folder_or_note(short: Record, tmp_path: Path) -> None:
    def tested(folder: str, minute: int, flows: int, note: str = "") -> Record:
        place = tmp_path / folder
        if not place.exists():
            shutil.copytree(short.path, place)
        record = open_record(place)
        given, extra = (
            record.manifest.scenario,
            {"ramps": [{"phase": "load", "direction": "up", "flows": flows}]},
        )
        record.manifest = replace(
            record.manifest,
            world="net",
            started_at=f"2026-01-01T00:{minute:02}:00Z",
            note=note,
            extra=extra,
            scenario=given | {"flows": given["flows"][:flows]},
        )
        return record

    alone = [tested("before", 1, 2), tested("after", 2, 1)]
    assert [(one.name, len(one.records)) for one in configurations(alone)] == [("before", 1), ("after", 1)]
    noted = [tested(f"n{at}", at, 1 + at % 2, "with" if at < 3 else "without") for at in range(5)]
    assert [(one.name, len(one.records)) for one in configurations(noted)] == [("with", 3), ("without", 2)]


def test_how_long_a_program_might_have_run_in_a_lab_is_no_length_of_its_load(short: Record) -> None:
    """`weir lab exec` writes a load of a day, which ends with the program."""
    day = 86_400 * 10**9
    phases = [{"name": "load", "start_ns": 0, "end_ns": day}]
    program = open_record(short.path)
    given = program.manifest
    alone = given.scenario | {"flows": [], "probes": [], "phases": phases, "duration_ns": day}
    extra = given.extra | {"connections": []}
    program.manifest = replace(given, world="lab", seed=2, scenario=alone, extra=extra)
    names = " ".join(one.name for one in configurations([program, short]))
    assert "86400 s" not in names
    lasted = weirlab.frame([program, short])["load_s"].to_list()
    assert lasted[0] == program.reached_ns / 1e9, "the day is nobody's"
    program.manifest = replace(program.manifest, extra=given.extra)
    assert "86400 s" in " ".join(one.name for one in configurations([program, short]))


def test_a_run_cut_short_is_not_pooled_with_whole_ones(short: Record) -> None:
    def cut(seed: int, reached_ns: int) -> Record:
        record = as_if(short, seed=seed)
        record.manifest = replace(record.manifest, complete=False, reached_ns=reached_ns)
        return record

    whole = as_if(short)
    assert [(one.name, len(one.records)) for one in configurations([whole, cut(2, 400_000_000)])] == [
        ("complete", 1),
        ("cut short", 1),
    ]
    # Of one seed the run that came farther tells all that the other does.
    less, more = cut(1, 300_000_000), cut(1, 400_000_000)
    assert distinct([less, more]) == [more]
    assert distinct([less, whole, more]) == [whole]
    assert [counts for _, counts in same_runs([less, whole, more])] == [whole, whole]


def test_compare_and_plot_tell_what_is_one_run_and_what_is_cut_short(
    weir_here: Weir, short: Record, tmp_path: Path
) -> None:
    shutil.copytree(short.path, tmp_path / "a")
    shutil.copytree(short.path, tmp_path / "b")
    cut_short(tmp_path / "b")
    twice = weir_here("compare", "a", "a", "--json")
    assert "warning: `a` is given several times: it counts once" in twice.stderr
    [one] = json.loads(twice.stdout)
    assert len(one["runs"]) == 1
    both = weir_here("compare", "a", "b")
    assert "warning: `b` and `a` are one run: `a` counts" in both.stderr
    assert "cut short" not in both.stdout
    for words in (("compare", "b"), ("plot", "b", "--kind", "cdf", "--out", "b.svg")):
        done = weir_here(*words)
        assert done.returncode == 0, done.stderr
        assert "warning: `b`: the run was cut short at 0.5 s" in done.stderr


def cut_short(folder: Path) -> None:
    """Makes the record in `folder` one of a run that did not come to its end."""
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps(manifest | {"complete": False}))


def test_a_script_of_hundreds_of_classes_is_shown_in_short(weir_here: Weir, tmp_path: Path) -> None:
    """In text for people, where it would be pages of names; JSON has all of it, and no two names are one."""
    classes = [f"class add dev e parent 1: classid 1:{number:x} htb rate 1mbit" for number in range(2, 200)]
    scripts = [
        "; ".join([f"qdisc add dev e root handle 1: htb default {default}", *classes]) for default in (2, 3)
    ]
    records = weirlab.run(
        "ping", queue=scripts, phases={"idle": "100ms", "load": "100ms"}, out=tmp_path / "o"
    )
    for command in ("show", "compare"):
        printed = weir_here(command, str(tmp_path / "o")).stdout
        assert len(printed) < 10_000
        assert "1:c7" in printed, "the last class"
    told = json.loads(weir_here("compare", "--json", *(str(one.path) for one in records)).stdout)
    assert [one["name"] for one in told] == scripts
