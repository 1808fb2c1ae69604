"""The types of methods' results in Python, as the compiled part declares them; run, it writes them."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab import _native

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).parent.parent / "python/weirlab/record/results.py"

HEAD = '''"""Results of foreign speed tests, as types of Python.

Made of the declarations in `crates/speedtest` by `make docs`: change them there.
"""

from __future__ import annotations

from typing import Literal, TypedDict, final
'''


def types() -> str:
    """The text of the module."""
    found: dict[str, str] = {}
    for method in _native.methods():
        for declared in _objects(method["result"]):
            found.setdefault(declared["name"], _class(declared, method["name"]))
    union = " | ".join(method["result"]["name"] for method in _native.methods())
    last = f'MethodResult = {union}\n"""Result of a method; its key `method` says of which."""\n'
    return "\n\n".join([HEAD, *found.values(), last])


def _objects(declared: _native.ResultObject) -> Iterator[_native.ResultObject]:
    """An object and its parts, each part before what it is a part of."""
    for field in declared["fields"]:
        if field["object"] is not None:
            yield from _objects(field["object"])
    yield declared


def _class(declared: _native.ResultObject, method: str) -> str:
    lines = ["@final", f"class {declared['name']}(TypedDict):", f'    """{declared["meaning"]}', ""]
    lines.append("    Attributes:")
    for field in declared["fields"]:
        text = f"{field['name']}: {field['meaning'][0].lower()}{field['meaning'][1:]}"
        lines += textwrap.wrap(
            text, 110, initial_indent=" " * 8, subsequent_indent=" " * 12, break_on_hyphens=False
        )
    lines += ['    """', ""]
    for field in declared["fields"]:
        kind = KINDS.get(field["kind"]) or (field["object"] or declared)["name"]
        if field["name"] == "method":
            kind = f'Literal["{method}"]'
        lines.append(f"    {field['name']}: {kind}{' | None' if field['nullable'] else ''}")
    return "\n".join(lines) + "\n"


KINDS = {"boolean": "bool", "integer": "int", "float": "float", "text": "str", "texts": "list[str]"}
"""Types of Python, by kinds of values."""


if __name__ == "__main__":
    FILE.write_text(types(), encoding="utf-8")
