"""The types of scenarios in Python, as the compiled part declares them; run, it writes them."""

from __future__ import annotations

import keyword
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirlab import _native

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE = Path(__file__).parent.parent / "python/weirlab/scenario/models.py"

HEAD = '''"""Tests, links and scenarios, as types of Python.

Made of the declarations in `crates/scenario` by `make docs`: change them there. The compiled part reads what
is written, and knows the bounds; `docs/scenarios.md` describes the files.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weirlab.scenario.base import Spec
from weirlab.scenario.plain import Direction
from weirlab.scenario.quantities import (
    {units},
)
'''


def models() -> str:
    """The text of the module."""
    definitions: dict[str, Any] = _native.scenario_schema()["$defs"]
    units = [name for name, schema in definitions.items() if schema["type"] != "object"]
    classes = [_class(name, schema, definitions) for name, schema in definitions.items() if name not in units]
    return "\n\n".join([HEAD.format(units=",\n    ".join(sorted(units))), *classes])


def _class(name: str, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    head, _, more = schema["description"].partition(". ")
    lines = [f"class {name}(Spec):", *_wrapped(f'"""{head.removesuffix(".")}.', "    ")]
    if more:
        lines += ["", *_wrapped(more, "    ")]
    lines += ["", "    Attributes:"]
    for key, of in schema["properties"].items():
        lines += _wrapped(f"{_attribute(key)}: {_lower(of['description'])}", "        ", "            ")
    lines += ['    """', ""]
    for key, of in schema["properties"].items():
        lines.append(f"    {_attribute(key)}: {_field(key, of, schema['required'], definitions)}")
    return "\n".join(lines) + "\n"


def _field(key: str, of: Mapping[str, Any], required: list[str], definitions: Mapping[str, Any]) -> str:
    kind = _type(of)
    value = None
    if key not in required and "default" not in of:
        kind, value = f"{kind} | None", "None"
    elif "default" in of:
        value = _default(of["default"], of, definitions)
    if _attribute(key) != key:
        return f'Annotated[{kind}, Field(alias="{key}")]' + ("" if value is None else f" = {value}")
    return kind if value is None else f"{kind} = {value}"


def _type(of: Mapping[str, Any]) -> str:
    if "$ref" in of:
        return str(of["$ref"]).rpartition("/")[2]
    kinds = " | ".join(_type(one) for one in [*of.get("oneOf", []), *of.get("anyOf", [])])
    if "discriminator" in of:
        return f'Annotated[{kinds}, Field(discriminator="{of["discriminator"]["propertyName"]}")]'
    if "enum" in of:
        words = ", ".join(f'"{word}"' if isinstance(word, str) else str(word) for word in of["enum"])
        return "Direction" if words == '"up", "down"' else f"Literal[{words}]"
    if kinds or of["type"] == "array":
        return kinds or f"list[{_type(of['items'])}]"
    if of["type"] == "object":
        return f"dict[str, {_type(of['additionalProperties'])}]"
    return PLAIN[of["type"]]


def _default(value: Any, of: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """A default, which the schema has as people write it, in base units."""
    named = definitions.get(_type(of), {}) if "$ref" in of else {}
    if isinstance(value, dict):
        return f"{_made(_type(of), value)}" if named else repr(value)
    if isinstance(value, list):
        items = next(one["items"] for one in (of, *of.get("anyOf", [])) if "items" in one)
        parts = [_default(part, items, definitions) for part in value]
        several = len(", ".join(parts)) > MAX_LIST_CHARS
        return (
            "[\n" + "".join(f"        {part},\n" for part in parts) + "    ]"
            if several
            else f"[{', '.join(parts)}]"
        )
    if isinstance(value, str):
        readers = {"time": _native.read_time, "rate": _native.read_rate}
        if named.get("format") in readers:
            return f"{readers[named['format']](value):_}"
        return f'"{value}"'
    return repr(value)


def _made(kind: str, value: Mapping[str, Any]) -> str:
    if not value:
        return f"{kind}()"
    keys = ", ".join(f'"{key}": "{said}"' for key, said in value.items())
    return f"{kind}.model_validate({{{keys}}})"


def _attribute(key: str) -> str:
    return ATTRIBUTES[key] if keyword.iskeyword(key) else key


def _lower(text: str) -> str:
    first, _, rest = text.partition(" ")
    own = first.startswith("`") or first.isupper() or first == "Weir's"
    return text if own else f"{first[0].lower()}{first[1:]} {rest}".rstrip()


def _wrapped(text: str, indent: str, more: str | None = None) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        110,
        initial_indent=indent,
        subsequent_indent=more or indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
"""Types of Python, by those of JSON Schema."""

MAX_LIST_CHARS = 60
"""Characters of a default that is a list, beyond which each part has a line."""

ATTRIBUTES = {"assert": "assertions"}
"""Names of keys that are words of Python's own."""


if __name__ == "__main__":
    FILE.write_text(models(), encoding="utf-8")
