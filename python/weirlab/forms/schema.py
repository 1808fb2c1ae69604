"""JSON Schema of what others write, for editors: of models, with the meaning of every key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weirlab.forms import Model

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(model: type[Model], title: str) -> dict[str, Any]:
    """The JSON Schema of a file that is read as `model`; keys mean what the models' docstrings say."""
    written = model.model_json_schema()
    definitions = written.pop("$defs", {})
    for one in (written, *definitions.values()):
        _tell_keys(one)
    return {"$schema": DIALECT, **written, "title": title, **({"$defs": definitions} if definitions else {})}


def _tell_keys(schema: dict[str, Any]) -> None:
    """Puts the meaning of each key beside it, and leaves out what TOML has not: null."""
    summary, _, attributes = schema.get("description", "").partition("\n\nAttributes:\n")
    schema["description"] = " ".join(summary.split())
    meanings = _meanings(attributes)
    for name, of in schema.get("properties", {}).items():
        _without_null(of)
        of.pop("title", None)
        if name in meanings:
            of["description"] = meanings[name]
    schema.pop("title", None)


def _without_null(schema: dict[str, Any]) -> None:
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    kinds = schema.get("anyOf", [])
    there = [kind for kind in kinds if kind != {"type": "null"}]
    if len(there) == 1 < len(kinds):
        del schema["anyOf"]
        schema.update(there[0])


def _meanings(attributes: str) -> dict[str, str]:
    """Meanings by name, from the section `Attributes` of a docstring."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n {4}(?! )", "\n" + attributes.rstrip())[1:]:
        names, _, meaning = entry.partition(": ")
        for name in names.split(", "):
            # A key that Python has a word for, such as `class`, has an underscore in the model.
            found[name.removesuffix("_")] = " ".join(meaning.split())
    return found
