"""Settings of a shaper, as the compiled part reads them (`docs/shape.md` has the keys)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.errors import UsageError
from weirlab.scenario.units import time_ns
from weirlab.shape.asked import asked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def read_config(file: Path) -> dict[str, Any]:
    """What a TOML file says of a shaper's settings, which is checked.

    Raises:
        UsageError: if it cannot be read, or something else stands in it.
    """
    return asked(lambda: _native.read_shaper_config(file))


def settings_of(
    device: str,
    given: Mapping[str, Any],
    config: Path | None = None,
    *,
    log: Path | None = None,
    is_open: bool = False,
) -> dict[str, Any]:
    """The settings of the shaper of `device`.

    Args:
        device: the interface.
        given: settings that stand before those of the file.
        config: TOML file of settings.
        log: file for every decision.
        is_open: lets everything pass until it is told to shape.

    Raises:
        UsageError: if something of it cannot be: which, and what is allowed.
        ShapeError: if a name cannot be looked up for now.
    """
    text = asked(lambda: _native.read_shaper_settings(device, config, dict(given)))
    settings: dict[str, Any] = json.loads(text)
    return settings | {"open": is_open, "log": None if log is None else str(log.absolute())}


def time_of(name: str, written: str) -> int:
    """A time from a second to a day, in nanoseconds.

    Raises:
        UsageError: if it is none.
    """
    try:
        nanoseconds = time_ns(written)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
    if nanoseconds < 1_000_000_000:
        raise UsageError(f"{name} {written}: write 1s or more")
    if nanoseconds > 86_400_000_000_000:
        raise UsageError(f"{name} {written}: write 86400s or less")
    return nanoseconds


def host_and_port(written: str) -> tuple[str, int]:
    """Where a `weir serve` is: `HOST`, `HOST:PORT` or `[IPV6]:PORT`.

    Raises:
        UsageError: if it is none of these.
    """
    return asked(lambda: _native.host_and_port(written))
