"""A scenario that a call names as a whole, in code or in a file, and what the call changes of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from weirlab.scenario.catalogue import check, scenario_in
from weirlab.scenario.models import ScenarioSpec


def whole_scenario(given: object, link: Any = None) -> ScenarioSpec | None:
    """The scenario that was given where a test may be; None if it is a test.

    Args:
        given: a scenario, the keys of one, or the path of its file; or a test.
        link: what takes the place of the link of a file, which then need not name one.

    Raises:
        UsageError: if it cannot be read, or something is wrong with the scenario.
    """
    if isinstance(given, ScenarioSpec):
        return given
    if isinstance(given, Mapping):
        # A test has no key `test`.
        keys = given if link is None else {**given, "link": link}
        return check(ScenarioSpec, keys, "scenario") if "test" in given else None
    if not isinstance(given, str) or not given.endswith(".toml"):
        return None
    is_file = False
    # A name with a zero byte in it, or of thousands of letters, is that of no file.
    with suppress(OSError, ValueError):
        is_file = Path(given).is_file()
    return scenario_in(Path(given), link=link) if is_file else None


def changed(scenario: ScenarioSpec, said: Mapping[str, Any]) -> ScenarioSpec:
    """The scenario with these keys in place of its own, as options of the command line take their place.

    Of tables, such as `phases`, single keys are replaced.

    Raises:
        UsageError: if something is wrong with it then.
    """
    base = scenario.written()
    keys = {
        key: base.get(key, {}) | dict(value) if key in IN_PARTS and isinstance(value, Mapping) else value
        for key, value in said.items()
    }
    both = base | keys
    if "cc" in said and "congestion_control" not in said.get("tcp", {}):
        # What all loads have is given anew.
        both["tcp"] = {
            key: value for key, value in both.get("tcp", {}).items() if key != "congestion_control"
        }
    return check(ScenarioSpec, both, "scenario")


IN_PARTS = frozenset({"phases", "parameters", "tcp", "sampling"})
"""Keys that are tables of settings of their own."""
