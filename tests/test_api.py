"""The Python API as a person at a prompt or in a notebook meets it."""

from __future__ import annotations

import copy
import gc
import inspect
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

import weirlab
from weirlab.api import run_all
from weirlab.cli import weir as group
from weirlab.errors import UsageError, WeirError
from weirlab.record import open_record
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.stats import summarise
from weirlab.worlds.sim import SimWorld

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirlab.worlds import Progress

untyped: Any = weirlab
"""As it is to someone who checks no types."""

TEST = """name = "mine"
title = "Mine"
summary = "Mine"
source = "own"
phases = { idle = "0s", load = "1s", cooldown = "0s" }
parameters = { streams = { default = 1, minimum = 1, maximum = 9, meaning = "uploads" } }
[[flows]]
name = "U"
direction = "up"
count = "streams"
"""

LINK = """name = "line"
title = "Line"
source = "own"
[[up]]
name = "a"
rate = "10mbit"
place = "queue"
[[down]]
name = "b"
rate = "10mbit"
"""

SHORT = {"idle": "1s", "load": "2s", "cooldown": "0s"}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Two queues, two congestion controls, two seeds."""
    return weirlab.run(
        "tcp_bidirectional",
        queue=["pfifo_fast", "fq_codel"],
        cc=["cubic", "reno"],
        repeat=2,
        phases=SHORT,
        out=tmp_path_factory.mktemp("swept") / "out",
    )


def test_a_record_in_a_temporary_folder_is_for_this_process_alone(tmp_path: Path) -> None:
    """Its folder goes with the process that made it: the other one would have a record without tables."""
    (record,) = weirlab.run("ping", phases={"idle": "1s"})
    with pytest.raises(UsageError, match='run it with `out="FOLDER"`'):
        pickle.dumps(record)
    for made in (copy.copy(record), copy.deepcopy(record)):
        assert made.latency.equals(record.latency)
    folder = record.path
    other = copy.deepcopy(record)
    del record, made
    gc.collect()
    assert folder.exists()
    assert open_record(other.path).latency.height > 0
    (kept,) = weirlab.run("ping", phases={"idle": "1s"}, out=tmp_path / "out")
    again = pickle.loads(pickle.dumps(kept))  # noqa: S301 - what it has just made
    assert again.latency.equals(kept.latency)


WORKER = """
import multiprocessing

import weirlab

kept = []


def work() -> None:
    kept.extend(weirlab.run("ping", phases={"idle": "1s"}))


if __name__ == "__main__":
    for method in ("fork", "forkserver", "spawn"):
        worker = multiprocessing.get_context(method).Process(target=work)
        worker.start()
        worker.join()
        assert worker.exitcode == 0
"""


def test_processes_of_a_pool_take_their_temporary_records_with_them(tmp_path: Path) -> None:
    """They end without Python's own functions at exit, where they were forked."""
    program = tmp_path / "work.py"
    program.write_text(WORKER)
    # `tmp_path` is too long for the sockets of `forkserver`.
    with tempfile.TemporaryDirectory() as temporary:
        done = subprocess.run(
            [sys.executable, program],
            env=os.environ | {"TMPDIR": temporary},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert list(Path(temporary).iterdir()) == []


READER = """
import multiprocessing
from multiprocessing.util import Finalize

import weirlab


def look(records, ending) -> None:
    assert ending.wait(60)
    print(records[0].latency.height)


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    ending = context.Event()
    # Of the same priority those that were registered last go first.
    Finalize(None, ending.set, exitpriority=0)
    records = weirlab.run("ping", phases={"idle": "1s"})
    context.Process(target=look, args=(records, ending)).start()
"""


def test_a_temporary_record_is_there_until_forked_processes_have_ended() -> None:
    """Python waits for them where it ends; until then they read what they have borrowed."""
    done = subprocess.run([sys.executable, "-c", READER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().isdigit(), done.stderr


def test_completion_shows_the_whole_api() -> None:
    """In a fresh interpreter, before anything was loaded."""
    code = (
        "import sys, weirlab\n"
        "assert set(weirlab.__all__) <= set(dir(weirlab)), dir(weirlab)\n"
        "assert not {'polars', 'matplotlib', 'pydantic'} & set(sys.modules)\n"
        "for name in weirlab.__all__: getattr(weirlab, name)\n"
        "assert callable(weirlab.frame) and callable(weirlab.plot) and callable(weirlab.run)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_run_has_every_word_of_a_scenario() -> None:
    words = inspect.signature(weirlab.run).parameters
    assert not [one for one in words.values() if one.kind is inspect.Parameter.VAR_KEYWORD]
    assert set(ScenarioSpec.model_fields) <= set(words)
    documented = inspect.getdoc(weirlab.run) or ""
    for name in words:
        assert f"{name}:" in documented, name


def test_every_word_of_run_reaches_the_scenario(tmp_path: Path) -> None:
    (record,) = weirlab.run(
        "tcp_nup",
        link="line-50",
        queue_up="fq_codel",
        queue_down=["pfifo"],
        shaper="none",
        cc="reno",
        seed=7,
        phases=SHORT,
        parameters={"streams": 3},
        tcp={"ecn": True},
        sampling={"ping": "20ms"},
        start_jitter="1ms",
        ip=6,
        name="mine",
        out=str(tmp_path / "o"),
    )
    scenario = record.manifest.scenario
    assert len(scenario["flows"]) == 3
    assert scenario["flows"][0]["tcp"]["congestion_control"] == "reno"
    assert scenario["flows"][0]["tcp"]["overrides"]["ecn"] is True
    assert scenario["start_jitter_ns"] == 1_000_000
    assert scenario["probes"][0]["period_ns"] == 20_000_000
    assert scenario["ip_version"] == "6"
    assert record.manifest.seed == 7


class _Waiting(SimWorld):
    """Its runs begin when `told` is set."""

    def __init__(self) -> None:
        self.told = threading.Event()

    def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
        assert self.told.wait(60)
        return super().run(run, folder, progress)


def ping_run() -> list[ResolvedRun]:
    return resolve(ScenarioSpec(test="ping", link="cable-20-8", phases={"load": "1s"}))


class _Asked(SimWorld):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def check(self, run: ResolvedRun) -> None:
        self.asked.append((run.queue, run.seed))
        super().check(run)


def test_a_world_is_asked_once_about_what_differs_in_its_seed_alone(tmp_path: Path) -> None:
    spec = ScenarioSpec(
        test="ping", link="cable-20-8", phases={"load": "100ms"}, queue=["pfifo", "fq"], repeat=3
    )
    world = _Asked()
    run_all(resolve(spec), world, tmp_path / "out")
    assert world.asked == [("pfifo", 1), ("fq", 1)]
    run_all(resolve(spec.model_copy(update={"queue": ["fq", "cake"]})), world, tmp_path / "more")
    assert world.asked[2:] == [("cake", 1)]


def test_a_world_is_asked_again_about_what_it_refused(tmp_path: Path) -> None:
    spec = ScenarioSpec(test="tcp_upload", link="cable-20-8", cc=["nothing_such"], phases={"load": "100ms"})
    world = _Asked()
    for _ in range(2):
        with pytest.raises(UsageError, match="nothing_such"):
            run_all(resolve(spec), world, tmp_path / "out")
    assert len(world.asked) == 2


@pytest.mark.parametrize(
    "words",
    [
        ["validate", "--worlds", "sim,lab"],
        ["run", "--until", "latency.mean +-60%", "--max-repeat", "4"],
    ],
)
def test_a_command_asks_a_world_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    made: list[_Asked] = []

    def asked(*_: object, **__: object) -> _Asked:
        made.append(_Asked())
        return made[-1]

    for name in ("sides", "named"):
        monkeypatch.setattr(f"weirlab.worlds.{name}.world_named", asked)
    monkeypatch.setattr("weirlab.cli.run_command.world_named", asked)
    monkeypatch.chdir(tmp_path)
    line = [words[0], "tcp_upload", *words[1:], "--load", "200ms", "--queue", "pfifo", "--queue", "fq"]
    CliRunner().invoke(group, [*line, "--out", "out", "--no-charts"], catch_exceptions=False)
    assert made
    for world in made:
        assert sorted(queue for queue, _ in world.asked) == ["fq", "pfifo"]


def test_what_is_done_meanwhile_is_done_beside_the_runs(tmp_path: Path) -> None:
    world = _Waiting()
    records = run_all(ping_run(), world, tmp_path / "out", meanwhile=world.told.set)
    assert [record.manifest.complete for record in records] == [True]


def test_what_fails_meanwhile_ends_the_runs(tmp_path: Path) -> None:
    world = _Waiting()

    def fail() -> None:
        world.told.set()
        raise OSError("nothing to load")

    with pytest.raises(OSError, match="nothing to load"):
        run_all(ping_run(), world, tmp_path / "out", meanwhile=fail)


def test_a_run_keeps_no_garbage_of_who_called_it(tmp_path: Path) -> None:
    before = gc.get_freeze_count()
    run_all(ping_run(), SimWorld(), tmp_path / "out")
    assert gc.get_freeze_count() <= before


def test_one_row_a_run(swept: list[Record]) -> None:
    table = weirlab.frame(swept)
    assert table.height == len(swept) == 8
    assert table["congestion_control"].to_list() == ["cubic", "cubic", "reno", "reno"] * 2
    assert table["queue"].to_list() == ["pfifo_fast"] * 4 + ["fq_codel"] * 4
    assert table["seed"].to_list() == [1, 2] * 4
    assert "load_s" not in table.columns  # all have the same
    for row, record in zip(table.iter_rows(named=True), swept, strict=True):
        summary = summarise(record)
        assert summary.latency.loaded
        assert summary.down
        assert row["loaded_mean_ms"] == summary.latency.loaded.mean
        assert row["loaded_p99_ms"] == summary.latency.loaded.p99
        assert row["increase_mean_ms"] == summary.latency.increase_mean_ms
        assert row["down_goodput_mbps"] == summary.down.goodput_mbps
        assert row["down_flows"] == 1


def test_rows_of_probes_and_flows(swept: list[Record]) -> None:
    probes, flows = weirlab.frame(swept[0], by="probe"), weirlab.frame(swept, by="flow")
    assert probes["probe"].to_list() == swept[0].probe_names
    assert probes["increase_mean_ms"][0] == pytest.approx(summarise(swept[0]).latency.increase_mean_ms)
    assert flows.height == 16
    assert flows["direction"].to_list()[:2] == swept[0].flow_names["direction"].to_list()
    down = flows.filter(
        (pl.col("direction") == "down") & (pl.col("configuration") == flows["configuration"][0])
    )
    assert down["goodput_mbps"][0] == weirlab.frame(swept)["down_goodput_mbps"][0]


def test_a_figure_comes_back(swept: list[Record], tmp_path: Path) -> None:
    chart = weirlab.plot(swept, "box")
    assert isinstance(chart, Figure)
    chart.savefig(tmp_path / "own.png")
    show: Any = chart
    assert show._repr_png_().startswith(b"\x89PNG")
    assert weirlab.plot(swept[0], "three-plot").axes
    assert weirlab.draw("box", swept, str(tmp_path / "a" / "b.png")).exists()


def test_notebooks_show_tables(swept: list[Record]) -> None:
    def html(of: object) -> str:
        shown: Any = of
        text: str = shown._repr_html_()
        return text

    one = open_record(swept[0].path)
    one.manifest = replace(one.manifest, title="<script>")
    assert "&lt;script&gt;" in html(one)
    assert "increase under load" in html(one)
    assert html(swept).count("<tr>") == 1 + len(swept)
    compared = weirlab.compare(swept)
    assert html(compared).count("<tr>") == 1 + 4
    assert "factor" in html(compared)
    assert compared[0].name in html(compared[0])
    assert repr(compared[0]).count("\n") == 0
    assert len(repr(compared[0])) < 200


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: untyped.compare("path"), "compare('path'): give records, such as those of `run`"),
        (lambda: untyped.compare([]), "compare([]): give at least one record"),
        (lambda: untyped.compare(5), "compare(5): give records"),
        (lambda: untyped.summarise("path"), "summarise('path'): give one record"),
        (lambda: untyped.summarise([1]), "summarise([1]): give one record"),
        (lambda: untyped.frame("path"), "frame('path'): give records"),
        (lambda: untyped.frame([]), "give at least one record"),
        (lambda: untyped.plot("path", "box"), "plot('path'): give records"),
        (lambda: untyped.draw("box", "path", "x.png"), "draw('path'): give records"),
        (lambda: untyped.view("path"), "view('path'): give records"),
        (lambda: untyped.view([]), "view([]): give at least one record"),
        (lambda: untyped.sweep({"sweep": 5}, store="s"), "plan: `sweep` is a table, not `int`"),
        (
            lambda: untyped.sweep({}, axes=["x"], store="s"),
            "axes: give a dict with a list of values",
        ),
        (lambda: untyped.sweep({}, store=5), "store: 5: give the path of a store or its URL, not `int`"),
        (lambda: untyped.sweep({}, store="s", jobs=0), "jobs: 0: give how many worker processes there are"),
        (lambda: untyped.sweep({}, store="s", cluster="x"), "cluster: 'x': give how many worker processes"),
        (lambda: untyped.sweep({}, store="s", scheduler=["x"]), "scheduler: ['x']: give the address of a"),
        (lambda: untyped.open_record(5), "open_record: 5: give the path of a record, not `int`"),
        (lambda: untyped.run(queue=5, test="rrul"), "scenario: queue: 5: "),
        (lambda: untyped.run("rrul", out=5), "out: 5: give the path of a folder for records, not `int`"),
        (lambda: untyped.run("rrul", world=5), "world: 5: write one of sim"),
        (lambda: untyped.run("rrul", world="moon"), "moon"),
        (lambda: untyped.run("rrul", world="lab", datapath="moon"), "unknown datapath `moon`"),
        (lambda: untyped.run("rrul", datapath="kernel"), "world `sim` has no kernel in it"),
        (lambda: untyped.run(5), "scenario: test: "),
        (lambda: untyped.run("rrul", link=5), "scenario: link: "),
        (lambda: untyped.run("rrul", cc=5), "scenario: cc: 5: "),
        (lambda: untyped.run("rrul", shaper=5), "scenario: shaper: 5: "),
        (lambda: untyped.run("rrul", phases=5), "scenario: phases: 5: "),
        (lambda: untyped.run("rrul", seed="x"), "scenario: seed: `x`: "),
        (lambda: untyped.run("rrul", assertions=5), "scenario: assert: 5: "),
        (lambda: untyped.run("rrul", methods=5), "scenario: methods: 5: "),
        (lambda: untyped.ScenarioSpec(queue="x"), "ScenarioSpec: "),
        (lambda: untyped.ScenarioSpec(test="rrul", link="cable-20-8", seed=-1), "ScenarioSpec: seed: -1: "),
    ],
)
def test_wrong_types_are_one_sentence(wrong: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        wrong()
    text = str(caught.value)
    assert said in text
    assert "\n" not in text


PING: dict[str, Any] = {"test": "ping", "phases": {"idle": "200ms", "load": "300ms", "cooldown": "0s"}}
SWEEP: dict[str, Any] = {**PING, "link": "cable-20-8"}


@pytest.mark.parametrize(
    "place",
    [
        "",
        "9" * 5000,
        "new/" + "x" * 300,
        "new/" * 2000,
        "new/a\0b",
        "new/a\0b.svg",
        "new/\ud800",
        "new/\ud800.svg",
        "/dev/null/x",
        "/dev/null/x.svg",
    ],
)
@pytest.mark.parametrize(
    "asked",
    [
        lambda place, _: weirlab.run(**PING, out=place),
        lambda place, _: weirlab.run(**PING, out=Path(place or "/dev/null") / "deeper"),
        lambda place, _: weirlab.open_record(place),
        lambda place, records: weirlab.draw("cdf", records[0], place),
        lambda place, _: weirlab.sweep(SWEEP, axes={"link": ["cable-20-8", "wifi-n"]}, store=place, jobs=1),
        lambda place, _: weirlab.sweep(place, store="store"),
    ],
)
def test_a_place_that_cannot_be_is_one_sentence_and_nothing_is_left(
    asked: Callable[[str, list[Record]], object],
    place: str,
    swept: list[Record],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WeirError) as caught:
        asked(place, swept)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_url_that_was_made_a_path_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UsageError, match="`s3:/bucket/x`: give a URL as a text: as a path it has lost a slash"
    ):
        weirlab.sweep(SWEEP, axes={"link": ["wifi-n"]}, store=Path("s3://bucket/x"), jobs=1)
    assert not list(tmp_path.iterdir())


class Elsewhere:
    """A path of another library."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


def test_whatever_names_a_path_to_the_system_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (record,) = untyped.run(**PING, out=Elsewhere(tmp_path / "out"))
    assert untyped.open_record(Elsewhere(record.path)).manifest == record.manifest
    untyped.draw("cdf", record, Elsewhere(tmp_path / "cdf.svg"))
    untyped.sweep(SWEEP, axes={"link": ["wifi-n"]}, store=Elsewhere(tmp_path / "store"), jobs=1)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["cdf.svg", "out", "store"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"kind": ["cdf"]}, "kind: ['cdf']: give the name of a chart, not `list`"),
        ({"kind": "pie"}, "there is no chart `pie` (known: three-plot"),
        ({"kind": None}, "there is no chart `None`"),
        ({"title": ["a"]}, "title: ['a']: give the heading of a chart, not `list`"),
        ({"title": "x\ud800"}, r"title: 'x\ud800' is no text in UTF-8: give the heading of a chart"),
        ({"span_s": {1: "a", 3: "b"}}, "span_s: {1: 'a', 3: 'b'}: give its first and last second"),
        ({"span_s": {5, 1}}, "give its first and last second, such as (35, 55), not `set`"),
        ({"span_s": (False, True)}, "span_s: (False, True): give its first and last second"),
        ({"span_s": np.zeros((3, 3))}, "span_s: array([[0., 0., 0.], [0., 0., 0.], [0., 0., 0.]]): give"),
        ({"span_s": 10**5000}, "span_s: a number of thousands of digits: give"),
        ({"title": True}, "title: True: give the heading of a chart, not `bool`"),
        ({"look": "5 ms"}, "look: give a `Look` of weirlab.plots, not `str`"),
        (
            {"span_s": ("a", "b")},
            "span_s: ('a', 'b'): give its first and last second, such as (35, 55), not `tuple`",
        ),
        ({"span_s": 5}, "span_s: 5: give its first and last second"),
        ({"span_s": (0, 10**400)}, "span_s: (0, 1000"),
        ({"span_s": np.array(5)}, "span_s: array(5): give its first and last second"),
        ({"span_s": (0, float("nan"))}, "span_s: (0, nan): give its first and last second"),
        ({"whole": "path"}, "draw(whole=...)('path'): give records"),
    ],
)
def test_wrong_types_of_a_chart_are_one_sentence(
    words: dict[str, object], said: str, swept: list[Record], tmp_path: Path
) -> None:
    words = {"kind": "three-plot", "records": swept[0], **words}
    with pytest.raises(UsageError, match=re.escape(said)):
        untyped.draw(**words, target=tmp_path / "x.svg")
    if "whole" not in words:
        with pytest.raises(UsageError, match=re.escape(said)):
            untyped.plot(**words)
    assert not list(tmp_path.iterdir())


def test_numbers_of_numpy_are_numbers(swept: list[Record], tmp_path: Path) -> None:
    for number, span in enumerate((np.array([0.1, 0.4]), (np.float32(0.5), np.int64(1)))):
        assert untyped.draw("three-plot", swept[0], tmp_path / f"{number}.svg", span_s=span).exists()
    rows = untyped.sweep(SWEEP, axes={"link": ["cable-20-8"]}, store=tmp_path / "s", jobs=np.int64(1))
    assert rows.collect().height == 1


def test_a_run_takes_numbers_of_numpy_and_paths(tmp_path: Path) -> None:
    """As a notebook has them; a file of a test or link is a path where that is said."""
    test, link = tmp_path / "mine.toml", tmp_path / "line.toml"
    test.write_text(TEST)
    link.write_text(LINK)
    (record,) = untyped.run(
        test,
        link=link,
        seed=np.int64(3),
        repeat=np.int32(1),
        parameters={"streams": np.uint8(2)},
        ip=np.int8(6),
    )
    assert record.manifest.seed == 3
    assert record.flow_names.height == 2
    assert len(untyped.run(test, link=[link, "cable-20-8"])) == 2
    for key in ("test", "link"):
        with pytest.raises(UsageError, match=f"{key}: None: give the name of a {key}"):
            untyped.run(**{"test": "ping", key: None})
    with pytest.raises(UsageError, match="seed"):
        untyped.run("ping", seed=np.float64(3.5))


def test_what_yields_records_in_order_is_compared(swept: list[Record]) -> None:
    names = [one.name for one in weirlab.compare(swept)]
    array = np.empty(len(swept), dtype=object)
    array[:] = swept
    for given in (tuple(swept), iter(swept), (one for one in swept), array):
        assert [one.name for one in untyped.compare(given)] == names
    for wrong in ({swept[0]}, {"a": swept[0]}, np.array(5), iter([1])):
        with pytest.raises(UsageError, match="give records"):
            untyped.compare(wrong)


def test_the_heading_of_a_page_is_a_text(swept: list[Record]) -> None:
    with pytest.raises(UsageError, match=re.escape("title: ['a']: give the heading of a page, not `list`")):
        untyped.view(swept, title=["a"])


def test_one_record_is_as_good_as_a_list_of_one(swept: list[Record]) -> None:
    (alone,), (listed,) = weirlab.compare(swept[0]), weirlab.compare(swept[:1])
    assert alone == listed


def load_s(record: Record) -> float:
    """The length of the phase `load`, in seconds."""
    (load,) = (one for one in record.manifest.scenario["phases"] if one["name"] == "load")
    return float(load["end_ns"] - load["start_ns"]) / 1e9


def test_a_scenario_in_code_or_in_a_file_is_run_as_a_whole(tmp_path: Path) -> None:
    """What the call names takes the place of the scenario's own, and nothing else does."""
    keys: dict[str, Any] = {"test": "ping", "link": "line-50", "seed": 7, "phases": {"load": "2s"}}
    file = tmp_path / "mine.toml"
    file.write_text('test = "ping"\nlink = "line-50"\nseed = 7\nphases = { load = "2s" }\n')
    for given in (weirlab.ScenarioSpec(**keys), file, str(file), keys):
        (record,) = weirlab.run(given)
        assert (record.manifest.link["name"], record.manifest.seed) == ("line-50", 7)
        assert load_s(record) == 2
        (again,) = weirlab.run(given, link="cable-20-8", seed=1, note="again", out=tmp_path / "out")
        assert (again.manifest.link["name"], again.manifest.seed) == ("cable-20-8", 1)
        assert load_s(again) == 2
        assert again.manifest.note == "again"
        shutil.rmtree(tmp_path / "out")
    (record,) = weirlab.run(test=file, seed=0, link="line-50")
    assert record.manifest.seed == 0


def test_of_tables_of_a_scenario_single_keys_are_replaced() -> None:
    scenario = weirlab.ScenarioSpec(
        **{
            "test": "tcp_download",
            "link": "line-50",
            "phases": {"idle": "1s", "load": "30s"},
            "tcp": {"congestion_control": "reno", "ecn": True},
            "assert": ["latency.p99 < 1ms"],
        }
    )
    records = weirlab.run(scenario, phases={"load": "2s"}, cc=["cubic", "bbr"], assertions=[])
    assert len(records) == 2
    for record, control in zip(records, ("cubic", "bbr"), strict=True):
        spans = {one["name"]: one["end_ns"] - one["start_ns"] for one in record.manifest.scenario["phases"]}
        assert (spans["idle"], spans["load"]) == (10**9, 2 * 10**9)
        tcp = record.manifest.scenario["flows"][0]["tcp"]
        assert tcp["congestion_control"] == control
        assert tcp["overrides"]["ecn"] is True
        assert not record.manifest.scenario.get("assertions")


def test_a_file_of_a_scenario_that_names_no_link_takes_that_of_the_call(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('test = "ping"\nphases = { load = "1s" }\n')
    (record,) = weirlab.run(file, link="line-50")
    assert record.manifest.link["name"] == "line-50"
    with pytest.raises(UsageError, match="link: this key is missing"):
        weirlab.run(file)
    file.write_text('tset = "ping"\nlink = "line-50"\n')
    with pytest.raises(UsageError, match="did you mean `test`"):
        weirlab.run(file)
    with pytest.raises(UsageError, match=r"seed: -1: write 0 or more"):
        weirlab.run({"test": "ping", "link": "line-50"}, seed=-1)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        untyped.run(file, lnik="line-50")


def test_what_a_scenario_says_without_effect_is_told_where_run_is_called() -> None:
    keys = {"test": "ping", "link": "line-50", "cc": "bbr", "phases": {"load": "1s"}}
    for given, more in ((keys, {}), ("ping", {"cc": "bbr", "phases": {"load": "1s"}})):
        with pytest.warns(UserWarning, match="cc") as told:
            untyped.run(given, **more)
        assert [one.filename for one in told] == [__file__] * len(told)
