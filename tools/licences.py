"""Prints the licences of what programs link: `python tools/licences.py TARGET PACKAGE...`.

Of every crate that is compiled into one (not of those that only run while it is compiled) the text of one
licence that it may be used under: MIT before others. A crate without such a text ends it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def main(target: str, packages: list[str]) -> str:
    """The texts, each below the crates that it is of."""
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
    )
    known = {one["id"]: one for one in metadata["packages"]}
    roots = [one["id"] for one in known.values() if one["name"] in packages]
    if len(roots) != len(packages):
        sys.exit(f"licences: not each of {', '.join(packages)} is a package of this workspace")
    of_text: dict[str, list[str]] = {MIT: [RUST, *([MUSL] if STATIC in packages else [])]}
    for one in sorted(linked(metadata, known, roots), key=lambda one: str(one["name"])):
        if one["source"] is not None:
            title = f"{one['name']} {one['version']} ({one['license']})"
            of_text.setdefault(licence_of(one), []).append(title)
    parts = ["\n".join(titles) + f"\n\n{text.strip()}\n" for text, titles in of_text.items()]
    return HEAD + f"\n{'-' * 72}\n\n".join(["", *parts])


def linked(metadata: dict[str, Any], known: dict[str, Any], roots: list[str]) -> list[dict[str, Any]]:
    """The crates that `roots` link, themselves too."""
    needs = {
        node["id"]: [
            dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])
        ]
        for node in metadata["resolve"]["nodes"]
    }
    found: dict[str, dict[str, Any]] = {}
    waiting = [*roots]
    while waiting:
        name = waiting.pop()
        macro = any("proc-macro" in one["kind"] for one in known[name]["targets"])
        if name not in found and not macro:
            found[name] = known[name]
            waiting += needs[name]
    return list(found.values())


def licence_of(one: dict[str, Any]) -> str:
    """The text of a licence of a crate."""
    folder = Path(one["manifest_path"]).parent
    files = sorted(
        (
            file
            for file in folder.iterdir()
            if file.name.upper().startswith(("LICENSE", "LICENCE", "COPYING"))
        ),
        key=lambda file: ("MIT" not in file.name.upper(), file.name),
    )
    if not files:
        sys.exit(f"licences: {one['name']} {one['version']} has no text of a licence in `{folder}`")
    return "\n".join(line.rstrip() for line in files[0].read_text(encoding="utf-8").splitlines())


HEAD = """\
Weir is under the MIT licence or the Apache licence 2.0, at your choice. What else is compiled in:
"""

MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES
OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""

RUST = "Rust's standard library and what it contains (MIT OR Apache-2.0), https://www.rust-lang.org/policies/licenses"
"""What every program of Rust has within; its MIT licence has no line of copyright."""

STATIC = "weir-agent"
MUSL = "musl, the C library of static programs (MIT), Copyright (C) 2005-2020 Rich Felker, et al., https://musl.libc.org"

if __name__ == "__main__":
    match sys.argv[1:]:
        case [target, *packages] if packages:
            sys.stdout.write(main(target, packages))
        case _:
            sys.exit("licences: give the target that is compiled for, and packages")
