"""Tests, links and recordings that a file names are looked for beside it, then in the working folder."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

import weirlab
from weirlab.batches import load_batch
from weirlab.errors import RecordError, UsageError
from weirlab.record.configurations import same_runs
from weirlab.scenario import load_link, load_scenario, load_test, resolve
from weirlab.scenario.plain import shipped_traces
from weirlab.scenario.recordings import digest_of
from weirlab.sweeps.bundle import write_bundle
from weirlab.sweeps.bundle_check import check_bundle
from weirlab.sweeps.plan import load_plan
from weirlab.sweeps.runs import sweep_of
from weirlab.sweeps.store import Store
from weirlab.sweeps.sweeping import carry_out, kept_of
from weirlab.webapp.scenarios import Scenarios


def write_link(file: Path, title: str, trace: str = "line.trace") -> None:
    hop = f'name = "modem"\ntrace = "{trace}"\n'
    file.write_text(f'name = "l"\ntitle = "{title}"\n[[up]]\n{hop}[[down]]\n{hop}')


def write_plan(folder: Path) -> Path:
    """A plan with two recordings that lie beside it."""
    plan = folder / "mine" / "plan.toml"
    plan.write_text(
        'test = "own.toml"\nlink = "line.toml"\n'
        '[sweep.axes]\ntrace = { key = "link.up.0.trace", values = ["line.trace", "other.trace"] }\n'
    )
    (folder / "mine" / "other.trace").write_text("4\n")
    return plan


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `mine` with a scenario and what it names, in the working folder."""
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "own.toml").write_text('name = "own"\ntitle = "Own"\nphases = { load = "1s" }\n')
    (mine / "one.toml").write_text('test = "own.toml"\nlink = ["line.toml"]\n[[beside]]\ntest = "own.toml"\n')
    write_link(mine / "line.toml", "Beside")
    (mine / "line.trace").write_text("1\n2\n")
    return tmp_path


def test_what_a_scenario_and_its_link_name_lies_beside_them(folder: Path) -> None:
    for file in (Path("mine/one.toml"), folder / "mine" / "one.toml"):
        (run,) = resolve(load_scenario(file))
        assert (run.test.name, run.link.title) == ("own 1 + own 2", "Beside")
        # Under its path, by which whoever reads the record finds it again.
        trace = str(file.parent / "line.trace")
        assert run.traces == {trace: "1\n2\n"}
        assert run.link.up[0].trace == trace
    (record,) = weirlab.run(Path("mine/one.toml"))
    assert record.recording(record.manifest.scenario["path"]["up"][0]["rate"]["trace"]) == "1\n2\n"


def test_what_lies_in_the_working_folder_alone_is_taken_from_there(folder: Path) -> None:
    (folder / "mine" / "line.trace").rename("line.trace")
    (run,) = resolve(load_scenario(Path("mine/one.toml")))
    assert run.traces == {"line.trace": "1\n2\n"}
    (folder / "mine" / "line.toml").rename("line.toml")
    (run,) = resolve(load_scenario(Path("mine/one.toml")))
    assert (run.link.title, list(run.traces)) == ("Beside", ["line.trace"])


def test_of_two_files_of_one_name_that_beside_what_names_it_is_taken(folder: Path) -> None:
    write_link(folder / "line.toml", "Here")
    (folder / "line.trace").write_text("1\n3\n")
    (run,) = resolve(load_scenario(Path("mine/one.toml")))
    assert (run.link.title, run.traces) == ("Beside", {"mine/line.trace": "1\n2\n"})
    # What the call itself names is no file's.
    (run,) = resolve({"test": "ping", "link": "line.toml"})
    assert (run.link.title, run.traces) == ("Here", {"line.trace": "1\n3\n"})


def test_a_file_in_the_working_folder_is_called_as_it_was_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the scenario was named."""
    monkeypatch.chdir(folder / "mine")
    for file in (Path("one.toml"), folder / "mine" / "one.toml", Path("../mine/one.toml")):
        (run,) = resolve(load_scenario(file))
        assert list(run.traces) == ["line.trace"]


def test_shipped_names_are_no_files(folder: Path) -> None:
    (folder / "mine" / "two.toml").write_text('test = "ping"\nlink = "lte-verizon"\n')
    (folder / "mine" / "ping").write_text("")
    shipped = load_link("lte-verizon").up[0].trace
    assert shipped is not None
    (folder / "mine" / shipped).write_text("1\n")
    (run,) = resolve(load_scenario(Path("mine/two.toml")))
    assert run.link.up[0].trace == shipped
    write_link(folder / "mine" / "line.toml", "Shipped", shipped)
    assert load_link("mine/line.toml").up[0].trace == shipped
    assert load_test("mine/own.toml").name == "own"


def test_a_link_of_the_command_line_takes_the_place_of_one_that_lies_nowhere(folder: Path) -> None:
    (folder / "mine" / "line.toml").unlink()
    with pytest.raises(UsageError, match=r"line 2: link\.0: `line\.toml` lies neither in `mine`"):
        weirlab.run(Path("mine/one.toml"))
    (record,) = weirlab.run(Path("mine/one.toml"), link="line-50")
    assert record.manifest.link["name"] == "line-50"


def test_a_batch_names_files_beside_it(folder: Path) -> None:
    batch = folder / "mine" / "batch.toml"
    batch.write_text(
        '[[scenario]]\nfile = "one.toml"\n[[scenario]]\ntest = "own.toml"\nlink = "line.toml"\nname = "two"\n'
    )
    for step in load_batch(batch.relative_to(folder)).steps:
        assert list(step.run.traces) == ["mine/line.trace"]
    batch.write_text('[[scenario]]\nfile = "one.toml"\n[[scenario]]\ntest = "gone.toml"\nlink = "line-50"\n')
    said = r"batch\.toml`, scenario 2: test: `gone\.toml` lies neither in `.*/mine`, beside what names"
    with pytest.raises(UsageError, match=said):
        load_batch(batch)


def test_a_sweep_names_files_beside_it_in_its_axes_too(folder: Path) -> None:
    plan = write_plan(folder)
    found = sweep_of(load_plan(Path("mine/plan.toml")))
    runs = [run.configuration for run in found.runs]
    # What the axis says stays a column as it was written.
    assert {one.columns["trace"]: list(one.traces) for one in runs} == {
        "line.trace": ["mine/line.trace"],
        "other.trace": ["mine/other.trace", "mine/line.trace"],
    }
    plan.write_text('test = "ping"\nlink = "line-50"\n[sweep.axes]\nlink = ["line.toml", "gone.toml"]\n')
    with pytest.raises(
        UsageError, match=r"line 4: .*`gone\.toml` lies neither in `mine`, beside what names it"
    ):
        sweep_of(load_plan(Path("mine/plan.toml")))


def keys(file: Path) -> list[str]:
    return [run.key for run in sweep_of(load_plan(file)).runs]


def test_runs_of_a_plan_are_the_same_wherever_it_is_read_from(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plan(folder)
    there = keys(Path("mine/plan.toml"))
    assert len(set(there)) == 2
    assert keys(folder / "mine" / "plan.toml") == there
    monkeypatch.chdir(folder / "mine")
    assert keys(Path("plan.toml")) == there
    # What the recording says is part of a run, and so is which way has which of two of one name.
    Path("other.trace").write_text("5\n")
    assert keys(Path("plan.toml"))[0] == there[0]
    assert keys(Path("plan.toml"))[1] != there[1]
    found = set()
    for up, down in (("1\n", "2\n"), ("2\n", "1\n")):
        for name, text in (("up", up), ("down", down)):
            Path(name).mkdir(exist_ok=True)
            Path(name, "line.trace").write_text(text)
        link = Path("line.toml").read_text().replace('"line.trace"', '"up/line.trace"', 1)
        Path("two.toml").write_text(link.replace('"line.trace"', '"down/line.trace"'))
        Path("plan.toml").write_text(
            'test = "own.toml"\nlink = "line-50"\n[sweep.axes]\nlink = ["two.toml"]\n'
        )
        here = keys(Path("plan.toml"))
        assert keys(folder / "mine" / "plan.toml") == here
        found |= set(here)
    assert len(found) == 2


def test_a_bundle_has_what_a_plan_names_beside_it_and_no_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, store = write_plan(folder), Store.made(folder / "store")
    assert carry_out(sweep_of(load_plan(Path("mine/plan.toml"))), store, jobs=1).done == 2
    write_bundle(store, folder / "first.bundle")
    # Wherever it is asked for, and whoever else kept that plan, it is the same file.
    monkeypatch.chdir(folder / "mine")
    assert carry_out(sweep_of(load_plan(Path("plan.toml"))), store, jobs=1).done == 0
    (kept,) = store.kept_plans()
    assert (kept["file"], kept["plan"]["link"]) == (str(plan), "line.toml")
    store.keep_plan(kept | {"file": "/elsewhere/plan.toml"})
    monkeypatch.chdir("/")
    assert write_bundle(store, folder / "second.bundle")["plans"] == 1
    assert (folder / "first.bundle").read_bytes() == (folder / "second.bundle").read_bytes()
    assert str(folder) not in gzip.decompress((folder / "first.bundle").read_bytes()).decode()
    plan.parent.rename(folder / "moved")
    found = check_bundle(folder / "first.bundle", sample=2, jobs=1).repeated
    assert [one.identical for one in found] == [True, True]
    with pytest.raises(UsageError, match=r"plan 1 of 1 of `.*` cannot be read here any more: .*line\.toml"):
        write_bundle(store, folder / "third.bundle")


def test_a_store_does_not_keep_where_a_plan_lies_that_names_no_files(folder: Path) -> None:
    (folder / "plan.toml").write_text(
        'test = "ping"\nlink = "lte-verizon"\n[sweep.axes]\n"link.up.0.trace" = ["Verizon-LTE-short.up"]\n'
    )
    assert "file" not in kept_of(load_plan(folder / "plan.toml"))


def test_the_web_application_opens_what_lies_below_its_folder_alone(folder: Path) -> None:
    scenarios = Scenarios(folder / "mine")
    text = (folder / "mine" / "one.toml").read_text()
    command, runs = scenarios.command({"file": "one.toml", "text": text, "world": "sim"}, None)
    assert (command.split()[2], runs) == (str(folder / "mine" / "one.toml"), 1)
    write_link(folder / "mine" / "line.toml", "Elsewhere", "../secret.trace")
    (folder / "secret.trace").write_text("1\n")
    with pytest.raises(UsageError, match=r"`\.\./secret\.trace` is no file below .*/mine"):
        scenarios.command({"file": "one.toml", "text": text, "world": "sim"}, None)


def test_what_the_web_application_opens_is_what_a_run_opens(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link that leads out of the folder is no file of it, whatever lies in the working folder."""
    deep = folder / "mine" / "deep"
    deep.mkdir()
    (folder / "secret.trace").write_text("1\n")
    (deep / "line.trace").symlink_to(folder / "secret.trace")
    write_link(deep / "line.toml", "Deep")
    monkeypatch.chdir(folder / "mine")
    scenarios = Scenarios(folder / "mine")
    (deep / "one.toml").write_text(text := 'test = "own.toml"\nlink = "line.toml"\n')
    form = {"file": "deep/one.toml", "text": text, "world": "sim"}
    with pytest.raises(UsageError, match=r"`line\.trace` is no file below .*/mine"):
        scenarios.command(form, None)
    (deep / "line.trace").unlink()
    assert scenarios.command(form, None)[1] == 1


@pytest.mark.parametrize("name", ["/etc/passwd", "/etc", "/dev/zero", "/nowhere"])
def test_the_web_application_does_not_tell_what_lies_elsewhere(folder: Path, name: str) -> None:
    write_link(folder / "mine" / "line.toml", "Elsewhere", name)
    form = {"file": "one.toml", "text": (folder / "mine" / "one.toml").read_text(), "world": "sim"}
    with pytest.raises(UsageError, match=rf"`{name}`.* is no file below {folder}/mine"):
        Scenarios(folder / "mine").command(form, None)


def test_a_kept_plan_whose_file_is_no_path_is_damaged(folder: Path) -> None:
    store = Store.made(folder / "store")
    store.keep_plan(kept_of(load_plan(write_plan(folder))) | {"file": ["plan.toml"]})
    with pytest.raises(RecordError, match=r"plans/\w+\.json` is damaged: it is no plan of a sweep"):
        store.kept_plans()


def test_one_scenario_run_from_two_folders_is_one_configuration(folder: Path) -> None:
    (folder / "mine").rename("first")
    shutil.copytree("first", "second")
    seeds = {"first": 1, "second": 2}
    records = [weirlab.run(Path(f"{name}/one.toml"), seed=seed)[0] for name, seed in seeds.items()]
    (one,) = weirlab.compare(records)
    assert len(one.runs) == 2
    # With one seed both are one run of the simulator.
    again = weirlab.run(Path("second/one.toml"), seed=1)
    assert [same for same, _ in same_runs([records[0], *again])] == again
    assert records[0].manifest.recordings == {"first/line.trace": digest_of("1\n2\n")}


def test_recordings_of_one_name_and_other_contents_are_told_apart(folder: Path) -> None:
    (folder / "mine").rename("first")
    shutil.copytree("first", "second")
    (folder / "second" / "line.trace").write_text("1\n3\n")
    records = [weirlab.run(Path(f"{name}/one.toml"))[0] for name in ("first", "second")]
    digits = [digest_of(text)[:8] for text in ("1\n2\n", "1\n3\n")]
    assert [one.name for one in weirlab.compare(records)] == [
        f"down modem trace line.trace ({of}) · up modem trace line.trace ({of})" for of in digits
    ]
    (folder / "second" / "line.trace").rename("second/other.trace")
    write_link(folder / "second" / "line.toml", "Beside", "other.trace")
    records[1:] = weirlab.run(Path("second/one.toml"))
    assert [one.name for one in weirlab.compare(records)] == [
        f"down modem trace {name} · up modem trace {name}" for name in ("line.trace", "other.trace")
    ]


def test_a_recording_that_was_changed_since_is_none_of_the_run(folder: Path) -> None:
    (record,) = weirlab.run(Path("mine/one.toml"), out=folder / "run")
    assert record.recording("mine/line.trace") == "1\n2\n"
    (folder / "mine" / "line.trace").write_text("1\n3\n")
    with pytest.raises(UsageError, match=r"^trace `mine/line\.trace` was changed since the run had it$"):
        record.recording("mine/line.trace")


def test_a_recording_that_is_shipped_has_its_name_alone(folder: Path) -> None:
    assert weirlab.run("ping", link="lte-verizon", phases={"idle": "1s"})[0].manifest.recordings == {}
    del folder


def test_shipped_recordings_are_listed_once_and_by_nobody_else() -> None:
    assert shipped_traces() is shipped_traces()
    with pytest.raises(TypeError):
        shipped_traces()["mine"] = Path("mine")  # type: ignore[index]
