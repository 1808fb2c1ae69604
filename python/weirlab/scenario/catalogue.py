"""Tests and links by name: those that are shipped, and files."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from weirlab.errors import UsageError
from weirlab.scenario.models import LinkSpec, Model, ScenarioSpec, TestSpec

if TYPE_CHECKING:
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


def load_trace(name: str) -> str:
    """The text of the shipped recording of that name, or of the recording in that file."""
    shipped = _data() / "traces" / name
    source = shipped if _is_plain(name) and shipped.is_file() else Path(name)
    try:
        return source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"trace `{name}` is neither shipped nor a file that can be read: {_reason(error)}"
        ) from error


def _load(kind: type[SpecT], word: str, folder: str, name: str) -> SpecT:
    shipped = _data() / folder / f"{name}.toml"
    if _is_plain(name) and shipped.is_file():
        return _read(kind, shipped, f"{word} `{name}`")
    path = Path(name)
    if path.suffix == ".toml":
        return _read(kind, path, name)
    known = ", ".join(_names(folder))
    raise UsageError(f"unknown {word} `{name}` (known: {known}; or a path to a .toml file)")


def _read(kind: type[SpecT], source: Traversable, where: str) -> SpecT:
    return check(kind, read_toml(source, where), where)


def read_toml(source: Traversable, where: str) -> dict[str, Any]:
    """What a TOML file says.

    Raises:
        UsageError: if it cannot be read.
    """
    try:
        return tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {_reason(error)}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{where} is not TOML: {error}") from error


def check(kind: type[SpecT], data: object, where: str) -> SpecT:
    """`data` as a `kind`, or one sentence about the first thing that is wrong with it."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{where}: {first_problem(error)}") from error


def first_problem(error: ValidationError) -> str:
    """The first problem that pydantic found, as one sentence with the place.

    Where several kinds of value are allowed, pydantic tells what is wrong by each of them: the deepest
    problem is that of the kind that was meant.
    """
    problem = max(error.errors(include_url=False), key=lambda one: len(one["loc"]))
    place = ".".join(str(part) for part in problem["loc"] if not _is_branch(part))
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        message = "unknown key"
    elif problem["type"] == "missing":
        message = "this key is missing"
    elif not problem["msg"].startswith("Value error"):
        message = f"{problem['input']!r}: {message[0].lower()}{message[1:]}"
    return f"{place}: {message}" if place else message


def _is_branch(part: str | int) -> bool:
    """Whether a part of a place is no key but names the kind of value that was tried."""
    return isinstance(part, str) and (
        part[:1].isupper() or part in {"str", "int", "constrained-str"} or "[" in part
    )


def _names(folder: str) -> list[str]:
    files = (_data() / folder).iterdir()
    return sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml"))


def _data() -> Traversable:
    return resources.files("weirlab") / "data"


def _is_plain(name: str) -> bool:
    return "/" not in name and name not in {"", ".", ".."}


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
