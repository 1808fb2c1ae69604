"""What a command loads: most of the time until it answers goes into modules.

Each command runs in a process of its own, and may load only the packages that its row here names.
"""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING

import polars as pl
import pytest

from weirlab import _native
from weirlab.loading import BLAS_THREADS, asked_for, in_one_thread, uncollected
from weirlab.ui import progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weirlab.record import Record

RUN = """
import sys
from weirlab.cli import weir
try:
    weir(sys.argv[1:], standalone_mode=False)
except SystemExit as end:
    assert not end.code, end.code
loaded = {name.partition(".")[0] for name in sys.modules if getattr(sys.modules[name], "__spec__", None)}
inner = {name for name in sys.modules if name.startswith("weirlab.")}
print(*sorted(loaded - set(sys.stdlib_module_names)), "/", *sorted(inner), file=sys.stderr)
"""

BEFORE_THE_RUN = """
import sys
from weirlab import _native
check = _native.check_simulation
def checked(scenario):
    print(*{name.partition(".")[0] for name in sys.modules})
    check(scenario)
_native.check_simulation = checked
from weirlab.cli import weir
weir(sys.argv[1:], standalone_mode=False)
"""

DRAWN = """
import sys
from pathlib import Path
from weirlab.plots import draw
from weirlab.record import open_record
record = open_record(sys.argv[1])
for kind in ("three-plot", "box", "cdf", "ping"):
    draw(kind, [record], Path(sys.argv[2]) / f"{kind}.png", whole=[record])
apart = ("polars", "pydantic", "matplotlib.pyplot", "matplotlib.style")
print(*(name for name in apart if name in sys.modules))
"""

OF_PYTHON = {
    "_distutils_hack",
    "_sysconfigdata__linux_aarch64-linux-gnu",
    "_sysconfigdata__linux_x86_64-linux-gnu",
    "_virtualenv",
    "sitecustomize",
    "usercustomize",
}
"""Modules of the interpreter and of virtual environments, which are loaded before any command."""

TABLES = {"click", "numpy", "rich", "typing_extensions"}
"""What reads records and prints tables of them: figures of a whole run are made of arrays."""

FRAMES = {"polars"}
"""What makes data frames."""

MODELS = {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}
"""What scenarios are made with."""

COMMANDS: dict[str, tuple[list[str], set[str]]] = {
    "the help": (["--help"], {"click"}),
    "the version": (["--version"], {"click"}),
    "the help of a command": (["show", "--help"], TABLES),
    "show": (["show", "RECORD"], TABLES),
    "show --json": (["show", "--json", "RECORD"], TABLES),
    "compare": (["compare", "RECORD"], TABLES),
    "note": (["note", "RECORD"], TABLES | MODELS),
    "run": (["run", "ping", "--load", "1s", "--no-charts", "--out", "OUT"], TABLES),
    "list": (["list", "queues"], TABLES | MODELS | FRAMES),
    "the help of lab exec": (["lab", "exec", "--help"], {"click", "rich"}),
    "the help of ping": (["ping", "--help"], TABLES),
    "the help of test": (["test", "--help"], TABLES | MODELS | FRAMES),
    "report": (["report", "RECORD", "--out", "PAGE"], TABLES | MODELS | FRAMES),
}
"""Lines of commands, and the packages of others that they may load."""


def loaded(words: list[str]) -> tuple[set[str], set[str]]:
    """The packages of others, and the modules of Weir, that a command has loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    packages, _, inner = done.stderr.splitlines()[-1].partition("/")
    of_polars = {name for name in packages.split() if name.startswith("_polars_runtime")}
    return set(packages.split()) - {"weirlab"} - OF_PYTHON - of_polars, set(inner.split())


def test_the_version_is_that_of_the_package() -> None:
    assert _native.version() == metadata.version("weirlab")


@pytest.mark.parametrize("words", [["show", "RECORD"], ["run", "ping", "--no-charts", "--out", "OUT"]])
def test_what_only_other_commands_need_is_not_loaded(
    words: list[str], rrul: list[Record], tmp_path: Path
) -> None:
    places = {"RECORD": str(rrul[0].path), "OUT": str(tmp_path / "out")}
    apart = ("concurrent.futures", "email", "importlib.metadata", "rich.progress", "subprocess", "tomllib")
    code = RUN + f"print(*[one for one in {apart} if one in sys.modules], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, *(places.get(word, word) for word in words)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr.splitlines()[-1] == ""
    assert not {"weirlab.stats.agreeing", "weirlab.worlds.net"} & set(done.stderr.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_loads_the_packages_of_its_row_and_no_other(
    name: str, rrul: list[Record], tmp_path: Path
) -> None:
    words, may = COMMANDS[name]
    places = {"RECORD": str(rrul[0].path), "OUT": str(tmp_path / "out"), "PAGE": str(tmp_path / "page.html")}
    packages, _ = loaded([places.get(word, word) for word in words])
    assert packages <= may


def test_who_shows_a_record_loads_no_models_scores_charts_or_worlds(rrul: list[Record]) -> None:
    _, inner = loaded(["show", str(rrul[0].path)])
    assert "weirlab.record.reader" in inner
    apart = ("forms", "scenario.models", "scores", "plots", "worlds", "ui.progress", "viewer")
    assert [name for name in inner if name.removeprefix("weirlab.").startswith(apart)] == []


def test_a_simulation_waits_for_none_of_what_shows_its_figures(tmp_path: Path) -> None:
    words = ["run", "ping", "--load", "1s", "--no-charts", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", BEFORE_THE_RUN, *words],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    packages = set(done.stdout.splitlines()[0].split())
    assert "weirlab" in packages
    assert packages.isdisjoint({"numpy", "polars", "pydantic", "rich"})


def test_a_table_of_an_older_weir_is_read_with_polars(rrul: list[Record], tmp_path: Path) -> None:
    older = tmp_path / "older"
    shutil.copytree(rrul[0].path, older)
    manifest = json.loads((older / "manifest.json").read_text())
    del manifest["tables"]
    (older / "manifest.json").write_text(json.dumps(manifest))
    part = older / "latency" / "part-000000.parquet"
    pl.read_parquet(part).write_parquet(part, compression="zstd")
    packages, _ = loaded(["show", str(older)])
    assert packages <= TABLES | FRAMES
    assert packages >= FRAMES


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "variables", "shown"),
    [
        (_Terminal, {}, True),
        (_Terminal, {"NO_COLOR": "1"}, True),
        (_Terminal, {"TTY_COMPATIBLE": "0"}, False),
        (_Terminal, {"FORCE_COLOR": ""}, False),
        (io.StringIO, {}, False),
        (io.StringIO, {"NO_COLOR": "1"}, False),
        (io.StringIO, {"FORCE_COLOR": "1"}, True),
        (io.StringIO, {"TTY_COMPATIBLE": "1"}, True),
        (lambda: None, {}, False),
    ],
)
def test_a_bar_is_there_where_rich_sees_a_terminal(
    stream: Callable[[], io.StringIO | None],
    variables: dict[str, str],
    shown: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", stream())
    assert progress.seen() == shown


def test_there_is_no_bar_on_a_stream_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    with progress.waiting("for nothing", quiet=False):
        assert not progress.seen()


def test_names_are_loaded_when_they_are_asked_for_and_then_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    package = type(sys)("package")
    monkeypatch.setitem(sys.modules, "package", package)
    get = asked_for("package", {"json": ["dumps"]})
    with pytest.raises(AttributeError, match="module `package` has no attribute `loads`"):
        get("loads")
    assert get("dumps")([1]) == "[1]"  # type: ignore[operator]
    assert package.dumps([2]) == "[2]"


def test_numpy_of_a_command_has_one_thread_and_what_is_begun_later_as_many_as_it_will(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(BLAS_THREADS, raising=False)
    with in_one_thread():
        assert os.environ[BLAS_THREADS] == "1"
    assert BLAS_THREADS not in os.environ
    monkeypatch.setenv(BLAS_THREADS, "3")
    with in_one_thread():
        assert os.environ[BLAS_THREADS] == "3"
    assert os.environ[BLAS_THREADS] == "3", "the user said so"


def test_a_command_that_reads_records_is_one_thread(rrul: list[Record]) -> None:
    code = RUN + "print(len(list(__import__('pathlib').Path('/proc/self/task').iterdir())), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, "show", str(rrul[0].path)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env={name: value for name, value in os.environ.items() if name != BLAS_THREADS},
    )
    assert done.stderr.splitlines()[-1] == "1"


def test_nothing_is_collected_while_modules_are_loaded() -> None:
    assert gc.isenabled()
    frozen = gc.get_freeze_count()
    try:
        with uncollected():
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() > frozen
        gc.disable()
        with uncollected():
            pass
        assert not gc.isenabled(), "it was off before"
    finally:
        gc.enable()
        gc.unfreeze()


def test_the_charts_of_a_run_load_neither_frames_nor_screens_nor_styles(
    rrul: list[Record], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRAWN, str(rrul[0].path), str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == []
    assert len(list(tmp_path.iterdir())) == 4
