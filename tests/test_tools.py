"""The scripts that set up, build and clear away, with programs in place of those that they call."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import FOREVER_S, PATIENCE_S

ROOT = Path(__file__).parent.parent


def programs(folder: Path, **scripts: str) -> dict[str, str]:
    """An environment in which these programs come before others of their names; a `_` stands for a `-`."""
    for name, script in scripts.items():
        file = folder / name.replace("_", "-")
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
    return os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}


def project(folder: Path, *files: str) -> Path:
    """A folder with these files of ours alone, for scripts that go to the root of their own."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(ROOT / name)
    (folder / "bin").mkdir()
    return folder


@pytest.mark.parametrize(("machine", "target"), [("armv7l", ""), ("x86_64", "x86_64-unknown-linux-musl")])
def test_a_target_that_rust_does_not_know_is_not_built_for(tmp_path: Path, machine: str, target: str) -> None:
    """Where the kernel calls a machine otherwise than Rust does, the machine's C library is taken."""
    here = project(tmp_path, "tools/agent.sh")
    environment = programs(
        here / "bin",
        uname=f"echo {machine}",
        rustc=f'[ "$4" = x86_64-unknown-linux-musl ] && echo "{here}"',
        cargo=f'echo "$@" >"{here}/asked"',
        strip="",
        musl_gcc="",
    )
    done = subprocess.run(
        [here / "tools/agent.sh"], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert (here / "asked").read_text().partition("--target ")[2].strip() == target
    assert ("so the program needs this machine's C library" in done.stderr) == (target == "")


@pytest.mark.parametrize("number", [None, signal.SIGINT])
def test_nothing_goes_on_behind_a_set_up_that_has_ended(
    tmp_path: Path, number: signal.Signals | None
) -> None:
    """Whether it failed, as without a network, or was interrupted while the first package comes."""
    here = project(tmp_path, "tools/install.sh", "requirements.lock")
    environment = programs(
        here / "bin", cargo=f'echo $$ >"{here}/pid"\nexec sleep {FOREVER_S}', rustc="echo here"
    )
    (here / "venv" / "bin").mkdir(parents=True)
    wait = f'until [ -s "{here}/pid" ]; do sleep 0.01; done'
    programs(here / "venv" / "bin", python=f"{wait}\n{'exit 1' if number is None else f'sleep {FOREVER_S}'}")
    called = subprocess.Popen(
        [here / "tools/install.sh", "venv", "requirements.lock"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + PATIENCE_S
    while not (here / "pid").exists() and time.monotonic() < end:
        time.sleep(0.01)
    if number is not None:
        os.killpg(called.pid, number)
    said, _ = called.communicate(timeout=PATIENCE_S)
    assert called.returncode == (1 if number is None else 130)
    assert said.splitlines()[-1:] == ([] if number else ["weir: maturin could not be installed"])
    with pytest.raises(ProcessLookupError):
        os.kill(int((here / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("target", "lock"),
    [
        ("weir", "requirements.lock"),
        ("demo", "requirements.lock"),
        ("setup", "requirements-dev.lock"),
        ("test", "requirements-dev.lock"),
    ],
)
def test_all_packages_that_a_target_needs_come_while_weir_compiles(
    tmp_path: Path, target: str, lock: str
) -> None:
    venv = tmp_path / "venv"
    told = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", f"VENV={venv}", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert re.findall(r"tools/install\.sh .*", told) == [f"tools/install.sh {venv} {lock}"]


RUST_TESTS = {
    "crates/serve/tests/limits.rs": ("echo whole; echo 'test result: FAILED. 1 failed'; exit 101", False),
    "crates/core/src/lib.rs": ("echo dots; echo 'test result: ok. 2 passed'", True),
    "crates/serve/src/lib.rs": ("echo dots; echo 'test result: ok. 3 passed'", True),
    "crates/core/tests/ended.rs": ("echo 'it ended itself'", False),
}
"""Programs of tests: their sources, what they do, and whether that is good."""


@pytest.mark.parametrize(
    ("sources", "documented", "code"),
    [
        (list(RUST_TESTS), "exit 0", 1),
        ([source for source, (_, good) in RUST_TESTS.items() if good], "exit 0", 0),
        ([source for source, (_, good) in RUST_TESTS.items() if good], "exit 101", 1),
        ([], "exit 0", 1),
    ],
    ids=["some fail", "all pass", "of the documentation one fails", "none"],
)
def test_rust_tests_are_run_to_the_last_and_what_failed_is_shown(
    tmp_path: Path, sources: list[str], documented: str, code: int
) -> None:
    here = project(tmp_path, "tools/rust_tests.py")
    compiled: list[dict[str, Any]] = [{"reason": "build-finished", "success": True}]
    for number, source in enumerate(sources):
        programs(here / "bin", **{f"tests_{number}": f'echo "$@" >>asked\n{RUST_TESTS[source][0]}'})
        crate = here.joinpath(*Path(source).parts[:2])
        crate.mkdir(parents=True, exist_ok=True)
        compiled.append(
            {
                "reason": "compiler-artifact",
                "profile": {"test": True},
                "executable": str(here / "bin" / f"tests-{number}"),
                "manifest_path": str(crate / "Cargo.toml"),
                "target": {"src_path": str(here / source)},
            }
        )
    (here / "compiled").write_text("".join(f"{json.dumps(line)}\n" for line in compiled))
    cargo = f'case " $* " in *" --no-run "*) cat "{here}/compiled";; *) {documented};; esac'
    done = subprocess.run(
        [sys.executable, here / "tools/rust_tests.py", "--workspace"],
        env=programs(here / "bin", cargo=cargo),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("so nothing was tested" in done.stderr) == (not sources)
    failed = [source for source in sources if not RUST_TESTS[source][1]]
    for source in sources:
        assert (f"FAILED: Rust tests in {source}; see above" in done.stdout) == (source in failed)
    # What waits is run as ever; of what computes there is one test at a time.
    for name, words in (("serve", "--quiet"), ("core", "--quiet --test-threads=1")):
        wanted = [words for source in sources if f"crates/{name}/" in source]
        asked = here / "crates" / name / "asked"
        assert (asked.read_text().splitlines() if wanted else []) == wanted
    assert done.stdout.count("\nwhole\n") == ("crates/serve/tests/limits.rs" in failed)
    assert "dots" not in done.stdout


PART = """
case " $* " in
*"not realtime"*) part=beside other=pid-rust ;;
*--rust*) part=rust other=counted-beside ;;
*"not quiet"*) part=realtime other= ;;
*"and quiet"*) part=quiet other= ;;
*) part=again other= ;;
esac
echo $$ >pid-$part
echo "$part begins" >>parts
# These two run at the same time, or wait for each other for ever.
[ -z "$other" ] || until [ -e $other ]; do sleep 0.01; done
sed -n 's/.* nice //p' /proc/self/autogroup >weight-$part 2>/dev/null
nice >priority-$part
cat "$WEIR_SKIPPED" >>counted-$part
[ $part = rust ] || echo "of $part" >>"$WEIR_SKIPPED"
[ $part != beside ] || until [ -e ended-realtime ]; do sleep 0.01; done
# Then they are in nobody's way, and no longer beneath other work.
usual() { [ ! -e /proc/self/autogroup ] || grep -q 'nice 0$' /proc/self/autogroup; }
[ $part != beside ] || until usual; do sleep 0.01; done
[ ! -e hang-$part ] || { touch hangs-$part && sleep 600; }
echo "$part ended" | tee -a parts
echo ended >ended-$part
[ ! -e lastfailed ] || { mkdir -p .pytest_cache/v/cache && cp lastfailed .pytest_cache/v/cache; }
[ ! -e fails-$part ]
"""
"""In the place of pytest and of what runs the Rust tests: tells that it begins and ends, and how it runs."""


PARTS = ("rust", "realtime", "quiet")
"""Parts that follow each other."""


def is_at_work(here: Path, part: str) -> bool:
    """Whether the process of a part is there."""
    kept = here / f"pid-{part}"
    return kept.exists() and Path(f"/proc/{kept.read_text().strip()}").exists()


def all_tests(here: Path) -> subprocess.Popen[str]:
    """Begins all tests in a folder, with `PART` for those in Rust and each part of those in Python."""
    programs(here / "bin", pytest=PART, rust_tests=PART)
    (here / "tests").mkdir()
    for name in ("realtime", "quiet"):
        (here / "tests" / f"test_{name}.py").write_text(f"pytestmark = pytest.mark.{name}\n")
    return subprocess.Popen(
        [here / "tools/test.sh", here / "bin/pytest", here / "bin/rust-tests", "--rust"],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("fails", "failed", "code", "last"),
    [
        ([], 0, 0, "quiet ended"),
        (["rust"], 0, 1, "rust ended"),
        (["beside"], 0, 1, "FAILED: Python tests that need no clock; see above"),
        (["realtime"], 2, 0, "tests/test_b.py::test_1"),
        (["quiet"], 4, 1, "FAILED: Python tests in real time; see above"),
        (["quiet", "again"], 1, 1, "FAILED: Python tests in real time; see above"),
        (
            ["beside", "realtime", "again"],
            1,
            1,
            "FAILED: Python tests that need no clock and in real time; see above",
        ),
    ],
)
def test_what_needs_no_clock_runs_beside_what_waits_and_is_in_nobodys_way(
    tmp_path: Path, fails: list[str], failed: int, code: int, last: str
) -> None:
    here = project(tmp_path, "tools/test.sh")
    for part in fails:
        (here / f"fails-{part}").touch()
    if failed:
        names = {f"tests/test_b.py::test_{number}": True for number in range(failed)}
        (here / "lastfailed").write_text(json.dumps(names))
    called = all_tests(here)
    said, _ = called.communicate(timeout=PATIENCE_S)
    assert called.returncode == code, said
    assert said.splitlines()[-1] == last
    parts = (here / "parts").read_text().splitlines()
    assert sorted(parts[:2]) == ["beside begins", "rust begins"]
    once_more = ["again begins", "again ended"] * (0 < failed <= 3)
    others = ["realtime begins", "realtime ended", "beside ended", "quiet begins", "quiet ended", *once_more]
    assert parts[2:] == ["rust ended", *(others if fails != ["rust"] else [])]
    assert [one for one in ("beside", *PARTS) if is_at_work(here, one)] == []
    if fails == ["rust"]:
        return
    assert said.index("realtime ended") < said.index("beside ended") < said.index("quiet ended")
    # Of parts that follow each other the later one counts what skipped before.
    counted = {
        part: (here / f"counted-{part}").read_text().split("of ")[1:]
        for part in ("beside", "realtime", "quiet")
    }
    assert counted == {"beside": [], "realtime": [], "quiet": ["realtime\n", "beside\n"]}
    least, usual = (
        [(here / f"{what}-{part}").read_text().strip() for what in ("priority", "weight")]
        for part in ("beside", "realtime")
    )
    assert least[0] == "19"
    assert usual[0] == str(os.getpriority(os.PRIO_PROCESS, 0))
    if Path("/proc/self/autogroup").exists():
        assert least[1] == "19"


@pytest.mark.parametrize("part", ["beside", *PARTS])
def test_nothing_goes_on_behind_tests_that_were_interrupted(tmp_path: Path, part: str) -> None:
    """As by Ctrl-C, which the part in front hears and the session of the other does not."""
    here = project(tmp_path, "tools/test.sh")
    (here / f"hang-{part}").touch()
    called = all_tests(here)
    # What is waited for is under way, and all in front of it over.
    begun = here / ("ended-realtime" if part == "beside" else f"hangs-{part}")
    end = time.monotonic() + PATIENCE_S
    while not begun.exists() and time.monotonic() < end:
        time.sleep(0.01)
    os.killpg(called.pid, signal.SIGINT)
    called.communicate(timeout=PATIENCE_S)
    assert called.returncode == 130
    assert [one for one in ("beside", *PARTS) if is_at_work(here, one)] == []
    assert (here / "pid-quiet").exists() == (part == "quiet")


def test_everything_that_is_made_is_cleared_away() -> None:
    done = subprocess.run(["make", "-n", "clean"], cwd=ROOT, capture_output=True, text=True, check=True)
    command = f"printf '%s\\n' {done.stdout.replace('rm -rf', '')}".replace("\n", " ")
    # Bash makes names of the braces, as it does for make.
    words = subprocess.run(
        ["bash", "-fc", command], capture_output=True, text=True, check=True
    ).stdout.split()
    listed = ["git", "ls-files", "*.gitignore"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert len(files) > 3
    for file in files:
        for line in (ROOT / file).read_text().split():
            made = (Path(file).parent / line.strip("/")).as_posix()
            assert made in words or made in NO_TARGETS, made


NO_TARGETS = {
    *("__pycache__", "*.egg-info", "weir-report.html"),
    # Of these the one that is made is named with its folder.
    "*.so",
    # Of cargo-fuzz, which no target calls.
    *("fuzz/target", "fuzz/artifacts", "fuzz/coverage"),
}
"""What no target of make makes, or has no place of its own."""


def same_records(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """What `tools/same_records.py` says to these words."""
    command = [sys.executable, ROOT / "tools/same_records.py", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_records_of_a_shorter_case_are_made_and_told_from_others(tmp_path: Path) -> None:
    """The file of this case asserts of the 76th second, and its run is of five."""
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        made = same_records("make", folder, "--only", "shaper-asleep")
        assert (made.returncode, made.stderr) == (0, "")
    same = same_records("compare", before, after)
    assert (same.returncode, same.stdout.rsplit(": ", 1)[1]) == (0, "the same\n")

    part = min(after.rglob("latency/*.parquet"))
    rows = pl.read_parquet(part)
    rows.with_columns(pl.col("rtt_ns") + 1).write_parquet(part)
    other = same_records("compare", before, after)
    assert other.returncode == 1
    assert other.stdout.splitlines()[0].endswith(": latency: values of column rtt_ns differ")
