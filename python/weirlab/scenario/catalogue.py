"""Tests and links by name: those that are shipped, and files."""

from __future__ import annotations

import os
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from weirlab import _native, reading
from weirlab.errors import UsageError
from weirlab.scenario.faults import faults, told
from weirlab.scenario.models import LinkSpec, Model, ScenarioSpec, TestSpec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

SpecT = TypeVar("SpecT", bound=Model)


def shipped_tests() -> list[str]:
    """The names of the shipped tests, sorted."""
    return _names("tests")


def shipped_links() -> list[str]:
    """The names of the shipped links, sorted."""
    return _names("links")


def load_test(name: str) -> TestSpec:
    """The shipped test of that name, or the test in that file."""
    return _load(TestSpec, "test", "tests", name)


def load_link(name: str) -> LinkSpec:
    """The shipped link of that name, or the link in that file."""
    return _load(LinkSpec, "link", "links", name)


def load_scenario(path: Path) -> ScenarioSpec:
    """The scenario in that file."""
    return _read(ScenarioSpec, path, str(path))


def queue_names() -> list[str]:
    """The names that a queue set-up may begin with: disciplines, and presets that stand for several."""
    return [one["name"] for one in _native.disciplines()]


def congestion_controls() -> list[str]:
    """The names of the congestion controls that loads may have."""
    return [one["name"] for one in _native.congestion_controls()]


def load_trace(name: str) -> str:
    """The text of the shipped recording of that name, or of the recording in that file."""
    shipped = {file.name: file for file in (_data() / "traces").iterdir()}
    source = shipped.get(name, Path(name))
    try:
        return reading.read_text(source, reading.MAX_TRACE_BYTES)
    except reading.Unreadable as error:
        raise UsageError(f"trace `{name}` is neither shipped nor a file that can be read: {error}") from error


def _load(kind: type[SpecT], word: str, folder: str, name: str) -> SpecT:
    shipped = _data() / folder / f"{name}.toml"
    if name in _names(folder):
        return _read(kind, shipped, f"{word} `{name}`")
    if name.endswith(".toml"):
        return _read(kind, Path(name), name)
    if "/" in name or os.path.isfile(name):  # noqa: PTH113 - a name may be too long for a Path
        raise UsageError(f"`{name}` is not a .toml file: write the name of a {word} or a path to one in TOML")
    known = _names(folder)
    near = get_close_matches(name, known, 1)
    meant = f", did you mean `{near[0]}`?" if near else ""
    raise UsageError(f"unknown {word} `{name}`{meant} (known: {', '.join(known)}; or a path to a .toml file)")


def _read(kind: type[SpecT], source: Traversable, where: str) -> SpecT:
    data, text = read_toml(source, where)
    return check(kind, data, where, text=text)


def read_toml(source: Traversable, where: str) -> tuple[dict[str, Any], str]:
    """Reads a TOML file: its values, and its text.

    Raises:
        UsageError: if it cannot be read.
    """
    try:
        text = reading.read_text(source, reading.MAX_TOML_BYTES)
        return reading.parse_toml(text), text
    except reading.Unreadable as error:
        raise UsageError(f"{where} cannot be read: {error}") from error


def check(
    kind: type[SpecT],
    data: object,
    where: str,
    *,
    text: str | None = None,
    names: Mapping[str, str] | None = None,
) -> SpecT:
    """`data` as a `kind`.

    Args:
        kind: what it should be.
        data: what was written.
        where: what a message calls it.
        text: the file in which it was written, of which a message tells the lines.
        names: what a message calls its keys, such as `--load` for `phases.load`.

    Raises:
        UsageError: all that is wrong with it.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        found = faults(error, kind, data)
        raise UsageError(told(where, found, text, names or {})) from error


def _names(folder: str) -> list[str]:
    files = (_data() / folder).iterdir()
    return sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml"))


def _data() -> Traversable:
    return resources.files("weirlab") / "data"
