"""The studies: short runs of them, and the reference itself."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from test_topologies import PARKING_LOT
from weirlab.api import run_all
from weirlab.cli.study_command import command
from weirlab.errors import Interrupted, UsageError
from weirlab.scenario import resolve
from weirlab.scenario.catalogue import scenario_in
from weirlab.ui import RunProgress
from weirlab.worlds import world_named
from weirlab.worlds.sides import Side
from weirlab.worlds.sim import SimWorld
from weirstudies.agreement import study as agreement
from weirstudies.agreement.tables import matrix_markdown
from weirstudies.command import by_label
from weirstudies.gallery import study as gallery
from weirstudies.linux import study as linux
from weirstudies.shapers import cfosspeed, lines
from weirstudies.thesis import study as thesis

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirlab.worlds import Progress

    Weir = Callable[..., subprocess.CompletedProcess[str]]

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
ENTRIES = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]["weir.studies"]
"""The studies of the project, and where each has its command."""

REFERENCE = linux.reference()
HERE = [experiment for experiment in REFERENCE.experiment if not linux.missing(experiment)]
SECOND = 1_000_000_000


@pytest.mark.parametrize("experiment", REFERENCE.experiment, ids=lambda one: one.name)
def test_every_configuration_can_be_run_or_says_why_not(experiment: linux.Experiment) -> None:
    family = REFERENCE.families[experiment.family]
    assert experiment.name.startswith(f"{experiment.family}_")
    assert len({len(values) for values in experiment.linux.values()}) == 1
    assert ("up_mbps" in experiment.linux) == (family.uploads > 0)
    assert ("long_mbps" in experiment.linux) == (family.bottlenecks > 1)
    assert ("marks" in experiment.linux) == experiment.ecn
    why = linux.missing(experiment)
    if why is None:
        [run] = linux.runs_of(experiment, family, seeds=1)
        assert len(run.scenario["flows"]) == family.downloads + family.uploads
        path = run.scenario["path"]
        if family.bottlenecks == 1:
            assert path["down"][0]["queue"] == experiment.down
        else:
            assert [hop["queue"] for hop in path["up"]] == [experiment.up] * family.bottlenecks
    else:
        assert why.startswith(("queue not here yet: ", "congestion control not here yet: ", "cannot be"))


def test_the_disciplines_that_are_here_are_held_against_linux() -> None:
    assert len(HERE) >= 16


def test_figures_are_those_of_the_reference(tmp_path: Path) -> None:
    [experiment] = linux.chosen(["A_codel"], of=REFERENCE)
    family = REFERENCE.families[experiment.family]
    runs = linux.runs_of(experiment, family, seeds=2, duration_ns=8 * SECOND)
    records = run_all(runs, world_named("sim"), tmp_path / "o")
    result = linux.result(experiment, family, records)
    assert result.missing is None
    assert result.seeds == 2
    delays = {f"delay_{name}" for name in linux.ROUND_TRIPS}
    assert set(result.findings) == set(experiment.linux) - set(linux.ROUND_TRIPS) | delays
    assert result.findings["down_mbps"].met
    assert result.findings["delay_p50_ms"].met
    assert result.findings["delay_p99_ms"].met is None


def test_delay_is_judged_above_the_empty_paths_round_trip(tmp_path: Path) -> None:
    """Two milliseconds are 4 % of a ping of 49 ms, and 22 % of the delay in it."""
    [experiment] = linux.chosen(["A_codel"], of=REFERENCE)
    family = REFERENCE.families[experiment.family]
    records = run_all(linux.runs_of(experiment, family, seeds=1), world_named("sim"), tmp_path / "o")
    other = {**experiment.linux, "p50_ms": [value + 2.0 for value in experiment.linux["p50_ms"]]}
    delay = linux.result(experiment.model_copy(update={"linux": other}), family, records)
    assert delay.findings["delay_p50_ms"].reference == pytest.approx(experiment.linux["p50_ms"][0] - 38.0)
    assert delay.findings["delay_p50_ms"].met is False
    assert linux.result(experiment, family, records).findings["delay_p50_ms"].met


def test_a_configuration_with_an_absent_queue_is_reported_not_skipped() -> None:
    [experiment] = linux.chosen(["A_codel"], of=REFERENCE)
    absent = experiment.model_copy(update={"disciplines": ["htb", "moon"]})
    result = linux.result(absent, REFERENCE.families[absent.family], [])
    assert result.missing == "queue not here yet: moon"
    assert not result.met


LOTS = [one.name for one in REFERENCE.experiment if REFERENCE.families[one.family].parking_lot]


def test_the_parking_lot_of_the_reference_is_the_shipped_one() -> None:
    """Its routes and delays; the queues are other ones."""
    [experiment] = linux.chosen(LOTS[:1], of=REFERENCE)
    [run] = linux.runs_of(experiment, REFERENCE.families[experiment.family], seeds=1)
    spec = scenario_in(PARKING_LOT)
    assert spec is not None
    [shipped] = resolve(spec)
    for key in ("routes", "hosts"):
        assert run.scenario[key] == shipped.scenario[key]
    for key in ("name", "direction", "host"):
        assert [one[key] for one in run.scenario["flows"]] == [one[key] for one in shipped.scenario["flows"]]
        if key != "direction":
            probes = (one.scenario["probes"] for one in (run, shipped))
            assert len({tuple(one[key] for one in of) for of in probes}) == 1
    for way in ("up", "down"):
        hops = (one.scenario["path"][way] for one in (run, shipped))
        ours, theirs = ([(hop["name"], hop["delay_ns"]) for hop in of] for of in hops)
        assert ours == theirs


def test_parking_lots_are_as_on_linux(tmp_path: Path) -> None:
    """No goal of a load, a ping or of what is sent again is missed by more than the scatter of seeds."""
    experiments = linux.chosen(LOTS, of=REFERENCE)
    assert {one.congestion_control for one in experiments} == {"reno", "cubic"}
    runs = [run for one in experiments for run in linux.runs_of(one, REFERENCE.families["P"], seeds=5)]
    records = by_label(run_all(runs, world_named("sim"), tmp_path / "o"))
    for one in experiments:
        found = linux.result(one, REFERENCE.families["P"], records[one.name]).findings
        judged = {name: finding for name, finding in found.items() if finding.met is not None}
        assert len(judged) == 12
        assert [name for name, finding in judged.items() if not finding.met and not finding.is_scatter] == []


def test_a_ping_that_comes_back_too_late_is_lost(tmp_path: Path) -> None:
    [experiment] = linux.chosen(["A_pfifo1000"], of=REFERENCE)
    runs = linux.runs_of(experiment, REFERENCE.families[experiment.family], seeds=5)
    late = 0
    for record in run_all(runs, world_named("sim"), tmp_path / "o"):
        rtt = record.latency["rtt_ns"]
        answered_at = record.latency["t_ns"] + rtt
        too_late = int((answered_at > 20 * SECOND + linux.LINGER_NS).sum())
        assert linux.figures(record)["lost_pings"] == rtt.null_count() + too_late
        late += too_late
    # The queue stands at up to 600 ms.
    assert late > 0


def test_an_unknown_experiment_is_one_sentence() -> None:
    said = r"study `linux` has no experiment `A_moon` \(write .*; known: A_pfifo1000, "
    with pytest.raises(UsageError, match=said):
        linux.chosen(["A_moon"], of=REFERENCE)


def test_every_study_chooses_by_patterns() -> None:
    names = {one.name for one in linux.chosen(["A_westwood*", "A_codel"], of=REFERENCE)}
    assert names == {"A_codel", *(f"A_westwood_{queue}" for queue in ("pfifo1000", "pfifo100", "fq_codel"))}
    # One whole name is the beginning of another, and stands for itself alone.
    assert [one.name for one in linux.chosen(["A_pfifo100"], of=REFERENCE)] == ["A_pfifo100"]
    assert [one.name for one in cfosspeed.chosen(["up*"])] == ["up", "up-path"]
    of = thesis.study()
    assert {one.name[:6] for one in thesis.chosen(["A/100 *"], of=of)} == {"A/100 "}
    assert len(agreement.chosen(["20/8 20ms *"])) == 18
    assert {one.name for one in lines.chosen(["steps *"])} == {"steps down", "steps up"}
    refused: list[Callable[[], object]] = [
        lambda: linux.chosen(["A_"], of=REFERENCE),
        lambda: thesis.chosen(["A/100"], of=of),
        lambda: cfosspeed.chosen(["u"]),
        lambda: agreement.chosen(["20/8"]),
        lambda: lines.chosen(["steps"]),
    ]
    for one in refused:
        with pytest.raises(UsageError, match=re.escape("(write a whole name, or `*` for any part of it; ")):
            one()


def test_the_command_prints_json_markdown_or_a_table(weir_here: Weir) -> None:
    words = ("study", "linux", "--only", "A_codel", "--repeat", "1")
    [result] = json.loads(weir_here(*words, "--json").stdout)
    assert result["name"] == "A_codel"
    assert result["findings"]["delay_p50_ms"]["reference"] == pytest.approx(6.9, abs=0.5)
    assert weir_here(*words, "--markdown").stdout.startswith("| experiment | down Mbit/s |")
    shown = weir_here(*words)
    assert shown.returncode == 0, shown.stderr
    assert "A_codel" in shown.stdout
    assert "goals met" in shown.stdout


def test_a_parking_lot_has_a_table_of_its_own(weir_here: Weir) -> None:
    words = ("study", "linux", "--only", LOTS[0], "--only", "A_codel", "--repeat", "1", "--markdown")
    tables = weir_here(*words).stdout.split("\n\n")
    assert len(tables) == 2
    for table, name, has_loads in zip(tables, ("A_codel", LOTS[0]), (False, True), strict=True):
        assert f"\n| {name} |" in table
        assert ("long Mbit/s" in table) == has_loads


def test_without_a_name_the_studies_are_listed(weir_here: Weir) -> None:
    done = weir_here("study")
    assert done.returncode == 0, done.stderr
    assert "linux" in done.stdout
    names = [one["name"] for one in json.loads(weir_here("study", "--list", "--json").stdout)]
    assert names == sorted(ENTRIES)
    assert {"linux", "thesis", "agreement", "all", *gallery.NAMES} <= set(names)


def test_an_unknown_study_is_one_sentence(weir_here: Weir) -> None:
    done = weir_here("study", "moon")
    assert done.returncode == 2
    assert done.stderr.strip() == f"weir: unknown study `moon` (known: {', '.join(sorted(ENTRIES))})"


def test_what_is_installed_is_what_the_project_says() -> None:
    installed = {one.name: one.value for one in metadata.entry_points(group="weir.studies")}
    assert installed == ENTRIES, "install it anew: make setup"


def test_every_study_has_its_own_options() -> None:
    context = click.Context(command)
    studies = {name: command.get_command(context, name) for name in command.list_commands(context)}
    options = {
        name: {one.opts[-1] for one in study.params if isinstance(one, click.Option) and not one.hidden}
        for name, study in studies.items()
        if study is not None
    }
    usual = {"--repeat", "--out", "--jobs", "--json", "--markdown"}
    own = {
        "linux": {"--only"},
        "thesis": {"--only", "--lab", "--lab-repeat"},
        "agreement": {"--only", "--lab-repeat"},
        "autorate": {"--only"},
        "cfosspeed": {"--only", "--world", "--idle", "--load"},
        "speedtest-aqm": {"--only", "--world", "--full"},
    }
    on_clusters = {name: set() if name == "agreement" else {"--scheduler", "--cluster"} for name in ENTRIES}
    assert options == {name: usual | on_clusters[name] | own.get(name, {"--world"}) for name in ENTRIES}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("linux", "--lab"), "there is no option `--lab`"),
        (("all", "--only", "fios"), "there is no option `--only`"),
        (("thesis", "--lab-repeat", "2"), "--lab-repeat 2: it goes with --lab"),
        (("--json", "linux"), "--json: write it after `linux`"),
        (("--list", "linux"), "--list: leave `linux` out"),
        (("fios", "--json", "--markdown"), "only one of them can be printed"),
    ],
)
def test_a_study_refuses_what_is_not_its_own(weir_here: Weir, words: tuple[str, ...], said: str) -> None:
    done = weir_here("study", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_study_that_cannot_be_loaded_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [
        metadata.EntryPoint("gone", "no.such.module:command", "weir.studies"),
        metadata.EntryPoint("odd", "weirstudies.linux.study:reference", "weir.studies"),
    ]
    monkeypatch.setattr(metadata, "entry_points", lambda **_: broken)
    context = click.Context(command)
    with pytest.raises(UsageError, match="study `gone` cannot be loaded from `no"):
        command.get_command(context, "gone")
    with pytest.raises(UsageError, match="is no command of click"):
        command.get_command(context, "odd")


def test_the_matrix_has_a_cell_of_each_kind() -> None:
    everything = agreement.cells()
    assert len(everything) == len({cell.folder for cell in everything}) == 72
    some = agreement.chosen(["20/8 20ms * cubic *", "100/40 80ms codel reno rrul_be"])
    assert len(some) == 10
    [run] = agreement.runs_of(some[-1], repeat=1)
    [hop] = run.scenario["path"]["up"]
    assert (hop["queue"], hop["rate"], hop["delay_ns"]) == ("codel", {"bps": 40_000_000}, 40_000_000)
    assert {flow["tcp"]["congestion_control"] for flow in run.scenario["flows"]} == {"reno"}
    with pytest.raises(UsageError, match="study `agreement` has no cell `moon`"):
        agreement.chosen(["moon"])


class _Counting(SimWorld):
    """The simulator, which counts its runs, and leaves the one of number `cut` unfinished."""

    def __init__(self, cut: int | None = None) -> None:
        self.runs, self.cut = 0, cut

    def run(self, run: ResolvedRun, folder: Path, progress: Progress | None) -> bool:
        self.runs += 1
        complete = super().run(run, folder, progress)
        if self.runs != self.cut:
            return complete
        manifest = folder / "manifest.json"
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"complete": False}))
        return False


def test_a_study_that_was_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    wanted = agreement.chosen(["20/8 20ms codel cubic *"])

    def go(world: _Counting, load_ns: int = SECOND) -> dict[str, list[Record]]:
        side = Side(name="sim", summary="", world=lambda: world, seeds=None)
        return agreement.measure(
            wanted,
            side,
            tmp_path / "o",
            repeat=2,
            jobs=1,
            watching=lambda runs: RunProgress(runs, quiet=True),
            load_ns=load_ns,
        )

    with pytest.raises(Interrupted, match="the same command goes on"):
        go(_Counting(cut=4))
    world = _Counting()
    records = go(world)
    # Only the one that was cut short is made again.
    assert world.runs == 1
    assert [len(of_cell) for of_cell in records.values()] == [2, 2, 2]
    assert all(record.manifest.complete for of_cell in records.values() for record in of_cell)
    side = Side(name="sim", summary="", world=lambda: world, seeds=None)
    same = agreement.agreements(wanted, (side, records), (side, records))
    assert all(one.met for one in same)
    text = matrix_markdown(same)
    assert text.splitlines()[0].startswith("| configuration | down Mbit/s | up Mbit/s |")
    assert len(text.splitlines()) == 5
    with pytest.raises(UsageError, match="holds the record of another scenario"):
        go(_Counting(), load_ns=2 * SECOND)
