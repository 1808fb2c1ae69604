"""Tests and links by name, scenarios by file, and what is written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from weirlab import _native, forms, reading
from weirlab.errors import UsageError
from weirlab.forms import Model
from weirlab.scenario.base import Spec, read
from weirlab.scenario.files import Files, FilesBelow, told
from weirlab.scenario.models import LinkSpec, ScenarioSpec, TestSpec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ModelT = TypeVar("ModelT", bound=Model)


def shipped_tests() -> list[str]:
    """The names of the shipped tests, sorted."""
    return _native.shipped_tests()


def shipped_links() -> list[str]:
    """The names of the shipped links, sorted."""
    return _native.shipped_links()


def load_test(name: str) -> TestSpec:
    """The shipped test of that name, or the test in that file.

    Raises:
        UsageError: if there is none, or something is wrong with it.
    """
    return TestSpec.known(told(lambda: _native.load_test(name, Files())))


def load_link(name: str) -> LinkSpec:
    """The shipped link of that name, or the link in that file.

    Raises:
        UsageError: if there is none, or something is wrong with it.
    """
    return LinkSpec.known(told(lambda: _native.load_link(name, Files())))


def load_scenario(path: Path) -> ScenarioSpec:
    """The scenario in that file.

    Raises:
        UsageError: if it cannot be read, or something is wrong with it: all of that.
    """
    return read_scenario(_text(path, str(path)), path)


def read_scenario(
    text: str, file: Path, *, place: str | None = None, below: Path | None = None
) -> ScenarioSpec:
    """The scenario that a text is.

    Args:
        text: the scenario, as TOML.
        file: where it lies, or is to lie: what it names is looked for beside that.
        place: what messages call it; None is that file.
        below: the folder below which files that it names must lie; None lets it name any.

    Raises:
        UsageError: all that is wrong with it.
    """
    files = Files() if below is None else FilesBelow(below)
    return ScenarioSpec.known(told(lambda: _native.read_scenario(text, str(file), place or str(file), files)))


def scenario_in(path: Path, *, link: dict[str, Any] | list[str] | None = None) -> ScenarioSpec | None:
    """The scenario in that file; None if the file is that of a test.

    `link` takes the place of the scenario's own, which then need not be there.

    Raises:
        UsageError: if it cannot be read, or something is wrong with the scenario.
    """
    text = _text(path, f"`{path}`")
    said = told(lambda: _native.read_scenario_or_test(text, str(path), link, Files()))
    return None if said is None else ScenarioSpec.known(said)


def scenario_of(written: Mapping[str, Any], file: Path, place: str) -> ScenarioSpec:
    """The scenario that stands in a part of a file.

    Args:
        written: what stands there.
        file: the file, beside which lies what it names.
        place: what a message calls that part.

    Raises:
        UsageError: all that is wrong with it.
    """
    return ScenarioSpec.known(told(lambda: _native.read_scenario_in(written, str(file), place, Files())))


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schemas of files of scenarios, tests and links, by these names."""
    whole = _native.scenario_schema()
    return {
        kind.lower(): {**whole, "title": f"{kind} of Weir", "$ref": f"#/$defs/{kind}Spec"}
        for kind in ("Scenario", "Test", "Link")
    }


def check(
    kind: type[ModelT],
    data: object,
    where: str,
    *,
    text: str | None = None,
    names: Mapping[str, str] | None = None,
) -> ModelT:
    """`data` as a `kind`.

    Args:
        kind: what it should be.
        data: what was written.
        where: what a message calls it.
        text: the file in which a model that is no part of a scenario was written, for the lines.
        names: what a message calls its keys, such as `--load` for `phases.load`.

    Raises:
        UsageError: all that is wrong with it.
    """
    if not issubclass(kind, Spec):
        return forms.check(kind, data, where, text=text, names=names)
    if isinstance(data, kind):
        return data
    return kind.known(read(kind, data, where, names))


def queue_names() -> list[str]:
    """The names that a queue spec may begin with: disciplines, and presets that stand for several."""
    return [one["name"] for one in _native.disciplines()]


def queue_words() -> dict[str, dict[str, Any]]:
    """Of each name that a queue spec may have the words that may follow it.

    `words` are its parameters, and those of a class of it; `holds` is whether another discipline may follow.
    """
    return {
        one["name"]: {
            "words": [word["name"] for word in (*one["params"], *one["class_params"])],
            "holds": one["classful"],
        }
        for one in _native.disciplines()
    }


def congestion_controls() -> list[str]:
    """The names of the congestion controls that loads may have."""
    return [one["name"] for one in _native.congestion_controls()]


def _text(path: Path, where: str) -> str:
    try:
        return reading.read_text(path, reading.MAX_TOML_BYTES)
    except reading.Unreadable as error:
        raise UsageError(f"{where} cannot be read: {error}") from error
