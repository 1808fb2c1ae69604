"""Tests and links by name, scenarios by file, and what is written in Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from weirlab import _native, forms, reading
from weirlab.errors import UsageError
from weirlab.forms import Model
from weirlab.scenario.base import Spec, read
from weirlab.scenario.models import LinkSpec, ScenarioSpec, TestSpec
from weirlab.scenario.plain import load_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ModelT = TypeVar("ModelT", bound=Model)
ResultT = TypeVar("ResultT")


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
    return read_scenario(_text(path, str(path)), str(path))


def read_scenario(text: str, place: str, *, below: Path | None = None) -> ScenarioSpec:
    """The scenario that a text is.

    Args:
        text: the scenario, as TOML.
        place: where it lies, or is to lie, for the messages.
        below: the folder below which files that it names must lie; None lets it name any.

    Raises:
        UsageError: all that is wrong with it.
    """
    files = Files() if below is None else FilesBelow(below)
    return ScenarioSpec.known(told(lambda: _native.read_scenario(text, place, files)))


def scenario_in(path: Path, *, link: dict[str, Any] | None = None) -> ScenarioSpec | None:
    """The scenario in that file; None if the file is that of a test.

    `link` takes the place of the scenario's own, which then need not be there.

    Raises:
        UsageError: if it cannot be read, or something is wrong with the scenario.
    """
    text = _text(path, f"`{path}`")
    said = told(lambda: _native.read_scenario_or_test(text, str(path), link, Files()))
    return None if said is None else ScenarioSpec.known(said)


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


class Files:
    """The files around, as the compiled part asks for them, with the limits of `weirlab.reading`.

    Attributes:
        traces: texts of the recordings that were asked for.
    """

    def __init__(self) -> None:
        """Has read nothing yet."""
        self.traces: dict[str, str] = {}
        self._rates_bps: dict[str, int] = {}

    def is_file(self, name: str) -> bool:
        """Whether there is a regular file of that name."""
        try:
            return Path(name).is_file()
        except (OSError, ValueError):
            # The name is too long, or has a zero byte in it.
            return False

    def read(self, name: str) -> str:
        """The text of a TOML file.

        Raises:
            Unreadable: if it cannot be read.
        """
        return reading.read_text(Path(name), reading.MAX_TOML_BYTES)

    def trace_rate_bps(self, name: str) -> int:
        """The mean rate of a recording.

        Raises:
            UsageError: if it cannot be read.
            NativeError: if it is none.
        """
        if name not in self._rates_bps:
            self.traces[name] = load_trace(name)
            packets, period_ms = _native.check_trace(name, self.traces[name])
            self._rates_bps[name] = round(packets * 1500 * 8e3 / period_ms)
        return self._rates_bps[name]


class FilesBelow(Files):
    """The files below a folder: for who must not open others."""

    def __init__(self, folder: Path) -> None:
        """Has read nothing yet."""
        super().__init__()
        self._folder = folder.resolve()

    def is_file(self, name: str) -> bool:
        """Whether there is a regular file of that name below the folder."""
        return super().is_file(name) and Path(name).resolve().is_relative_to(self._folder)

    def read(self, name: str) -> str:
        """The text of a TOML file below the folder.

        Raises:
            Unreadable: if it is not there, or cannot be read.
        """
        if not self.is_file(name):
            raise reading.Unreadable(f"it is no file below {self._folder}")
        return super().read(name)

    def trace_rate_bps(self, name: str) -> int:
        """The mean rate of a recording that is shipped or below the folder.

        Raises:
            UsageError: if it is elsewhere, or cannot be read.
            NativeError: if it is none.
        """
        if super().is_file(name) and not self.is_file(name):
            raise UsageError(f"trace `{name}`: it is no file below {self._folder}")
        return super().trace_rate_bps(name)


def told(call: Callable[[], ResultT]) -> ResultT:
    """The result of a call of the compiled part.

    Raises:
        UsageError: if it refuses what it was given.
    """
    try:
        return call()
    except _native.NativeError as error:
        raise UsageError(str(error)) from error


def _text(path: Path, where: str) -> str:
    try:
        return reading.read_text(path, reading.MAX_TOML_BYTES)
    except reading.Unreadable as error:
        raise UsageError(f"{where} cannot be read: {error}") from error
