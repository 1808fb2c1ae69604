"""What a package index and a source distribution show is complete, and leads somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from weirlab import _native

ROOT = Path(__file__).parent.parent
REPOSITORY = "https://github.com/weir-bench/weir"


def test_links_of_the_readme_work_away_from_the_repository() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert len(targets) > 10
    for target in targets:
        assert target.startswith("https://"), (
            f"{target}: an index shows the README without the files beside it"
        )
        if target.startswith(f"{REPOSITORY}/"):
            path = re.sub(r"^(?:blob|raw|tree)/main/", "", target.removeprefix(f"{REPOSITORY}/"))
            assert (ROOT / path.split("#")[0]).exists(), target


def test_the_metadata_says_who_where_and_for_what() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["authors"]
    assert set(project["urls"]) == {"Homepage", "Documentation", "Changelog", "Source", "Issues"}
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the source distribution."""
    out = tmp_path_factory.mktemp("sdist")
    maturin = Path(sys.executable).parent / "maturin"
    done = subprocess.run(
        [maturin, "sdist", "--out", out], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    (archive,) = out.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(out, filter="data")
    (folder,) = (one for one in out.iterdir() if one.is_dir())
    return folder


@pytest.fixture(scope="module")
def shipped(unpacked: Path) -> set[str]:
    """The files of the source distribution, below its folder."""
    return {one.relative_to(unpacked).as_posix() for one in unpacked.rglob("*") if one.is_file()}


def test_the_source_distribution_has_what_the_documentation_speaks_of(shipped: set[str]) -> None:
    listed = subprocess.run(
        [
            "git",
            "ls-files",
            "*.md",
            "docs",
            "examples",
            "packaging",
            "scenarios",
            "tests/*.py",
            "site",
            "tools",
            "vectors",
            "Makefile",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.split("\n")
    wanted = {name for name in listed if name and not name.startswith(("fuzz/", "tests/clients/"))}
    assert len(wanted) > 200
    assert wanted - shipped == set()


def test_the_source_distribution_can_be_compiled(shipped: set[str], unpacked: Path) -> None:
    assert {"Cargo.lock", "Cargo.toml", "pyproject.toml", "crates/py/Cargo.toml"} <= shipped
    # It has fewer crates than the lock file, so that Cargo must be free to leave some out, as with pip.
    assert "locked" not in tomllib.loads((unpacked / "pyproject.toml").read_text())["tool"]["maturin"]
    words = ["cargo", "metadata", "--offline", "--format-version", "1"]
    done = subprocess.run(words, cwd=unpacked, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert versions(unpacked) < versions(ROOT), "those that are there have the versions of the lock file"


def versions(folder: Path) -> set[tuple[str, str]]:
    """Names and versions of the crates of a lock file."""
    packages = tomllib.loads((folder / "Cargo.lock").read_text())["package"]
    return {(package["name"], package["version"]) for package in packages}


def test_programs_carry_the_licences_of_what_they_contain(shipped: set[str]) -> None:
    words = [sys.executable, "tools/licences.py", "x86_64-unknown-linux-gnu", "weir-agent", "weir-py"]
    made = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    assert (ROOT / LICENCES).read_text() == made, "other crates, or versions: `make licences` writes it anew"
    assert LICENCES in shipped
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert LICENCES in project["license-files"]
    recipes = ["crates/agent/Cargo.toml", "packaging/openwrt/Makefile", "packaging/oci/Containerfile"]
    # Weir's own ask for their text in copies too.
    for name in (LICENCES, "LICENSE-MIT", "LICENSE-APACHE"):
        assert [one for one in recipes if name not in (ROOT / one).read_text()] == []


LICENCES = "LICENSES-THIRD-PARTY.txt"


def test_the_debian_package_finds_its_files_and_its_unit_its_settings() -> None:
    agent = ROOT / "crates" / "agent"
    package = tomllib.loads((agent / "Cargo.toml").read_text())["package"]["metadata"]["deb"]
    sources = [source for source, _, _ in package["assets"]]
    assert sources[0] == "target/release/weir-agent", "the program, which is compiled first"
    assert [source for source in sources[1:] if not (agent / source).is_file()] == []
    installed = {
        f"/{place}{Path(source).name if place.endswith('/') else ''}"
        for source, place, _ in package["assets"]
    }
    # Without them `cargo deb` makes no package.
    assert package["copyright"]
    assert (agent / package["license-file"][0]).is_file()
    assert package["depends"] == "$auto", "what the program links: libc of the machine where it was compiled"
    # As wide as Debian shows it.
    assert max(map(len, package["extended-description"].splitlines())) <= 80
    unit = (ROOT / "packaging" / "systemd" / "weir-shape@.service").read_text()
    [started] = re.findall(r"^ExecStart=(.+)$", unit, re.MULTILINE)
    [program] = re.findall(r"exec (\S+) shape", started)
    assert {program, *package["conf-files"]} <= installed
    assert all(one in started for one in package["conf-files"])
    said = (agent / "src" / "shape" / "mod.rs").read_text()
    words = re.findall(r"--\w[\w-]+", started)
    assert words
    assert [word for word in words if f"\n  {word} " not in said] == []


def test_the_packaged_unit_is_the_example_with_the_program_of_the_package() -> None:
    def settings(folder: str) -> list[str]:
        lines = (ROOT / folder / "systemd" / "weir-shape@.service").read_text().splitlines()
        return [line for line in lines if line and not line.startswith(("#", "ExecStart="))]

    assert settings("packaging") == settings("examples")


@pytest.mark.parametrize("there", [["shape-br-lan.toml", "shape.toml"], ["shape.toml"], []])
def test_the_packaged_unit_begins_with_the_settings_of_the_device_or_of_all(
    tmp_path: Path, there: list[str]
) -> None:
    unit = (ROOT / "packaging" / "systemd" / "weir-shape@.service").read_text()
    [script] = re.findall(r"^ExecStart=/bin/sh -c '(.+)'$", unit, re.MULTILINE)
    for name in there:
        (tmp_path / name).touch()
    # As systemd writes it for the instance `br\\x2dlan`.
    script = script.replace("%I", "br-lan").replace("$$", "$").replace("/etc/weir", str(tmp_path))
    script = script.replace("exec /usr/bin/weir-agent", "echo")
    said = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, timeout=30, check=True)
    config = f" --config {tmp_path / there[0]}" if there else ""
    assert said.stdout == f"shape br-lan --quiet{config}\n"


def test_the_settings_that_packages_ship_are_read_when_their_marks_are_taken_off(tmp_path: Path) -> None:
    shipped = (ROOT / "packaging" / "shape.toml").read_text()
    settings = tmp_path / "shape.toml"
    settings.write_text(re.sub(r"^#(?=\w+ = )", "", shipped, flags=re.MULTILINE))
    assert set(_native.read_shaper_config(settings)) == {"up", "down", "mode", "rules"}


def test_the_image_takes_the_program_that_the_build_writes() -> None:
    recipe = (ROOT / "packaging" / "oci" / "Containerfile").read_text()
    [made] = re.findall(r"^COPY (\S+) /weir-agent$", recipe, re.MULTILINE)
    assert "\nARG ARCH=x86_64\n" in recipe
    assert f"{made.removesuffix('$ARCH')}$arch" in (ROOT / "tools" / "agent-static.sh").read_text()


def test_what_tests_need_is_locked_to_the_versions_that_weir_runs_on() -> None:
    def locked(name: str) -> set[str]:
        return set(re.findall(r"^[\w.-]+==\S+", (ROOT / name).read_text(), re.MULTILINE))

    runs_on = locked("requirements.lock")
    assert len(runs_on) > 20
    assert runs_on - locked("requirements-dev.lock") == set()
    assert any(one.startswith("maturin==") for one in runs_on), "tools/install.sh installs it first"
