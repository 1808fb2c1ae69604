"""Batches: the order of runs, what is made again after a stop, commands around runs, and clumsy files."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from live import FOREVER_S, PATIENCE_S
from weirlab.api import in_turn, run_all
from weirlab.batches import carry_out, load_batch, running
from weirlab.batches.running import LOG, alone, missing
from weirlab.cli import weir as group
from weirlab.errors import AssertionBroken, LabError, UsageError
from weirlab.groups import Group
from weirlab.record import open_record
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.worlds.sim import SimWorld

if TYPE_CHECKING:
    from weirlab.batches import Batch
    from weirlab.scenario import ResolvedRun

PHASES = 'phases = { idle = "0s", load = "200ms", cooldown = "0s" }'

TWO = f"""
repeat = 3

[[scenario]]
name = "Two queues"
test = "tcp_upload"
link = "cable-20-8"
queue = ["pfifo_fast", "htb rate 95% fq_codel"]
{PHASES}

[[scenario]]
test = "tcp_download"
link = "cable-20-8"
repeat = 1
{PHASES}
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "b.toml"
    file.write_text(text)
    return file


def command(*words: str) -> str:
    done = CliRunner().invoke(group, ["batch", *words], catch_exceptions=False, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.output


class Finished:
    """Remembers in which order runs end, and ends everything once a run has ended if it is asked to."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.numbers: list[int] = []
        self._stop_at = stop_at

    def advanced(self, number: int, reached_ns: int) -> None:
        """How far a run is does not matter."""

    def finished(self, number: int) -> None:
        self.numbers.append(number)
        if number == self._stop_at:
            raise RuntimeError(f"the machine went down in run {number}")


def cut_short(record: Path) -> None:
    """What a run leaves that is killed: a manifest that does not say that it came to its end."""
    manifest = json.loads((record / "manifest.json").read_text())
    del manifest["tables"]
    (record / "manifest.json").write_text(json.dumps({**manifest, "complete": False}))


def made(folder: Path) -> dict[Path, str]:
    """The records below a folder, and when each was made."""
    files = sorted(folder.rglob("manifest.json"))
    return {file.parent: json.loads(file.read_text())["started_at"] for file in files}


def test_rounds_alternate() -> None:
    # Three configurations, of which the last is run once only.
    assert in_turn([0, 1, 2, 0, 1, 2, 0]) == [0, 3, 6, 4, 1, 2, 5]
    assert in_turn([]) == []


def test_runs_of_a_scenario_take_turns(tmp_path: Path) -> None:
    spec = ScenarioSpec(
        test="tcp_upload",
        link="cable-20-8",
        queue=["pfifo_fast", "fq_codel"],
        repeat=3,
        phases={"idle": "0s", "load": "100ms", "cooldown": "0s"},
    )
    watcher = Finished()
    records = run_all(resolve(spec), SimWorld(), tmp_path / "out", jobs=1, watcher=watcher)
    assert watcher.numbers == [0, 3, 4, 1, 2, 5]
    # They are still told configuration by configuration.
    assert [(one.manifest.queue, one.manifest.seed) for one in records] == [
        (queue, seed) for queue in ("pfifo_fast", "fq_codel") for seed in (1, 2, 3)
    ]


def test_each_round_of_a_batch_has_every_configuration_once(tmp_path: Path) -> None:
    batch = load_batch(written(tmp_path, TWO))
    steps = [(step.scenario, step.run.queue, step.run.seed) for step in batch.steps]
    assert {one[2] for one in steps[:3]} == {1}
    assert {one[2] for one in steps[3:5]} == {2}
    assert {one[2] for one in steps[5:]} == {3}
    assert len(set(steps)) == 7
    assert [step.folder for step in load_batch(tmp_path / "b.toml").steps] == [
        step.folder for step in batch.steps
    ]
    orders = {
        tuple(step.folder for step in load_batch(written(tmp_path, f"order_seed = {seed}\n{TWO}")).steps)
        for seed in range(8)
    }
    assert len(orders) > 1
    listed = load_batch(written(tmp_path, f'order = "listed"\n{TWO}')).steps
    assert [step.run.seed for step in listed] == [1, 2, 3, 1, 2, 3, 1]
    alternating = load_batch(written(tmp_path, f'order = "alternating"\n{TWO}')).steps
    assert [(step.run.queue.split()[0], step.run.seed) for step in alternating] == [
        ("pfifo_fast", 1),
        ("htb", 1),
        ("default", 1),
        ("htb", 2),
        ("pfifo_fast", 2),
        ("pfifo_fast", 3),
        ("htb", 3),
    ]


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    file, out = written(tmp_path, TWO), tmp_path / "b.batch"
    said = json.loads(command(str(file), "--json"))
    assert (said["there"], said["done"], said["left"]) == (0, 7, 0)
    assert [len(one["runs"]) for one in said["scenarios"]["01-two-queues"]] == [3, 3]
    first = made(out)
    assert len(first) == 7
    said = json.loads(command(str(file), "--json"))
    assert (said["there"], said["done"], said["left"]) == (7, 0, 0)
    assert made(out) == first
    # More repetitions add to what there is.
    written(tmp_path, TWO.replace("repeat = 3", "repeat = 4"))
    assert json.loads(command(str(file), "--json"))["done"] == 2
    assert first.items() <= made(out).items()


def test_a_batch_that_was_stopped_goes_on_without_losing_or_repeating_a_run(tmp_path: Path) -> None:
    batch, out = load_batch(written(tmp_path, TWO)), tmp_path / "out"
    out.mkdir()
    with pytest.raises(RuntimeError, match="went down in run 3"):
        carry_out(batch, out, missing(batch, out), jobs=1, watcher=Finished(stop_at=3))
    cut = out / batch.steps[3].folder
    cut_short(cut)
    assert not open_record(cut).manifest.complete
    before = {folder: at for folder, at in made(out).items() if folder != cut}
    assert len(before) == 3
    left = missing(batch, out)
    assert [step.folder for step in left] == [step.folder for step in batch.steps[3:]]
    outcome = carry_out(batch, out, left, jobs=1, watcher=None)
    assert (outcome.there, outcome.done, outcome.left) == (3, 4, 0)
    assert [len(records) for records in outcome.records.values()] == [6, 1]
    assert before.items() <= made(out).items()
    # The same rows as in one go.
    whole = tmp_path / "whole"
    whole.mkdir()
    carry_out(batch, whole, batch.steps, jobs=None, watcher=None)
    for step in batch.steps:
        assert open_record(out / step.folder).latency.equals(open_record(whole / step.folder).latency)


def test_the_record_of_another_scenario_is_not_taken_away(tmp_path: Path) -> None:
    file = written(tmp_path, TWO)
    command(str(file), "--json")
    written(tmp_path, TWO.replace("200ms", "300ms"))
    with pytest.raises(UsageError, match="holds the record of another scenario"):
        command(str(file))


def test_records_of_another_world_are_not_taken_for_those_of_the_batch(tmp_path: Path) -> None:
    command(str(written(tmp_path, TWO)), "--json")
    for words, here in (
        ('world = "lab"', "world lab"),
        ('world = "lab"\ndatapath = "userspace"', "world lab"),
        ('world = "lab"\ndatapath = "kernel"', "world lab, kernel's queues"),
        ('world = "kernel"', "world kernel"),
        ('world = "kernel"\ndatapath = "userspace"', "world kernel, Weir's queues"),
    ):
        batch = load_batch(written(tmp_path, f"{words}\n{TWO}"))
        with pytest.raises(UsageError, match=f"of world sim, and the batch is of {here}: choose"):
            missing(batch, tmp_path / "b.batch")
    file = written(tmp_path, f'datapath = "userspace"\n{TWO}')
    assert missing(load_batch(file), tmp_path / "b.batch") == []


def test_one_process_works_on_a_batch(tmp_path: Path) -> None:
    refused = pytest.raises(UsageError, match="another process works on this batch")
    with alone(tmp_path / "out"), refused, alone(tmp_path / "out"):
        pass
    with alone(tmp_path / "out"):
        pass


@pytest.fixture
def lab_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are what is tested here, and not the lab."""
    monkeypatch.setattr(running, "world_named", lambda *_: SimWorld())


def of_lab(folder: Path, **commands: list[str] | str) -> Batch:
    words = "\n".join(f"{key} = {json.dumps(value)}" for key, value in commands.items())
    return load_batch(written(folder, f'world = "lab"\norder = "listed"\n{words}\n{TWO}'))


@pytest.mark.usefixtures("lab_is_simulated")
def test_commands_run_before_and_after_each_run(tmp_path: Path) -> None:
    said = 'echo "$WEIR_WHEN $WEIR_QUEUE $WEIR_SEED $(test -e "$WEIR_RECORD" && echo there)"'
    batch, out = of_lab(tmp_path, before=[said], after=[said]), tmp_path / "out"
    out.mkdir()
    carry_out(batch, out, batch.steps[:2], jobs=1, watcher=None)
    lines = [line for line in (out / LOG).read_text().splitlines() if not line.startswith("==")]
    assert lines == [
        "before pfifo_fast 1 ",
        "after pfifo_fast 1 there",
        "before pfifo_fast 2 ",
        "after pfifo_fast 2 there",
    ]


@pytest.mark.usefixtures("lab_is_simulated")
def test_a_command_that_fails_ends_the_batch_and_the_next_call_goes_on(tmp_path: Path) -> None:
    batch, out = of_lab(tmp_path, before=['test "$WEIR_SEED" != 2'], after=["echo tidy"]), tmp_path / "out"
    out.mkdir()
    place = "01-two-queues/01-pfifo-fast/seed-2"
    with pytest.raises(
        LabError, match=rf"before `{place}`: `test .* ended with 1; its output is in .*commands.log"
    ):
        carry_out(batch, out, batch.steps, jobs=1, watcher=None)
    assert (out / LOG).read_text().count("tidy\n") == 2 + 2
    assert len(made(out)) == 1
    mended = of_lab(tmp_path)
    outcome = carry_out(mended, out, missing(mended, out), jobs=1, watcher=None)
    assert (outcome.there, outcome.done) == (1, 6)


def _runs(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return state.rsplit(")", 1)[1].split()[0] not in {"Z", "X"}


@pytest.mark.usefixtures("lab_is_simulated")
def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    child = f'{sys.executable} -c "import time; time.sleep({FOREVER_S})" & echo $! ; wait'
    batch, out = of_lab(tmp_path, before=[child], command_limit="500ms"), tmp_path / "out"
    out.mkdir()
    with pytest.raises(
        LabError,
        match=r"before `01-two-queues/01-pfifo-fast/seed-1`: .* was ended after 0\.5 s \(command_limit\)",
    ):
        carry_out(batch, out, batch.steps, jobs=1, watcher=None)
    process = int((out / LOG).read_text().splitlines()[-1])
    assert _ends(process)


def test_a_command_that_nothing_can_guard_does_not_begin() -> None:
    """As where no further process is to be had: nobody would end it with Weir."""
    alone = partial(resource.setrlimit, resource.RLIMIT_NPROC, (0, 0))
    # The limit does not hold for root.
    ordinary = {"user": "nobody"} if os.geteuid() == 0 else {}
    for limited, can in [(None, True), (alone, False)]:
        group = Group(
            "echo begun", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=limited, **ordinary
        )
        assert group._process.stdout is not None
        with group._process.stdout as said:
            assert said.read() == (b"begun\n" if can else b"")
        group.let_go()
        assert (group._process.returncode == 0) == can


def _ends(process: int) -> bool:
    """Whether a process ends soon."""
    until = time.monotonic() + PATIENCE_S
    while _runs(process) and time.monotonic() < until:
        time.sleep(0.02)
    return not _runs(process)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_ends_with_the_batch_whatever_ends_that(tmp_path: Path, number: signal.Signals) -> None:
    file, told = tmp_path / "batch.toml", tmp_path / "told"
    child = f"sleep {FOREVER_S} & echo $! >{told}.new; mv {told}.new {told}; wait"
    words = f'world = "lab"\nbefore = [{json.dumps(child)}]\nafter = ["touch {tmp_path}/tidy"]\n'
    file.write_text(words + TWO)
    called = subprocess.Popen(
        [sys.executable, "-m", "weirlab", "batch", str(file)], stderr=subprocess.PIPE, text=True
    )
    while not told.exists() and called.poll() is None:
        time.sleep(0.02)
    called.send_signal(number)
    _, said = called.communicate(timeout=PATIENCE_S)
    assert called.returncode == (130 if number == signal.SIGTERM else -number), said
    assert "Traceback" not in said
    assert _ends(int(told.read_text()))
    assert (tmp_path / "tidy").exists() == (number == signal.SIGTERM), "what follows a run tidies up"


def test_scenarios_may_stand_in_files_beside(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f'test = "tcp_upload"\nlink = "cable-20-8"\n{PHASES}\n')
    batch = load_batch(written(tmp_path, 'repeat = 2\n[[scenario]]\nfile = "own.toml"\n'))
    assert [step.run.seed for step in batch.steps] == [1, 2]
    assert batch.duration_s == pytest.approx(0.4)
    with pytest.raises(
        UsageError, match=r"scenario 1: file 'own.toml' beside queue: .* leave the others out"
    ):
        load_batch(written(tmp_path, '[[scenario]]\nfile = "own.toml"\nqueue = "pie"\n'))
    with pytest.raises(UsageError, match="scenario 1: file 3: write a name"):
        load_batch(written(tmp_path, "[[scenario]]\nfile = 3\n"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "scenario"),
        ("scenario = []", "scenario"),
        ("repeat = 0\n" + TWO.replace("repeat = 3", ""), "repeat"),
        (TWO.replace("tcp_upload", "tcp_uplaod"), "tcp_uplaod"),
        ("rounds = 3\n" + TWO, "rounds"),
        ('before = ["true"]\n' + TWO, "before and after are commands around runs of the lab"),
        (
            'datapath = "kernel"\n' + TWO,
            'datapath `kernel`: the world sim has no kernel in it: write `world = "lab"` or',
        ),
        ('world = "lab"\ncommand_limit = "0s"\n' + TWO, "command_limit `0s`"),
        ('world = "lab"\ncommand_limit = "5"\n' + TWO, "command_limit"),
        ('world = "net"\n' + TWO, "world"),
        ("[[scenario]", "cannot be read"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_written(
    tmp_path: Path, text: str, says: str
) -> None:
    file = written(tmp_path, text)
    with pytest.raises(UsageError, match=says):
        command(str(file))
    assert list(tmp_path.iterdir()) == [file]


def test_what_scenarios_of_a_batch_assert_is_judged(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        f'test = "tcp_upload"\nlink = "cable-20-8"\nassert = ["latency.p99 < 100s"]\n{PHASES}\n'
    )
    file = written(tmp_path, f'{TWO}assert = ["latency.p99 < 1us"]\n[[scenario]]\nfile = "own.toml"\n')
    for _ in ("made", "there"):
        done = CliRunner().invoke(group, ["batch", str(file), "--json"])
        assert isinstance(done.exception, AssertionBroken)
        assert str(done.exception) == "1 of 4 assertions do not hold"
        said = json.loads(done.stdout)["assertions"]
        out = tmp_path / "b.batch"
        assert {Path(path).relative_to(out).parts[0] for path in said} == {"02-tcp-download", "03-tcp-upload"}
        [broken] = [one for outcomes in said.values() for one in outcomes if not one["holds"]]
        assert broken["text"] == "latency.p99 < 1us"
    done = CliRunner().invoke(group, ["batch", str(file)])
    assert done.stdout.count("Assertions") == 2
    assert "broken" in done.stdout
    # What an assertion says is no part of the run.
    written(tmp_path, TWO.replace("repeat = 1", 'repeat = 1\nassert = ["latency.p99 < 100s"]'))
    assert "do not hold" not in command(str(file), "--json")


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("latency.p99[upload] < 1ms", r"scenario 2: .*upload"),
        ("latency.p99 <", "scenario 2: .*<"),
        ("latency.p95 not worse than baseline by 2ms", "scenario 2: .*`weir batch` takes no baseline"),
    ],
)
def test_what_cannot_be_asserted_is_refused_before_a_batch_begins(
    tmp_path: Path, rule: str, says: str
) -> None:
    file = written(tmp_path, f'{TWO}assert = ["{rule}"]\n')
    for words in ((), ("--dry-run",)):
        with pytest.raises(UsageError, match=says):
            command(str(file), *words)
    assert list(tmp_path.iterdir()) == [file]


def test_what_scenarios_of_a_batch_compare_in_vain_is_told(tmp_path: Path) -> None:
    file = written(tmp_path, f'{TWO}queue = ["pfifo", "pfifo"]\n')
    done = CliRunner().invoke(group, ["batch", str(file), "--dry-run"])
    assert "scenario 2: " in done.stderr
    assert "pfifo" in done.stderr


def test_the_name_of_a_scenario_is_in_its_folder_whatever_its_script(tmp_path: Path) -> None:
    words = f'test = "ping"\nlink = "cable-20-8"\n{PHASES}\n'
    names = ("日本", "Привет", "Ünïcode")
    text = "".join(f'[[scenario]]\nname = "{name}"\n{words}' for name in names)
    file = written(tmp_path, text)
    assert load_batch(file).scenarios() == ["01-日本", "02-привет", "03-ünïcode"]
    command(str(file), "--out", str(tmp_path / "out"))
    assert sorted(one.name for one in (tmp_path / "out").iterdir() if one.is_dir()) == [
        "01-日本",
        "02-привет",
        "03-ünïcode",
    ]


def test_scenarios_are_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    one = f'[[scenario]]\ntest = "ping"\nlink = "cable-20-8"\n{PHASES}\n'
    names = load_batch(written(tmp_path, one * 101)).scenarios()
    assert names == [f"{number:02d}-ping" for number in range(1, 102)]


def test_a_plan_is_told_where_its_world_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_KERNEL", str(tmp_path / "gone"))
    file = written(tmp_path, 'world = "kernel"\n' + TWO)
    assert "7 runs" in command(str(file), "--dry-run")
    with pytest.raises(UsageError, match="there is no file"):
        command(str(file))
    assert list(tmp_path.iterdir()) == [file]


def test_the_world_of_a_batch_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    check = SimWorld.check

    def counted(world: SimWorld, run: ResolvedRun) -> None:
        asked.append(run.queue)
        check(world, run)

    monkeypatch.setattr(SimWorld, "check", counted)
    command(str(written(tmp_path, TWO)), "--json")
    assert sorted(asked) == ["default", "htb rate 95% fq_codel", "pfifo_fast"]


def test_a_plan_is_told_without_doing_anything(tmp_path: Path) -> None:
    file = written(tmp_path, TWO)
    shown = command(str(file), "--dry-run")
    assert "b: 7 runs, shuffled" in shown
    assert "1 s simulated" in shown
    said = json.loads(command(str(file), "--dry-run", "--json"))
    assert [one["record"] for one in said["runs"]] == [str(step.folder) for step in load_batch(file).steps]
    assert list(tmp_path.iterdir()) == [file]


def test_the_commands_of_the_page_work_on_any_machine(tmp_path: Path) -> None:
    """A command that fails ends a batch: the example needs nothing that virtual machines have not."""
    page = (Path(__file__).parent.parent / "docs/batch.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "call.toml").write_text('test = "voip"\nlink = "cable-20-8"\n')
    place = tmp_path / "routers.toml"
    place.write_text(text)
    spec = load_batch(place).spec
    noted = re.findall(r"\(`([^`]*thermal[^`]*)`", page)
    assert len(spec.before + noted) == 2
    for command in spec.before + noted:
        subprocess.run(["sh", "-c", command], check=True, capture_output=True)


def test_a_batch_file_of_flent_is_told_as_one(tmp_path: Path) -> None:
    file = tmp_path / "batch.ini"
    file.write_text(
        "; all tests of the evening\n[Batch::rrul]\ntest_name = rrul\nhosts = server.example\nlength = 60\n"
    )
    with pytest.raises(
        UsageError, match=r"batch\.ini` is a batch file of Flent's, .* table `\[\[scenario\]\]` for"
    ):
        load_batch(file)
    file.write_text("; all tests of the evening\nrrul\n")
    with pytest.raises(UsageError, match=r"batch\.ini` cannot be read: it is not TOML"):
        load_batch(file)
