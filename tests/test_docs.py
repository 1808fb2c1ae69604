"""The documentation keeps up with what there is."""

from __future__ import annotations

import ast
import builtins
import io
import json
import re
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import list_pages
import record_page
import weirlab
from weirlab import _native
from weirlab.cli import COMMANDS
from weirlab.cli.lab_command import set_
from weirlab.record.manifest import Manifest
from weirlab.scenario import load_link

if TYPE_CHECKING:
    from collections.abc import Callable

    Weir = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parent.parent


def test_names_within_the_package_are_found_behind_its_import_alone() -> None:
    """In a fresh interpreter: there no command has loaded what the next one finds. A module is imported."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = sorted({
        name for page in pages for name in re.findall(r"`(weirlab\.[a-z_]+(?:\.\w+)+)", page.read_text())
    })  # fmt: skip
    modules = {name for name in named if (ROOT / "python" / f"{name.replace('.', '/')}.py").exists()}
    assert len(named) - len(modules) >= 4
    for name in set(named) - modules:
        code = f"import weirlab\n{name}\nassert {name.split('.')[1]!r} in dir(weirlab)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_examples_of_lines_that_change_name_hops_of_their_link() -> None:
    link = load_link("cable-20-8")
    hops = {f"up/{hop.name}" for hop in link.up} | {f"down/{hop.name}" for hop in link.down}
    page = (ROOT / "docs/lab.md").read_text().partition("## Lines that change")[2].partition("\n## ")[0]
    for text in (page, set_.help or ""):
        named = set(re.findall(r"\b(?:up|down)/[a-z]+", text))
        assert "cable-20-8" in text
        assert named
        assert named <= hops


def test_examples_of_paths_name_hops_of_their_links() -> None:
    links = {"wifi": load_link("wifi-n"), "lte": load_link("lte-verizon")}
    hops = {f"down/{path}/{hop.name}" for path, link in links.items() for hop in link.down}
    page = (ROOT / "docs/lab.md").read_text().partition("## A client with")[2].partition("\n## ")[0]
    assert all(f"--path {path}={link.name}" in page for path, link in links.items())
    named = set(re.findall(r"\bdown/[a-z]+/[a-z-]+", page))
    assert named == {"down/wifi/access-point", "down/lte/basestation"}
    assert named <= hops


@pytest.mark.parametrize("discipline", _native.disciplines(), ids=lambda one: one["name"])
def test_every_disciplines_own_page_has_every_parameter_and_its_default(
    discipline: _native.Discipline,
) -> None:
    name = "presets" if discipline["preset"] else SHARED_PAGES.get(discipline["name"], discipline["name"])
    page = (ROOT / f"docs/queues/{name}.md").read_text()
    assert f"`{discipline['name']}`" in page or page.startswith(f"# {discipline['name']}\n")
    rows = [row.split("|") for row in page.splitlines() if row.startswith("|")]
    for param in [*discipline["params"], *discipline["class_params"]]:
        defaults = ["|".join(row) for row in rows if f"`{param['name']}`" in row[1]]
        assert defaults, f"{name}.md has no row for `{param['name']}`"
        written = " ".join(defaults).replace("`", "")
        assert any(word in written for word in words_for_default(param)), (param, defaults)


def test_the_page_on_ones_own_discipline_names_all_that_tests_demand() -> None:
    page = (ROOT / "docs/adding-a-queue.md").read_text()
    places = (
        "crates/qdisc/src/registry.rs",
        "lib.rs",
        "docs/queues/lifo.md",
        # tests/test_readme.py
        "README.md",
        # What its `examples` take part in.
        "crates/qdisc/tests/accounting.rs",
        "crates/qdisc/tests/shift.rs",
    )
    assert [place for place in places if f"`{place}`" not in page] == []
    # It compiles: two times have no `-`.
    assert "now - packet" not in page


def words_for_default(param: _native.Param) -> list[str]:
    """How a page may write the default of a parameter: of a switch by the word that is in force."""
    default = param["default"].replace("`", "")
    off = re.search(r"off: `([\w-]+)`", param["unit"])
    if default == "off" and off:
        return [f"| {off[1]} |", "| off |"]
    return [default, f"| {param['name']} |"] if default == "on" else [default]


@pytest.mark.parametrize("marker", _native.markers(), ids=lambda one: one["name"])
def test_every_marker_and_parameter_is_documented(marker: _native.Marker) -> None:
    page = (ROOT / "docs/markers.md").read_text()
    assert marker["name"] in page
    for param in marker["params"]:
        assert f"`{param['name']}`" in page, param["name"]


@pytest.mark.parametrize("known", _native.congestion_controls(), ids=lambda one: one["name"])
def test_every_congestion_control_has_a_row_in_the_page_about_tcp(known: _native.CongestionControl) -> None:
    rows = [row for row in (ROOT / "docs/tcp.md").read_text().splitlines() if row.startswith("|")]
    assert any(f"(`{known['name']}`)" in row for row in rows)


@pytest.mark.parametrize("page", sorted((ROOT / "docs/queues").glob("*.md")), ids=lambda p: p.stem)
def test_every_page_has_the_same_headings(page: Path) -> None:
    text = page.read_text()
    for heading in ("## Model", "## Parameters", "## References", "## Validation", "## Limits"):
        assert heading in text or (heading == "## Parameters" and "## Parameters of" in text)


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs/cli.md").read_text()
    for name in COMMANDS:
        assert f"`weir {name}" in text


def test_every_key_of_the_manifest_is_documented() -> None:
    text = (ROOT / "docs/record.md").read_text()
    for name in {one.name for one in fields(Manifest)} - {"extra"}:
        assert f"`{name}`" in text, name


def test_the_columns_of_the_record_are_documented_as_they_are_declared() -> None:
    page = record_page.PAGE.read_text()
    assert record_page.renewed(page) == page, "the columns have changed: `make docs` writes them anew"


def test_every_table_of_the_record_has_a_heading_that_says_what_a_row_is() -> None:
    page = record_page.PAGE.read_text()
    for table in _native.tables():
        heading = re.search(rf"^## {table['name']}: (.*)$", page, re.MULTILINE)
        assert heading, table["name"]
        assert re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading[1]) == table["meaning"]


def test_rows_of_tables_have_a_cell_for_each_heading() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for block in re.split(r"^```.*?^```", page.read_text(), flags=re.MULTILINE | re.DOTALL):
            for table in re.findall(r"(?:^ *\|.*\n)+", block, re.MULTILINE):
                heading, *rows = (re.split(r"(?<!\\)\|", row.strip()) for row in table.splitlines())
                odd = ["|".join(row) for row in rows if len(row) != len(heading)]
                assert not odd, (page.name, "|".join(heading), odd)


def test_the_page_on_validation_counts_the_rows_of_its_table() -> None:
    page = (ROOT / "docs/validation.md").read_text().partition("## Simulator and lab")[2]
    rows = re.findall(r"^\| \d+/\d+ (\d+)ms .*\| (met|scatter|missed)[^|]*\|$", page, re.MULTILINE)
    assert len(rows) == 72
    words = " ".join(page.split())
    met, scatter, missed = (
        [rows.count((rtt, one)) for rtt in ("20", "80")] for one in ("met", "scatter", "missed")
    )
    assert (
        f"{sum(met)} of 72 configurations meet every goal, {sum(scatter)} are within the scatter of seeds, "
        f"{sum(missed)} miss a goal: {met[0]}, {scatter[0]} and {missed[0]} of the 36 at 20 ms, "
        f"{met[1]}, {scatter[1]} and {missed[1]} of the 36 at 80 ms."
    ) in words


def test_the_page_on_rate_control_quotes_the_study_of_cfosspeed() -> None:
    study = (ROOT / "docs/studies/cfosspeed.md").read_text()
    page = " ".join((ROOT / "docs/rate-control.md").read_text().split())
    row = r"^\| (down|up|up-path) \| (auto, ping mode|auto, bandwidth mode|fixed 95 %) \|(.*)\|$"
    cells = {
        (side, control): [cell.strip() for cell in rest.split("|")]
        for side, control, rest in reversed(re.findall(row, study, re.MULTILINE))
    }
    down, up = (round(float(cells[side, "auto, ping mode"][2].split()[0])) for side in ("down", "up"))
    assert f"the download of the cFosSpeed line gains a factor of {down}, the upload of {up}" in page
    ping, bandwidth = (
        {side: cells[side, f"auto, {mode} mode"][5] for side in ("down", "up", "up-path")}
        for mode in ("ping", "bandwidth")
    )
    assert (
        f"the upload loses {ping['up']} and {bandwidth['up']} % of its rate to them, where its path varies "
        f"{ping['up-path']} and {bandwidth['up-path']} %, and a download from a far server "
        f"{ping['down']} and {bandwidth['down']} %"
    ) in page
    assert f"a fixed 95 % costs {cells['down', 'fixed 95 %'][5]} %" in page


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_links_to_headings_lead_to_one_that_its_page_has_once() -> None:
    # The second of a name has another anchor in each place where pages are shown.
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#]*)#([^)]+)\)", page.read_text()):
            if "://" not in target:
                found = anchors(page.parent / target if target else page).count(anchor)
                assert found == 1, f"{page}: {target}#{anchor}: {found} headings"


def anchors(page: Path) -> list[str]:
    """The anchors of a page's headings, as GitHub and the site make them of the first of each name."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", one) for one in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return [re.sub(r"[^\w\- ]", "", one).replace(" ", "-").lower() for one in titles]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("test.md", ("test",)),
        ("ping.md", ("ping",)),
        ("shape.md", ("shape", "start")),
        ("shape.md", ("shape", "status")),
        ("shape.md", ("shape", "replay")),
        ("serve.md", ("serve",)),
        ("sweep.md", ("sweep", "run")),
        ("sweep.md", ("sweep", "show")),
        ("sweep.md", ("query",)),
        ("sweep.md", ("bundle",)),
    ],
    ids=[
        "test",
        "ping",
        "shape",
        "shape status",
        "shape replay",
        "serve",
        "sweep",
        "sweep show",
        "query",
        "bundle",
    ],
)
def test_every_option_is_documented(page: str, words: tuple[str, ...], weir_here: Weir) -> None:
    text = (ROOT / "docs" / page).read_text()
    options = set(re.findall(r"--[a-z][a-z-]+", weir_here(*words, "--help").stdout)) - GIVEN_TO_EVERY_COMMAND
    assert options
    for option in sorted(options):
        assert re.search(rf"{option}\b(?!-)", text), option


@pytest.mark.parametrize(("file", "name"), list_pages.LISTS)
def test_the_lists_of_names_are_those_of_the_registries(file: str, name: str) -> None:
    page = (list_pages.DOCS / file).read_text()
    rows = list_pages.LISTS[file, name]()
    assert list_pages.renewed(page, name, rows) == page, "a registry has changed: `make docs` writes it anew"


def test_files_that_pages_name_are_there() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for name in re.findall(r"`((?:crates|python|tests|tools|scenarios)/[\w./-]+)`", page.read_text()):
            assert (ROOT / name).exists() or "NAME" in name or name in WRITTEN_BY_READERS, f"{page}: {name}"


def test_pages_that_pages_name_are_linked() -> None:
    """A path of the repository is none on the site."""
    for page in ROOT.glob("docs/**/*.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        named = set(re.findall(r"(?<![\w/.])docs/[\w/-]+\.md", text)) - WRITTEN_BY_READERS
        assert not named, f"{page}: {named}"


EXAMPLES = re.findall(
    r"^```toml\n(.*?)^```", (ROOT / "docs/scenarios.md").read_text(), re.DOTALL | re.MULTILINE
)

PLACED = {
    "name": (
        'test = "rrul_be"\nlink = "example.toml"\n',
        'test = "example.toml"\nlink = "cable-20-8"\n',
    ),
    "methods": ('test = "ping"\nlink = "cable-20-8"\n',),
    "assert": ('test = "rrul"\nlink = "cable-20-8"\n',),
}
"""What stands before an example that is no whole scenario, by its first key; one with a name is a file."""

BELOW_TOPOLOGIES = """
[test]
name = "routed"
title = "routed"
flows = [
    { name = "long", direction = "up", host = "end" },
    { name = "cross", direction = "up", host = "exit b" },
]
phases = { load = "2s" }
[link]
name = "routed"
title = "routed"
[[link.up]]
name = "a"
rate = "10mbit"
[[link.up]]
name = "b"
rate = "10mbit"
place = "queue"
[[link.up]]
name = "c"
rate = "10mbit"
[[link.down]]
name = "back"
rate = "10mbit"
"""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.split("=")[0].strip().split("\n")[0])
def test_the_examples_of_scenarios_tests_and_links_run(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As whoever copies one runs it, with what the page says stands around it."""
    monkeypatch.chdir(tmp_path)
    keys = tomllib.loads(example)
    if "routes" in keys.get("link", {}):
        text = f"{BELOW_TOPOLOGIES}\n{example}"
    elif "name" in keys:
        Path("example.toml").write_text(example)
        is_link = "up" in keys
        text = PLACED["name"][0 if is_link else 1]
    else:
        text = "".join(PLACED.get(next(iter(keys)), ())) + example
    Path("scenario.toml").write_text(text)
    records = weirlab.run("scenario.toml", repeat=1, out="out")
    assert all(record.manifest.complete for record in records)


def test_a_flow_of_the_tree_on_the_page_of_the_syntax_reaches_its_ceil() -> None:
    """One that has the tree for itself borrows what the other class leaves: it has 2 Mbit/s of cells."""
    page = (ROOT / "docs/queues/syntax.md").read_text()
    (tree,) = re.findall(r"^```\n(# 2 Mbit/s over ADSL\n.*?)^```", page, re.DOTALL | re.MULTILINE)
    flow = {"name": "flood", "direction": "up", "udp": {"rate": "3mbit", "payload": 1472}}
    test = {"name": "flood", "title": "flood", "phases": {"load": "20s"}, "flows": [flow]}
    (record,) = weirlab.run(test, link="line-50", queue_up=tree)
    up = weirlab.summarise(record).up
    assert up is not None
    # A packet of 1500 bytes takes 33 cells of 53 with the 14 of Ethernet and 40 more.
    assert up.throughput_mbps == pytest.approx(2 * 1500 / (33 * 53), rel=0.01)


def recordings() -> dict[str, str]:
    """The recordings of Linux' queues: their names, with the disciplines that they are of."""
    files = (ROOT / "vectors" / "linux-6.12").glob("*.json")
    found = [json.loads(file.read_text()) for file in files if file.name != "exceptions.json"]
    return {one["name"]: one["discipline"] for one in found}


def test_every_recording_is_named_on_the_page_of_its_queue() -> None:
    for name, discipline in recordings().items():
        page = ROOT / f"docs/queues/{PAGES_OF_RECORDINGS.get(discipline, discipline)}.md"
        assert f"`{name}`" in page.read_text(), page.name


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("README.md", r"(\d+) recordings of Linux 6\.12"),
        ("docs/validation.md", r"^(\d+) recordings of real Linux"),
        ("docs/validation.md", r"^\| all (\d+) \|"),
        ("docs/cli.md", r"`vectors/linux-6\.12` has (\d+)\b"),
        ("vectors/linux-6.12/README.md", r"^There are (\d+) vectors"),
    ],
)
def test_pages_count_as_many_recordings_as_there_are(page: str, words: str) -> None:
    (count,) = re.findall(words, (ROOT / page).read_text(), re.MULTILINE)
    assert int(count) == len(recordings())


def test_the_page_of_cake_counts_its_recordings() -> None:
    (count,) = re.findall(r"all (\d+) of `cake-\*`", (ROOT / "docs/queues/cake.md").read_text())
    assert int(count) == sum(name.startswith("cake-") for name in recordings())


def python_blocks() -> list[tuple[str, str]]:
    """The Python programs of all pages, with where each stands."""
    found = []
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        text = page.read_text()
        for block in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, block.start()) + 1
            found.append((f"{page.relative_to(ROOT)}:{line}", block[1]))
    return found


@pytest.mark.parametrize(("where", "program"), python_blocks(), ids=[where for where, _ in python_blocks()])
def test_python_on_pages_has_all_names_that_it_uses(where: str, program: str) -> None:
    """As whoever copies it alone into a file runs it."""
    tree = ast.parse(program, where)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {name.id for name in names if not isinstance(name.ctx, ast.Load)} | vars(builtins).keys()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(one.asname or one.name).partition(".")[0] for one in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    assert {name.id for name in names} <= bound
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "weirlab"
        ):
            assert hasattr(weirlab, node.attr), f"{where}: weirlab.{node.attr}"


def test_the_sweep_of_its_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = next(program for where, program in python_blocks() if where.startswith("docs/sweep.md"))
    shorter = (
        program.replace('"20s"', '"1s"').replace('"steps": 5', '"steps": 2').replace("repeat=3", "repeat=1")
    )
    assert shorter.count('"1s"') == 2
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(shorter, "docs/sweep.md", "exec"), {})  # noqa: S102 - a program of our own
    assert "increase_p95_ms" in printed.getvalue()


GIVEN_TO_EVERY_COMMAND = {"--help", "--version"}

SHARED_PAGES = {
    "pfifo": "fifo",
    "bfifo": "fifo",
    "pfifo_head_drop": "fifo",
    "prio": "schedulers",
    "ets": "schedulers",
    "drr": "schedulers",
    "qfq": "schedulers",
    "skbprio": "schedulers",
}
"""Pages of several disciplines; all others have one of their own name."""

PAGES_OF_RECORDINGS = SHARED_PAGES | {"police": "ingress"}
"""The same of what recordings are of, which a policer is too."""

WRITTEN_BY_READERS = {"crates/qdisc/src/lifo.rs", "docs/queues/lifo.md"}
"""docs/adding-a-queue.md shows how."""
