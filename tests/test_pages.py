"""The manual page and the shells' completion: made of the commands, and as fresh as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from weirlab.cli import COMMANDS, weir
from weirlab.cli.pages import FOLDER, manual, pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Weir = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("place", pages())
def test_the_files_are_those_of_the_commands(place: str) -> None:
    file = FOLDER / place
    assert file.read_text() == pages()[place], "write them anew: python -m weirlab.cli.pages"


def test_nothing_else_is_installed() -> None:
    found = {str(one.relative_to(FOLDER)) for one in FOLDER.rglob("*") if one.is_file()}
    assert found == set(pages())


def test_the_manual_has_every_command_and_option() -> None:
    text = manual().replace("\\-", "-")
    for name in COMMANDS:
        assert f"\n.SS weir {name}" in text
    for one in options(weir, click.Context(weir)):
        if not one.hidden:
            assert one.opts[-1] in text, one.opts
    assert "--egress" not in text, "a former name"


def options(of: click.Command, context: click.Context) -> Iterator[click.Option]:
    yield from (one for one in of.params if isinstance(one, click.Option))
    if isinstance(of, click.Group):
        for name in of.list_commands(context):
            command = of.get_command(context, name)
            assert command is not None
            yield from options(command, click.Context(command))


def test_the_manual_is_well_formed() -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    words = [groff, "-man", "-Tascii", "-ww", "-z"]
    done = subprocess.run(words, input=manual(), capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("weir ru", {"run"}),
        ("weir run rrul_b", {"rrul_be", "rrul_be_nflows"}),
        ("weir run rrul --link cab", {"cable-140-12", "cable-20-8"}),
        ("weir run rrul --queue fq_c", {"fq_codel"}),
        ("weir run rrul --queue-up simplest", {"simplest"}),
        ("weir run rrul --queue def", {"default"}),
        ("weir run rrul --cc bb", {"bbr"}),
        ("weir plot . --kind thr", {"three-plot"}),
        ("weir list queues cak", {"cake"}),
        ("weir list links vdsl", {"vdsl-100-40"}),
        ("weir list tests pi", {"ping"}),
        ("weir study yurt", {"yurtlab"}),
        ("weir lab exec --queue-down fq_pi", {"fq_pie"}),
        ("weir shape start lo", {"lo"}),
        ("weir shape lo", {"lo"}),
        ("weir shape start lo --rules us", {"usual"}),
        ("weir run rrul --quie", set()),
    ],
)
def test_a_shell_completes_names(
    line: str, wanted: set[str], weir_here: Weir, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in asked(line).items():
        monkeypatch.setenv(name, value)
    assert completed(weir_here()) == wanted


def test_a_shell_asks_a_process_of_its_own() -> None:
    code = "import sys; sys.argv = ['weir']; from weirlab.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | asked("weir run rrul_b"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert completed(done) == {"rrul_be", "rrul_be_nflows"}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("run rrul_b", "rrul_be rrul_be_nflows"),
        ("run rrul --link cab", "cable-140-12 cable-20-8"),
        ("run ./", ""),
    ],
)
def test_bash_has_what_it_was_told(words: str, wanted: str) -> None:
    script = pages()["share/bash-completion/completions/weir"]
    line = f"COMP_WORDS=(weir {words}); COMP_CWORD=$(({len(words.split())}))"
    says = f'compopt() {{ :; }}\n{line}\n_weir_completion weir\necho "${{COMPREPLY[*]}}"'
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{says}"],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.strip() == wanted, done.stderr


def asked(line: str) -> dict[str, str]:
    """The variables by which bash asks for words that complete a line."""
    words = str(len(line.split()) - 1)
    return {"_WEIR_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": words}


def completed(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The words that `weir` told the shell."""
    assert done.returncode == 0, done.stderr
    return {
        text for kind, _, text in (one.partition(",") for one in done.stdout.splitlines()) if kind == "plain"
    }


@pytest.mark.parametrize("place", [place for place in pages() if "completion" in place])
def test_the_scripts_ask_the_command(place: str) -> None:
    assert "_WEIR_COMPLETE" in pages()[place]
