"""The tests of Flent 2.3 by name, and what Weir runs in place of each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from weirlab import _native
from weirlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class FlentTest:
    """A test of Flent.

    Attributes:
        name: its name, such as `tcp_4up`.
        title: what it is, in a line.
        runs: the words that `weir run` is given in place of it, its name first; empty if there is none.
        reason: why there is none; empty if there is one.
        any_hosts: whether it has as many servers as are given; the one that is run in place of it has not.
    """

    name: str
    title: str
    runs: tuple[str, ...]
    reason: str
    any_hosts: bool


@cache
def flent_tests() -> Mapping[str, FlentTest]:
    """All tests of Flent 2.3, by name."""
    text = (resources.files("weirlab") / "data/flent/tests.toml").read_text("utf-8")
    found = tomllib.loads(text)
    return {
        name: FlentTest(
            name=name,
            title=one["title"],
            runs=tuple(one.get("runs", "").split()),
            reason=found["reasons"][one["needs"]] if "needs" in one else "",
            any_hosts=one.get("any_hosts", False),
        )
        for name, one in sorted(found["tests"].items())
    }


def flent_test(name: str) -> FlentTest:
    """The test of Flent of that name.

    Raises:
        UsageError: if Flent has none.
    """
    found = flent_tests().get(name)
    if found is None:
        near = _native.nearest(name, list(flent_tests()))
        rest = f"did you mean `{near}`?" if near else "`weir list flent-tests` names all"
        raise UsageError(f"Flent has no test `{name}`: {rest}")
    return found


def title_of(name: str) -> str:
    """The title of a test of Flent; of one that is not its own the name."""
    known = flent_tests().get(name)
    return known.title if known else name


@dataclass(frozen=True, kw_only=True)
class SeriesOfTest:
    """The series of a test of Flent, under whose names a record is written.

    Attributes:
        series: patterns of the measured ones.
        computed: those that Flent computes: name, pattern of what it is of, and `average`, `sum` or
            `fairness`.
    """

    series: tuple[str, ...]
    computed: tuple[tuple[str, str, str], ...]


@cache
def computed_series() -> Mapping[str, SeriesOfTest]:
    """The series of the tests under whose names records are written, by the name of the test."""
    text = (resources.files("weirlab") / "data/flent/series.toml").read_text("utf-8")
    return {
        name: SeriesOfTest(
            series=tuple(one["series"]),
            computed=tuple((each["name"], each["of"], each["how"]) for each in one.get("computed", [])),
        )
        for name, one in tomllib.loads(text).items()
    }
