"""Options that help texts, sentences and pages name: the command that they name has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

import weirlab
from test_options import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
CODE = sorted(Path(weirlab.__file__).parent.rglob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
PAGES += sorted(one for one in (ROOT / "examples").rglob("*") if one.is_file())

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def named(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The options that a text names behind `weir COMMAND`, each with the command."""
    for line in re.split(r"[\n`|;]|&&", text.replace("\\\n", " ")):
        for part in re.split(r"(?:^|(?<=[\s'\"(]))weir(?= )", line)[1:]:
            words = part.split()
            path = next((tuple(words[:size]) for size in (2, 1) if tuple(words[:size]) in ALL), None)
            if path is not None:
                # What follows is another program's.
                yield from ((path, option) for option in OPTION.findall(part.partition(" -- ")[0]))


def options(path: tuple[str, ...]) -> set[str]:
    """What a command takes."""
    return {name for one in ALL[path].params for name in (*one.opts, *one.secondary_opts)}


def help_of(path: tuple[str, ...]) -> str:
    return ALL[path].get_help(click.Context(ALL[path], info_name=" ".join(path), terminal_width=500))


def unknown(text: str) -> list[str]:
    """The options in a text that the command does not have with which they stand."""
    return [
        f"weir {' '.join(path)} {option}"
        for path, option in named(text)
        # The options of `weir serve` are those of the compiled part, which are looked at below.
        if path != ("serve",) and option not in options(path) | {"--help", "--version"}
    ]


def test_an_option_is_told_from_those_of_other_programs() -> None:
    text = (
        "run `weir run rrul --repeat 3 --tw 5` | tc --json; weir lab exec --link a -- weir test b --not-there"
    )
    assert unknown(text) == ["weir run --tw", "weir test --not-there"]


@pytest.mark.parametrize("files", [CODE, PAGES], ids=["code", "pages"])
def test_what_is_named_of_a_command_it_has(files: list[Path]) -> None:
    found = {one.name: unknown(one.read_text(encoding="utf-8")) for one in files}
    assert len(files) > 5
    assert not {name: of for name, of in found.items() if of}


def test_what_is_named_of_the_server_it_has(weir_here: Any) -> None:
    there = set(OPTION.findall(weir_here("serve", "--help").stdout))
    every = [pair for one in [*CODE, *PAGES] for pair in named(one.read_text(encoding="utf-8"))]
    assert {option for path, option in every if path == ("serve",)} <= there | {"--version"}


@pytest.mark.parametrize("path", [path for path in ALL if path != ("serve",)], ids=" ".join)
def test_what_a_help_text_names_without_a_command_is_its_own_or_its_siblings(path: tuple[str, ...]) -> None:
    siblings = [other for other in ALL if other[0] == path[0]]
    text = re.sub(r"`weir [^`]*`", "", help_of(path))
    known = {option for other in siblings for option in options(other)} | {"--help", "--version"}
    assert set(OPTION.findall(text)) <= known
