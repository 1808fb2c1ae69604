"""The JSON Schemas of the kinds of TOML file that commands read."""

from __future__ import annotations

from typing import Any


def described_schemas() -> list[dict[str, Any]]:
    """Every schema, with its name and where such a file is given."""
    from weirlab.forms.schema import schema_of  # noqa: PLC0415 - names alone need none of this
    from weirlab.scenario.catalogue import schemas  # noqa: PLC0415
    from weirlab.shape.rules import RulesSpec  # noqa: PLC0415
    from weirlab.shape.settings import ShapeWords  # noqa: PLC0415

    found = {
        **schemas(),
        "rules": schema_of(RulesSpec, "Priority rules of a shaper of Weir"),
        "shaper": schema_of(ShapeWords, "Settings of a shaper of Weir"),
    }
    return [{"name": name, "summary": SCHEMAS[name], "schema": schema} for name, schema in found.items()]


SCHEMAS = {
    "scenario": "what is run: test, link, queues to compare (`weir run FILE`)",
    "test": "loads and probes on a time axis",
    "link": "hops with queues and lines (`--link FILE`)",
    "rules": "priority rules (`weir shape --rules FILE`)",
    "shaper": "settings of a shaper (`weir shape --config FILE`)",
}
"""Kinds of files by the names of their schemas, and where they are given."""
