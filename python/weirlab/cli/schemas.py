"""The JSON Schemas of the kinds of TOML file that commands read."""

from __future__ import annotations

from typing import Any


def described_schemas() -> list[dict[str, Any]]:
    """Every schema, with its name and where such a file is given."""
    from weirlab import _native  # noqa: PLC0415 - names alone need none of this
    from weirlab.scenario.catalogue import schemas  # noqa: PLC0415

    found = {**schemas(), **_native.shaper_schemas()}
    return [{"name": name, "summary": SCHEMAS[name], "schema": schema} for name, schema in found.items()]


SCHEMAS = {
    "scenario": "what is run: test, link, queues to compare (`weir run FILE`)",
    "test": "loads and probes on a time axis",
    "link": "hops with queues and lines (`--link FILE`)",
    "rules": "priority rules (`weir shape --rules FILE`)",
    "shaper": "settings of a shaper (`weir shape --config FILE`)",
}
"""Kinds of files by the names of their schemas, and where they are given."""
