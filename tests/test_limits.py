"""What others give is bounded before it is read, and what is too much is refused in one sentence."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live import PATIENCE_S
from weirlab import reading
from weirlab.errors import (
    MAX_SENTENCE_CHARS,
    MAX_VALUE_CHARS,
    UsageError,
    WriteError,
    cannot_write,
    sentence,
)
from weirlab.reading import Unreadable, parse_toml, read_bytes, read_text
from weirlab.scenario import ScenarioSpec, load_link, load_scenario, load_test, resolve
from weirlab.scenario.catalogue import check
from weirlab.scenario.plain import load_trace
from weirlab.shape.rules import read_rules
from weirlab.shape.settings import read_config
from weirlab.stats import Assertion

if TYPE_CHECKING:
    from collections.abc import Callable

READERS: dict[str, Callable[[Path], object]] = {
    "a scenario": load_scenario,
    "a link": lambda file: load_link(str(file)),
    "a test": lambda file: load_test(str(file)),
    "a trace": lambda file: load_trace(str(file)),
    "rules": lambda file: read_rules(str(file)),
    "settings of a shaper": read_config,
}
every_reader = pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())


@every_reader
def test_devices_and_pipes_are_not_read(read: Callable[[Path], object], tmp_path: Path) -> None:
    device = tmp_path / "device.toml"
    device.symlink_to("/dev/zero")
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    for file, kind in ((device, "device"), (pipe, "pipe"), (folder, "folder")):
        with pytest.raises(UsageError, match=f"it is a {kind}, and no regular file"):
            read(file)


@every_reader
def test_what_is_too_long_is_not_read(read: Callable[[Path], object], tmp_path: Path) -> None:
    long = tmp_path / "long.toml"
    with long.open("wb") as file:
        file.truncate(20 << 30)
    with pytest.raises(UsageError, match=r"it has more than \d+ MiB"):
        read(long)


def test_a_file_of_the_greatest_length_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 100)
    assert len(read_bytes(file, 100)) == 100
    with pytest.raises(Unreadable):
        read_bytes(file, 99)


def test_lines_of_other_systems_are_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"1\r\n2\r\n")
    assert read_text(file, 100) == "1\n2\n"


def test_why_a_text_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"abc\xff")
    with pytest.raises(Unreadable, match="it is not UTF-8: invalid start byte at byte 3"):
        read_text(file, 100)
    with pytest.raises(Unreadable, match="No such file"):
        read_text(tmp_path / "gone", 100)
    with pytest.raises(Unreadable, match="zero byte"):
        read_text(Path("a\0b"), 100)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = " + "[" * 100_000, "its brackets are nested too deep"),
        ("a = " + "{a = " * 100_000, "its brackets are nested too deep"),
        ("x = 1\n" + "a." * 50_000 + "a = 1", "line 2: a key has more than 32 parts"),
        ("[" + "a." * 50_000 + "a]", "line 1: a key has more than 32 parts"),
        ('"a b" . ' * 50_000 + "a = 1", "line 1: a key has more than 32 parts"),
        ("a = " + "9" * 5000, "it is not TOML: Exceeds the limit"),
        ("a = ", "it is not TOML: Invalid value"),
    ],
)
def test_hostile_toml_is_refused(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=re.escape(why)):
        parse_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        "a = [" + "1.5, " * 5000 + "]",
        "# " + "." * 5000,
        "a = '''\n" + "end.\n" * 5000 + "'''",
        ".".join("a" * 32) + " = 1",
    ],
)
def test_usual_toml_is_not(text: str) -> None:
    assert parse_toml(text) is not None


@pytest.mark.parametrize("filling", ["a", '"', "'\"", "a.", "a .", '"a".', ".", "a-", "[", "#.", "é."])
def test_looking_for_long_keys_takes_no_time(filling: str) -> None:
    """A million signs: an expression that goes back for each of them would take hours."""
    reading._LONG_KEY.search(filling * (1_000_000 // len(filling)))


def test_a_trace_is_checked_before_anything_runs(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    for text, why in (
        ("1\n2\nx\n", "line 3: `x` is not a whole number"),
        ("", "is empty"),
        ("0\n", "lasts 0 ms"),
    ):
        trace.write_text(text)
        line = {"name": "line", "trace": str(trace)}
        link = {"name": "l", "title": "l", "up": [line], "down": [line]}
        with pytest.raises(UsageError, match=why):
            resolve(check(ScenarioSpec, {"test": "ping", "link": link}, "scenario"))


def test_a_long_trace_takes_little_memory(tmp_path: Path) -> None:
    """The longest that is read, within 1.5 GB of addresses: as a list of numbers of Python it has 4."""
    trace = tmp_path / "trace"
    with trace.open("w") as file:
        for start in range(0, 8_300_000, 100_000):
            file.write("".join(f"{n}\n" for n in range(start, start + 100_000)))
    assert trace.stat().st_size < reading.MAX_TRACE_BYTES
    link = tmp_path / "link.toml"
    line = f'name = "line"\ntrace = "{trace}"\n'
    link.write_text(f'name = "l"\ntitle = "l"\nsource = "s"\n[[up]]\n{line}[[down]]\n{line}')
    words = ["run", "ping", "--link", str(link), "--idle", "1s", "--load", "1s", "--cooldown", "1s"]
    # In between, so that the memory of no other child of this process counts.
    told = "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
    told += "print('KB', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
    weir = [sys.executable, "-m", "weirlab", *words, "--shaper", "auto", "--no-charts", "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-c", told, *weir],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=os.environ | {"POLARS_MAX_THREADS": "2", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.rpartition("KB")[2]) < 1_500_000


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "(" * 400 + "1" + ")" * 400 + " < 2",
        "1" + " + 1" * 5000 + " < 2",
        "1" + " - 1" * 200 + " < 2",
    ],
)
def test_an_assertion_that_is_too_long_or_too_deep_is_refused(text: str) -> None:
    if len(text) < 1000 and "(" not in text:
        assert Assertion(text).text == text
        return
    with pytest.raises(UsageError, match=r"write 1000 or fewer|brackets stand within one another") as refused:
        Assertion(text)
    assert len(str(refused.value)) < 1000


def test_what_an_error_quotes_is_short_and_cannot_steer_a_terminal() -> None:
    assert sentence("link `abc`: unknown") == "link `abc`: unknown"
    assert sentence("\x1b[31m\u202eevil\x07") == "\\x1b[31m\\u202eevil\\x07"
    quoted = "x" * MAX_VALUE_CHARS
    assert sentence(f"unknown link `{quoted}`: no") == f"unknown link `{quoted}`: no"
    long = sentence(f"unknown link `{'x' * 3_000_000}` (known: `a`, `b`)")
    assert long == f"unknown link `{'x' * 200}... (3000000 characters)` (known: `a`, `b`)"
    assert len(sentence("x" * 3_000_000)) < MAX_SENTENCE_CHARS
    with pytest.raises(UsageError) as refused:
        load_link("x" * 3_000_000)
    assert len(str(refused.value)) < 1000


def test_a_wrong_name_is_wrong_input_and_a_full_disk_is_a_failure() -> None:
    for error, kind in (
        (PermissionError(13, "Permission denied"), UsageError),
        (NotADirectoryError(20, "Not a directory"), UsageError),
        (OSError(28, "No space left on device"), WriteError),
        (OSError(30, "Read-only file system"), WriteError),
        (OSError(27, "File too large"), WriteError),
    ):
        told = cannot_write("`o` cannot take records", error)
        assert type(told) is kind
        assert str(told) == f"`o` cannot take records: {error.strerror}"
