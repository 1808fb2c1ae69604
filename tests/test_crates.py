"""Crates that a crate may use: every `Cargo.toml` is held against the table in ARCHITECTURE.md."""

from __future__ import annotations

import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def used(crate: str) -> set[str]:
    """The crates of ours that a crate needs where it runs; its tests may need others."""
    manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text(encoding="utf-8"))
    sections = [manifest, *manifest.get("target", {}).values()]
    names = chain.from_iterable(section.get("dependencies", {}) for section in sections)
    return {name.removeprefix("weir-") for name in names if name.startswith("weir-")}


def allowed() -> dict[str, set[str]]:
    """What each crate may use, as ARCHITECTURE.md says, in its order."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("| room | kind | may use |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.split("|")[1:4]] for row in table.splitlines()[2:]]
    crates = [row for row in rows if row[0].startswith("`crates/")]
    return {
        room.strip("`").removeprefix("crates/"): set(re.findall(r"`([\w-]+)`", may))
        for room, _, may in crates
    }


def test_every_crate_is_in_the_table() -> None:
    assert set(allowed()) == {manifest.parent.name for manifest in ROOT.glob("crates/*/Cargo.toml")}


@pytest.mark.parametrize("crate", allowed())
def test_a_crate_uses_what_the_table_says_and_nothing_else(crate: str) -> None:
    assert used(crate) == allowed()[crate]


def test_crates_use_those_above_them_only() -> None:
    above: set[str] = set()
    for crate, may_use in allowed().items():
        assert may_use <= above, crate
        above.add(crate)


def below(crate: str) -> set[str]:
    """Every crate that a crate uses, directly or through others."""
    return used(crate) | set(chain.from_iterable(below(one) for one in used(crate)))


def level(crate: str) -> int:
    """How many crates stand one upon the other below a crate, at most."""
    return max((1 + level(one) for one in used(crate)), default=0)


def nearest(crate: str) -> set[str]:
    """The crates that a crate uses and that no other one of them uses."""
    return used(crate) - set(chain.from_iterable(below(one) for one in used(crate)))


def test_the_picture_shows_each_crate_at_its_level_with_its_nearest() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = text.partition("<!-- picture of the crates -->\n```\n")[2].partition("```")[0]
    drawn = {}
    for line in picture.splitlines():
        number, _, crates = line.strip().partition("  ")
        for crate, arrows in re.findall(r"([\w-]+)(?: --> ((?:[\w-]+, )*[\w-]+))?(?:  |$)", crates):
            drawn[crate] = (int(number), set(filter(None, arrows.split(", "))))
    assert drawn == {crate: (level(crate), nearest(crate)) for crate in allowed()}


def linked(crate: str, *words: str) -> set[str]:
    """Every crate, ours and others', that this crate links with the features that it asks for."""
    command = ["cargo", "tree", "--offline", "--locked", "--package", f"weir-{crate}"]
    command += ["--edges", "normal", "--prefix", "none", "--format", "{p}", *words]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout
    return {line.split()[0] for line in lines.splitlines() if line}


TLS_AND_HTTP = {"tokio", "rustls", "tokio-rustls", "hyper"}
ONLY_FOR_OTHERS = {
    "agent": {"weir-lab", "weir-path", "weir-record", "weir-sim", "weir-tcp", "parquet", "pyo3"},
    "shape": {"weir-client", "weir-record", "parquet", "pyo3"} | TLS_AND_HTTP,
    "sim": {"weir-sockets", "weir-linux", "weir-record", "parquet", "pyo3"} | TLS_AND_HTTP,
}


@pytest.mark.parametrize("crate", ONLY_FOR_OTHERS)
def test_a_product_does_not_link_what_others_need(crate: str) -> None:
    has = linked(crate)
    assert f"weir-{crate}" in has
    assert not has & ONLY_FOR_OTHERS[crate]


@pytest.mark.parametrize("features", [(), ("--features", "test")], ids=["bare", "test"])
def test_a_program_for_routers_links_no_tls_and_no_http2(features: tuple[str, ...]) -> None:
    router = linked("agent", "--no-default-features", *features)
    assert "weir-shape" in router
    assert not router & (TLS_AND_HTTP | {"weir-serve", "clap", "ring"})
    assert ("weir-client" in router) == bool(features)


def test_what_a_product_links_includes_what_its_features_ask_for() -> None:
    assert linked("client") >= TLS_AND_HTTP
    assert not linked("client", "--no-default-features") & TLS_AND_HTTP


LIBRARIES = sorted(
    file.parent.parent for file in [*ROOT.glob("crates/*/src/lib.rs"), ROOT / "benches/src/lib.rs"]
)


@pytest.mark.parametrize("crate", LIBRARIES, ids=lambda crate: crate.name)
def test_examples_in_documentation_are_run_where_there_are_any(crate: Path) -> None:
    """A library without them says so, since to look for them takes seconds."""
    manifest = tomllib.loads((crate / "Cargo.toml").read_text(encoding="utf-8"))
    library = manifest.get("lib", {})
    looked_for = library.get("doctest", True) and "cdylib" not in library.get("crate-type", [])
    assert looked_for == any(has_example(file) for file in crate.glob("src/**/*.rs"))


def has_example(file: Path) -> bool:
    """Whether the documentation in a file has code that is no plain text. Every other fence opens a block."""
    fences = re.findall(r"^\s*//[/!] ```(.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return any(words.strip() != "text" for words in fences[::2])


def external() -> dict[str, set[str]]:
    """The crates of others that ours need where they run, and which of ours do."""
    found: dict[str, set[str]] = {}
    for file in ROOT.glob("crates/*/Cargo.toml"):
        manifest = tomllib.loads(file.read_text(encoding="utf-8"))
        sections = [manifest, *manifest.get("target", {}).values()]
        for name in chain.from_iterable(section.get("dependencies", {}) for section in sections):
            if not name.startswith("weir-"):
                found.setdefault(name, set()).add(file.parent.name)
    return found


def test_the_crates_of_others_are_in_a_table_with_those_that_use_them() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("| crate | where | for |")[2].partition("\n\n")[0]
    said: dict[str, set[str]] = {}
    for line in table.splitlines()[2:]:
        names, where = (cell.strip() for cell in line.split("|")[1:3])
        crates = set(re.findall(r"[\w-]+", re.sub("`[^`]*`", "", where))) & {*allowed(), "most"}
        said |= dict.fromkeys(re.findall(r"`([\w-]+)`", names), crates)
    many = {name: used_by for name, used_by in external().items() if said.get(name) == {"most"}}
    assert all(len(used_by) > len(allowed()) / 3 for used_by in many.values())
    assert said == external() | {name: {"most"} for name in many}


def test_what_is_more_than_once_in_the_tree_is_told() -> None:
    command = ["cargo", "tree", "--offline", "--locked", "--workspace", "--duplicates", "--depth", "0"]
    command += ["--edges", "normal,build"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    versions = set(re.findall(r"^([\w-]+) v(\d+(?:\.\d+)?)", done.stdout, re.MULTILINE))
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    told = text.partition("**More than once in the tree**")[2].partition("\n\n")[0]
    assert versions, "as of `ring` and `parquet`"
    for name, version in versions:
        major = version if version.startswith("0.") else version.partition(".")[0]
        of = told.partition(f"`{name}` (")[2].partition(")")[0]
        assert re.search(rf"(?<![\d.]){re.escape(major)}(?![\d.])", of), (name, version)


def test_the_tests_are_compiled_with_assertions_and_with_the_dependencies_of_the_extension() -> None:
    profile = tomllib.loads((ROOT / "tools/tests.toml").read_text(encoding="utf-8"))["profile"]["quick"]
    assert set(profile) == {"package"}, "what stands beside it would hold for dependencies too"
    crates = {"weir-benches"} | {f"weir-{crate}" for crate in allowed()} - {"weir-py"}
    assert set(profile["package"]) == crates
    assert all(of_crate["debug-assertions"] for of_crate in profile["package"].values())
    extension, tests = (
        dependencies("--package", "weir-py", "--edges", "normal,build"),
        dependencies("--workspace", "--edges", "normal,build,dev"),
    )
    # Its clock is stopped in tests of the server.
    assert extension - tests == {one for one in extension if one.startswith("tokio v")}


def dependencies(*words: str) -> set[str]:
    """Crates of others that are compiled, each with its version and features."""
    command = ["cargo", "tree", "--offline", "--locked", "--prefix", "none", "--format", "{p} {f}", *words]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=300).stdout
    return {line.removesuffix(" (*)") for line in lines.splitlines() if line and not line.startswith("weir-")}


def test_files_that_comments_and_maps_name_are_there() -> None:
    """In ARCHITECTURE.md, CONTRIBUTING.md and comments of code, whole paths or their ends; `NAME` is any."""
    listed = ["git", "ls-files"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    files = done.stdout.split()
    there = {f"/{file}" for file in files}
    for file in files:
        of_code = file.endswith((".rs", ".py", ".ts")) and file.startswith(
            ("crates/", "python/", "viewer/src")
        )
        if file not in {"ARCHITECTURE.md", "CONTRIBUTING.md"} and not of_code:
            continue
        text = (ROOT / file).read_text(encoding="utf-8")
        pattern = (
            r"`((?:[\w-]+/)+[\w-]+\.(?:rs|py|ts|sh|md))`"
            if of_code
            else r"`((?:[\w-]+/)*[\w-]+\.(?:rs|py|ts|sh))`"
        )
        for named in re.findall(pattern, text):
            if "NAME" not in named:
                assert any(one.endswith(f"/{named}") for one in there), f"{file}: {named}"
