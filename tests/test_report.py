"""`weir report`: the page is whole, safe, and says what terminal and notebook say."""

from __future__ import annotations

import base64
import errno
import hashlib
import html
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import weirlab
from weirlab.cli.lab_lines import resolved
from weirlab.cli.pages_in_browser import write_page
from weirlab.errors import RecordError
from weirlab.record import new_manifest, open_record
from weirlab.report import flow_table
from weirlab.report.differences import doubts
from weirlab.report.figures import figures_of
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.stats import beside, summarise
from weirlab.ui.table import Table
from weirlab.viewer import as_command, grade_of, report_page
from weirlab.viewer.data import record_data, service
from weirlab.viewer.page import _table
from weirlab.viewer.path import path_svg
from weirlab.viewer.repeat import repeat_of

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun

    Weir = Callable[..., subprocess.CompletedProcess[str]]

MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


def scripts(page: str) -> dict[str, str]:
    """The content of each script element with an id."""
    return dict(re.findall(r'<script type="[\w/]+" id="([\w-]+)">(.*?)</script>', page, re.DOTALL))


def altered(record: Record, folder: Path, **changes: Any) -> Record:
    """A copy of `record` whose manifest says something else."""
    write_altered(record, folder, **changes)
    return open_record(folder)


def write_altered(record: Record, folder: Path, **changes: Any) -> None:
    shutil.copytree(record.path, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | changes))


def same_samples(one: Record, other: Record) -> None:
    """How rows are spread over part files depends on the clock; the rows do not."""
    for table in ("latency", "throughput", "tcp", "queue", "flows"):
        assert getattr(one, table).equals(getattr(other, table)), table


def test_the_page_loads_nothing_and_lets_nothing_in(rrul: list[Record]) -> None:
    page = report_page(rrul)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(one.strip().split(" ", 1) for one in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["form-action"] == rules["base-uri"] == "'none'"
    assert "connect-src" not in rules
    for name, tag in (("script-src", "script"), ("style-src", "style")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    assert not re.search(r"""(src|href|action)=["']?(https?:)?//""", page)


def test_what_others_wrote_has_its_licence_in_the_page(rrul: list[Record]) -> None:
    page = report_page([rrul[0]])
    for name in ("uplot:", "hyparquet:", "fzstd:"):
        assert name in page.partition("<script>")[2]
    assert page.count("Permission is hereby granted") == 6


def test_the_record_itself_is_in_the_page(rrul: list[Record], tmp_path: Path) -> None:
    kept = scripts(report_page(rrul))
    for number, record in enumerate(rrul):
        file = tmp_path / f"{number}.weir"
        file.write_bytes(base64.b64decode(kept[f"weir-record-{number}"]))
        inside = open_record(file)
        inside.check()
        assert inside.manifest == record.manifest
        assert inside.latency.equals(record.latency)


def test_the_figures_are_those_of_terminal_and_notebook(rrul: list[Record]) -> None:
    page = report_page([rrul[0]])
    summary = summarise(rrul[0])
    told = json.loads(scripts(page)["weir-data"])["records"][0]["summary"]
    assert told["latency"] == json.loads(json.dumps(summary.as_dict()["latency"]))
    assert told["down"] == summary.as_dict()["down"]
    for cell in flow_table(summary).columns[1].cells:
        assert html.escape(str(cell)) in page
    assert summary.latency.increase_mean_ms is not None
    assert f"Increase under load: mean {summary.latency.increase_mean_ms:.1f} ms" in page


@pytest.mark.parametrize(
    ("test", "titles"),
    [
        ("voip-rrul", ["UDP flows during the load"]),
        ("dash", ["Videos during the load"]),
        ("http-rrul", ["Pages and names during the load"]),
        ("rrul_spec", ["Scores of the RRUL specification"]),
    ],
)
def test_a_page_has_every_table_that_the_terminal_has(
    test: str, titles: list[str], weir_here: Weir, tmp_path: Path
) -> None:
    phases = {"idle": "1s", "load": "6s"}
    [record] = weirlab.run(test, link="cable-20-8", queue="pfifo_fast", phases=phases, out=tmp_path / "o")
    page, shown = report_page([record]), weir_here("show", str(record.path)).stdout
    for title in titles:
        assert title in shown
        assert f"<caption>{title}" in page
    for table in figures_of(record):
        for column in table.columns if isinstance(table, Table) else []:
            for cell in column.cells:
                assert html.escape(str(cell)).replace("\n", "<br>") in page


def test_words_of_a_table_are_told_from_its_numbers() -> None:
    """Numbers stand beneath each other at the right; words wrap, and are not cut off by the page's edge."""
    table = Table(title="T")
    table.add_column("score")
    table.add_column("figure", justify="right")
    table.add_column("says")
    table.add_row("calls", "67", "held back by latency")
    shown = _table(table)
    assert '<th scope="col">figure</th><th scope="col" class="words">says</th>' in shown
    assert '<th scope="row">calls</th><td>67</td><td class="words">held back by latency</td>' in shown
    style = (Path(weirlab.__file__).parent / "viewer/dist/viewer.css").read_text()
    assert re.search(r"\.words\{[^}]*white-space:normal", style)


def test_the_grade_is_that_of_the_increase(rrul: list[Record]) -> None:
    bloated, cured = (grade_of(one) for one in rrul)
    assert bloated is not None
    assert cured is not None
    assert (bloated.letter, cured.letter) == ("D", "A")
    increase = summarise(rrul[0]).latency.increase_mean_ms
    assert increase is not None
    assert f"{increase:.0f} ms longer" in bloated.says
    page = report_page(rrul)
    assert "Grade D." in page
    assert "Grade A." in page


def test_the_command_gives_the_very_same_samples(weir_here: Weir, rrul: list[Record], tmp_path: Path) -> None:
    text = repeat_of(rrul[1]).text
    assert text is not None
    assert as_command(text) in report_page([rrul[1]])
    done = weir_here(*shlex.split(text)[1:], "--out", "again", "--no-charts")
    assert done.returncode == 0, done.stderr
    (again,) = (tmp_path / "again").iterdir()
    same_samples(open_record(again), rrul[1])


SHORT: dict[str, Any] = {"phases": {"idle": "500ms", "load": "500ms", "cooldown": "0s"}}
PLACE = weirlab.scenario.load_link("cable-20-8").model_dump(mode="json") | {"mtu": 1400}


@pytest.mark.parametrize(
    "words",
    [
        {"queue_up": "codel"},
        {"queue": "fq_codel", "queue_down": "pfifo limit 77"},
        {"shaper": "auto"},
        {"shaper": "fixed up 95% down 95%", "queue": "fq_codel"},
        {"tcp": {"ecn": True, "sack": False}, "queue": "codel", "cc": "reno"},
        {"test": "tcp_nup", "parameters": {"streams": 3}, "sampling": {"ping": "20ms"}, "ip": 6},
    ],
    ids=str,
)
def test_words_of_a_command_are_told_and_give_the_same_samples(
    words: dict[str, Any], weir_here: Weir, tmp_path: Path
) -> None:
    (record,) = weirlab.run(**({"test": "rrul"} | SHORT | words), out=tmp_path / "first")
    text = repeat_of(record).text
    assert text is not None
    assert text.startswith("weir run ")
    done = weir_here(*shlex.split(text)[1:], "--out", "again", "--no-charts")
    assert done.returncode == 0, done.stderr
    (again,) = (tmp_path / "again").iterdir()
    same_samples(open_record(again), record)


@pytest.mark.parametrize(
    "words",
    [
        {"link": PLACE, "queue": "fq_codel"},
        {"link": PLACE, "shaper": "auto", "queue": "fq_codel"},
        {"link": PLACE, "queue_up": "codel", "tcp": {"ecn": True}},
        {"shaper": {"control": "fixed", "up": {"rate": "5mbit"}, "down": {"rate": "15mbit"}}},
        {"tcp": {"ecn": True, "delayed_ack": False}, "start_jitter": "0s"},
        {"sampling": {"throughput": "50ms"}},
        {"beside": [{"test": "tcp_upload", "start": "100ms"}]},
        {"methods": [{"name": "ndt", "kind": "ndt7"}]},
    ],
    ids="-".join,
)
def test_a_configuration_without_names_is_repeated_by_python(words: dict[str, Any], tmp_path: Path) -> None:
    (record,) = weirlab.run(**({"test": "rrul"} | SHORT | words), out=tmp_path / "first")
    text = repeat_of(record).text
    assert text is not None
    assert "weir run" not in text
    program = text.replace(repr(record.path.name), repr(str(record.path)))
    assert program.splitlines()[-1].startswith("weirlab.run(")
    known: dict[str, Any] = {}
    exec(program.replace("weirlab.run(", "again = weirlab.run("), known)  # noqa: S102 - the page says so
    same_samples(known["again"][0], record)


def test_a_recording_of_ones_own_is_said_to_decide(tmp_path: Path) -> None:
    (tmp_path / "t.up").write_text("".join(f"{ms}\n" for ms in range(1, 1_000)))
    hop = {"name": "line", "trace": str(tmp_path / "t.up"), "queue": "pfifo limit 100"}
    link = {"name": "own", "title": "Own", "up": [hop], "down": [hop]}
    (record,) = weirlab.run("ping", link=link, **SHORT, out=tmp_path / "first")
    says = repeat_of(record).says
    assert says.endswith(
        f"the same samples, if what is in `{tmp_path / 't.up'}` here is what was there then."
    )


def kept(run: ResolvedRun) -> ResolvedRun:
    """The run of what a record keeps of `run`."""
    words = {"test": run.test_part.words, "link": run.link_part.words, "seed": run.seed, **(run.words or {})}
    return resolve(ScenarioSpec.model_validate(json.loads(json.dumps(words))))[0]


@pytest.mark.parametrize("test", weirlab.scenario.shipped_tests())
def test_what_a_record_keeps_of_any_test_is_that_test(test: str) -> None:
    """With every key, also those that were left to their defaults."""
    (run,) = resolve(ScenarioSpec(test=test, link="cable-20-8"))
    assert kept(run).scenario == run.scenario


def test_what_a_record_keeps_of_what_goes_through_a_tunnel_is_that_test() -> None:
    tunnel = {"name": "VPN", "kind": "wireguard", "host": "vpn"}
    flow = {"name": "Upload", "direction": "up", "tunnel": "VPN"}
    probes = [{"name": "Inside", "kind": "icmp", "tunnel": "VPN"}, {"name": "Outside", "kind": "icmp"}]
    hosts = [{"name": "server"}, {"name": "vpn"}]
    test = {"name": "t", "title": "T", "phases": {"load": "5s"}, "hosts": hosts}
    test |= {"tunnels": [tunnel], "flows": [flow], "probes": probes}
    (run,) = resolve(ScenarioSpec.model_validate({"test": test, "link": "cable-20-8"}))
    assert [flow["host"] for flow in run.scenario["flows"]] == [1]
    assert kept(run).scenario == run.scenario


def test_a_record_of_an_earlier_version_is_repeated_as_far_as_it_says(
    weir_here: Weir, tmp_path: Path
) -> None:
    (record,) = weirlab.run("rrul", **SHORT, queue="fq_codel", cc="reno", out=tmp_path / "first")
    old = altered(record, tmp_path / "old", words=None)
    text = repeat_of(old).text
    assert text is not None
    assert "--cc reno" in text
    done = weir_here(*shlex.split(text)[1:], "--out", "again", "--no-charts")
    assert done.returncode == 0, done.stderr
    (again,) = (tmp_path / "again").iterdir()
    same_samples(open_record(again), record)


def test_a_record_that_does_not_say_enough_is_not_said_to_be_repeated(tmp_path: Path) -> None:
    (record,) = weirlab.run("rrul", **SHORT, shaper="auto", queue="fq_codel", out=tmp_path / "first")
    assert record.manifest.words == {**SHORT, "shaper": "auto", "queue": "fq_codel"}
    # As earlier versions wrote it.
    old = altered(record, tmp_path / "old", words=None)
    assert repeat_of(old).text is None
    assert "cannot be repeated" in report_page([old])


OF_A_PROGRAM = {
    "link": None,
    "paths": (),
    "queues": (),
    "queues_up": (),
    "queues_down": (),
    "seed": 7,
    "ip": "4",
}


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ({"link": "vdsl-100-40"}, "--link vdsl-100-40"),
        (
            {"queues": ("fq_codel",), "queues_up": ("codel",), "ip": "6"},
            "--link cable-20-8 --queue fq_codel --queue-up codel --ip 6",
        ),
        (
            {"paths": ("a=cable-20-8", "b=vdsl-100-40"), "ip": "6"},
            "--path a=cable-20-8 --path b=vdsl-100-40 --ip 6",
        ),
    ],
    ids=str,
)
def test_the_command_of_a_program_on_a_line_is_told_without_the_program(
    words: dict[str, Any], command: str, rrul: list[Record], tmp_path: Path
) -> None:
    record = of_a_program(rrul[0], resolved(OF_A_PROGRAM | words), tmp_path / "run")
    how = repeat_of(record)
    assert how.text == f"weir lab exec {command} --seed 7 -- PROGRAM"
    assert "PROGRAM stands for what ran there" in how.says
    assert "changed" not in how.says
    assert "queues" not in how.says
    page = report_page([record])
    assert as_command(how.text) in page
    assert "weirlab.run(" not in page


def test_a_line_that_was_changed_meanwhile_is_told(rrul: list[Record], tmp_path: Path) -> None:
    for number, paths in enumerate(((), ("a=cable-20-8", "b=lte-verizon"))):
        run = resolved(OF_A_PROGRAM | {"paths": paths, "queues": ("a=codel",) if paths else ()})
        for hop in run.scenario["path"]["down"]:
            hop["changes"] = [{"at_ns": 5, "to": {"rate_bps": 5_000_000}}]
        how = repeat_of(of_a_program(rrul[0], run, tmp_path / f"{number}"))
        assert how.text is not None
        assert how.text.startswith("weir lab exec ")
        assert "The line was changed meanwhile (weir lab set)" in how.says
        assert ("queues of its paths were: a: codel; b: the link's own queue." in how.says) == bool(paths)
        assert "LINK" not in how.says


def test_changes_that_a_link_tells_are_none_meanwhile(rrul: list[Record], tmp_path: Path) -> None:
    place = tmp_path / "own.toml"
    rows = "".join(
        f'[[{way}]]\nname = "line"\nrate = "5mbit"\n[[{way}.changes]]\nat = "1s"\nrate = "2mbit"\n'
        for way in ("up", "down")
    )
    place.write_text(f'name = "own"\ntitle = "Own"\n{rows}')
    run = resolved(OF_A_PROGRAM | {"link": str(place)})
    how = repeat_of(of_a_program(rrul[0], run, tmp_path / "run"))
    assert how.text == "weir lab exec --link LINK --seed 7 -- PROGRAM"
    assert "LINK stands for a link" in how.says
    assert "changed" not in how.says


def of_a_program(record: Record, run: ResolvedRun, folder: Path) -> Record:
    """What `weir lab exec` leaves: a record of that run, which tells no program."""
    manifest = new_manifest(run, world="lab", clock="a clock", offloads="none")
    keys = ("words", "link", "test", "scenario", "seed", "queue", "world")
    return altered(record, folder, **{key: manifest.get(key) for key in keys})


def test_what_a_record_says_is_never_markup(rrul: list[Record], tmp_path: Path) -> None:
    scenario = json.loads(json.dumps(rrul[0].manifest.scenario))
    for way in ("up", "down"):
        for hop in scenario["path"][way]:
            hop["name"] = hop["queue"] = MARKUP
    for one in (*scenario["flows"], *scenario["probes"], *scenario["phases"], *scenario["hosts"]):
        one["name"] = f"{one['name']}{MARKUP}"
    hostile = altered(
        rrul[0],
        tmp_path / "<img src=x>",
        title=MARKUP,
        configuration=MARKUP,
        queue=MARKUP,
        note=MARKUP,
        tags=[MARKUP],
        warnings=[MARKUP, "\ud800 alone"],
        started_at=MARKUP,
        versions={MARKUP: MARKUP},
        host={"kernel": MARKUP},
        scenario=scenario,
        test=rrul[0].manifest.test | {"summary": MARKUP, "name": MARKUP},
    )
    page = report_page([hostile, rrul[1]], title=MARKUP)
    assert "<script>alert" not in page
    assert "<img" not in page.partition("<main>")[2].partition("</main>")[0]
    assert page.count("<script") == page.count("</script>") == 4
    assert json.loads(scripts(page)["weir-data"])["records"][0]["phases"][0]["name"].endswith(MARKUP)


def test_records_that_are_not_alike_are_told_by_what_differs(rrul: list[Record], tmp_path: Path) -> None:
    manifest = rrul[0].manifest
    test = altered(rrul[0], tmp_path / "test", scenario=manifest.scenario | {"name": "another"})
    link = altered(rrul[0], tmp_path / "link", link=manifest.link | {"name": "elsewhere"})
    says = "these records are not alike: "
    for records, told in (
        ([rrul[0], test], "tests another, rrul"),
        ([rrul[0], link], "links cable-20-8, elsewhere"),
        ([test, link], "tests another, rrul; links cable-20-8, elsewhere"),
    ):
        assert doubts(records, beside(records))[0] == says + told
    assert not any(one.startswith(says) for one in doubts(rrul, beside(rrul)))


STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Signs that could turn or hide what stands around them."""


def test_what_a_record_says_turns_no_writing(rrul: list[Record], tmp_path: Path) -> None:
    """As on the terminal: a name with a right-to-left override is written out, wherever a page has it."""
    turned = "a\u202eevil\u202c\x07"
    scenario = json.loads(json.dumps(rrul[0].manifest.scenario))
    for way in ("up", "down"):
        for hop in scenario["path"][way]:
            hop["name"] = hop["queue"] = turned
    for one in (*scenario["flows"], *scenario["probes"], *scenario["phases"], *scenario["hosts"]):
        one["name"] = f"{one['name']}{turned}"
    one = altered(
        rrul[0],
        tmp_path / turned.rstrip("\x07"),
        title=turned,
        configuration=turned,
        queue=turned,
        note=f"{turned}\nsecond line",
        tags=[turned],
        warnings=[turned],
        started_at=turned,
        versions={turned: turned},
        host={"kernel": turned},
        scenario=scenario,
        test=rrul[0].manifest.test | {"summary": turned, "name": turned, "title": turned},
        link=rrul[0].manifest.link | {"name": turned, "title": turned},
    )
    for page in (report_page([one]), report_page([one, rrul[1]]), report_page([one], title=turned)):
        assert "<h1>a\\u202eevil\\u202c\\x07" in page
        shown, _, script = page.partition("</main>")
        assert STEERING.search(shown.partition("</style>")[2]) is None
        data = json.loads(scripts(script)["weir-data"])
        assert STEERING.search(json.dumps(data, ensure_ascii=False)) is None
        assert '<p class="quiet">Note: a\\u202eevil\\u202c\\x07\nsecond line</p>' in shown
    for cell in (one._repr_html_(), weirlab.compare([one, rrul[1]])[0]._repr_html_()):
        assert cell is not None
        assert "evil" in cell
        assert STEERING.search(cell) is None


@pytest.mark.parametrize(
    "scenario",
    [
        {"hosts": 3},
        {"path": {"up": [{"name": "x"}], "down": []}},
        {"phases": [{"name": "load", "start_ns": "a", "end_ns": None}]},
        {"sampling": {"throughput_ns": float("inf")}},
        {"flows": [{}]},
    ],
)
def test_a_damaged_manifest_is_an_error_in_a_sentence(
    weir_here: Weir, rrul: list[Record], tmp_path: Path, scenario: dict[str, Any]
) -> None:
    write_altered(rrul[0], tmp_path / "damaged", scenario=rrul[0].manifest.scenario | scenario)
    done = weir_here("report", "damaged")
    assert done.returncode == 3
    assert done.stderr.startswith("weir: `damaged`")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "weir-report.html").exists()


@pytest.mark.parametrize("ask", ["is_symlink", "is_dir", "iterdir", "read_bytes"])
def test_a_record_that_cannot_be_read_meanwhile_is_not_told_as_a_page_that_cannot_be_written(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    record = open_record(shutil.copytree(rrul[0].path, tmp_path / "far"))
    record.check()
    usual = getattr(Path, ask)

    def broken(path: Path) -> object:
        if "latency" in path.parts:
            raise OSError(errno.EIO, "Input/output error", str(path))
        return usual(path)

    monkeypatch.setattr(Path, ask, broken)
    with pytest.raises(RecordError, match=r"`.*latency.*` cannot be read: Input/output error"):
        write_page([record], tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_what_fails_while_a_page_is_made_does_not_blame_the_page(
    rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr("weirlab.viewer.page.pack", broken)
    with pytest.raises(RecordError, match=r"a record cannot be read: Stale file handle"):
        write_page([rrul[0]], tmp_path / "page.html")


def test_the_command_writes_one_page(weir_here: Weir, rrul: list[Record], tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old")
    done = weir_here(
        "report", str(rrul[0].path), str(rrul[1].path), "-o", "page.html", "--title", "Before & after"
    )
    assert done.returncode == 0, done.stderr
    assert "2 records in page.html" in done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "<h1>Before &amp; after</h1>" in page
    assert sorted(one.name for one in tmp_path.iterdir()) == ["page.html"]
    refused = weir_here("report", str(rrul[0].path), "-o", "page.pdf")
    assert refused.returncode == 2
    assert "ends in .html" in refused.stderr


@pytest.mark.parametrize("command", ["report", "run"])
def test_the_page_is_opened_in_the_browser_of_whoever_sits_here(
    weir: Weir, rrul: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """A browser stands in that writes down what it is told to open."""
    words = ["report", str(rrul[0].path), "-o", "out/report.html", "--open"]
    if command == "run":
        words = ["run", "rrul_be", "--idle", "1s", "--load", "1s", "--cooldown", "0s", "--no-charts"]
        words += ["--out", "out", "--open"]
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    address = (tmp_path / "out" / "report.html").as_uri()
    done = weir(*words)
    assert done.returncode == 0, done.stderr
    assert f"there is no browser to open here: open {address}" in done.stderr
    assert "<h2>Charts</h2>" in (tmp_path / "out" / "report.html").read_text()
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    shutil.rmtree(tmp_path / "out")
    done = weir(*words)
    assert done.returncode == 0, done.stderr
    assert "no browser" not in done.stderr
    assert (tmp_path / "opened").read_text() == address


def test_a_record_that_cannot_be_read_writes_nothing(
    weir_here: Weir, rrul: list[Record], tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(rrul[0].path, broken)
    part = broken / "latency" / "part-000000.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    done = weir_here("report", "broken")
    assert done.returncode == 3
    assert "`latency` is damaged" in done.stderr
    assert not (tmp_path / "weir-report.html").exists()


def test_a_whole_rrul_is_below_three_megabytes(tmp_path: Path) -> None:
    (record,) = weirlab.run("rrul", queue="fq_codel", out=tmp_path / "out")
    assert record.reached_ns == 70_000_000_000
    assert len(report_page([record]).encode()) < 3e6


def test_the_path_is_drawn_with_all_that_stands_on_it(rrul: list[Record]) -> None:
    picture = path_svg(rrul[1])
    for words in ("client", "server", "modem", "cmts", "htb rate 95%", "20 Mbit/s", "8 Mbit/s", "delay 7ms"):
        assert words in picture, words
    label = re.findall(r'aria-label="([^"]*)"', picture)[0]
    assert label.index("router") < label.index("modem")


def test_service_classes_have_the_names_of_the_rfcs() -> None:
    names = {
        0: "BE",
        1: "LE",
        8: "CS1",
        10: "AF11",
        34: "AF41",
        40: "CS5",
        46: "EF",
        63: "DSCP 63",
        9: "DSCP 9",
    }
    assert {dscp: service(dscp) for dscp in names} == names


def test_the_page_knows_flows_probes_and_phases(rrul: list[Record]) -> None:
    told = record_data(rrul[0], "a name")
    assert [one["label"] for one in told["flows"][:4]] == ["BE", "BK", "CS5", "EF"]
    assert {one["direction"] for one in told["flows"]} == {"up", "down"}
    assert all(one["counts"] for one in told["probes"])
    assert [one["name"] for one in told["phases"]] == ["idle", "load", "cooldown"]
    assert told["load_s"] == [1.0, 5.0]
    assert told["file"] == "a-name.weir"


def test_title_and_caption_of_a_table_are_told_apart() -> None:
    records = weirlab.run("rrul_be", queue=["default", "fq_codel"], phases={"load": "3s"}, repeat=2)
    page = report_page(records)
    caption = re.search(r"<caption>([^<]*means of 2 runs[^<]*)</caption>", page)
    assert caption is not None
    assert "Cable, 20 Mbit/s down, 8 Mbit/s up; means of 2 runs, ± half of the 95 % interval" in caption[1]
