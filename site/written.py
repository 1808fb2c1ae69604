"""Pages of the site that are made of what is declared: commands, keys of files, what Python offers."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import weirlab
from weirlab.cli import COMMANDS, weir
from weirlab.cli.schemas import described_schemas

if TYPE_CHECKING:
    from collections.abc import Iterator


def pages() -> dict[str, str]:
    """The text of each page by its place on the site."""
    return {
        "reference/index.md": INDEX,
        "reference/commands.md": commands(),
        "reference/files.md": files(),
        "reference/python.md": python(),
        "reference/crates.md": crates(),
    }


def commands() -> str:
    """Every command with its options, from its own help."""
    context = click.Context(weir, info_name="weir", **weir.context_settings)
    lines = [
        "# All commands and options",
        "",
        "What `--help` after any of them says. [The command weir](../cli.md) says what they are for.",
    ]
    for name in COMMANDS:
        command = weir.get_command(context, name)
        if command is not None:
            lines += _command(command, context, name, 2)
    return "\n".join(lines) + "\n"


def _command(command: click.Command, parent: click.Context, name: str, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield from ("", f"{'#' * level} {context.command_path}", "", "```", usage, "```", "")
    yield from _help(command.help or "")
    if not command.add_help_option:
        yield f"`{context.command_path} --help` lists its options."
    options = [found for param in command.get_params(context) if (found := param.get_help_record(context))]
    if options:
        yield from ("", "| option | meaning |", "|---|---|")
        yield from (f"| {_code(words)} | {_cell(meaning)} |" for words, meaning in options)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            one = command.get_command(context, inner)
            if one is not None:
                yield from _command(one, context, inner, level + 1)


def _help(text: str) -> Iterator[str]:
    r"""The text of a command's help; what stands as it is written, behind `\\b`, is an example."""
    for part in inspect.cleandoc(text).split("\n\n"):
        kept = part.startswith("\b")
        yield from ("```", *part.splitlines()[1:], "```", "") if kept else (_escaped(part), "")


def files() -> str:
    """Every key of the files that Weir reads, from their schemas."""
    lines = [
        "# Keys of files",
        "",
        "Of the same declarations as the reader and the JSON Schemas (`weir list schemas NAME`,",
        "[in an editor](../scenarios.md#in-an-editor)). [Scenarios](../scenarios.md) explains them.",
    ]
    definitions: dict[str, dict[str, Any]] = {}
    parts: dict[str, dict[str, Any]] = {}
    for kind in described_schemas():
        whole = kind["schema"]
        name = kind["name"].capitalize()
        first = str(whole["$ref"]).rpartition("/")[2] if "$ref" in whole else f"{name} file"
        lines += ["", f"* {_code(kind['name'])}, {kind['summary']}: {_link(first)}"]
        definitions[first] = whole if "$ref" not in whole else whole["$defs"][first]
        parts |= whole.get("$defs", {})
    # The files come first, what they consist of afterwards.
    for of, definition in (definitions | parts).items():
        lines += _definition(of, definition)
    return "\n".join(lines) + "\n"


def _definition(name: str, definition: dict[str, Any]) -> Iterator[str]:
    yield from ("", f"## {name}", "", _escaped(definition.get("description", "")))
    keys = definition.get("properties")
    if not keys:
        yield from ("", f"Written as {_type(definition)}.")
        return
    yield from ("", "| key | is | default | meaning |", "|---|---|---|---|")
    for key, one in keys.items():
        default = "required" if key in definition.get("required", []) else _default(one)
        yield f"| `{key}` | {_type(one)} | {default} | {_cell(one.get('description', ''))} |"


def _type(one: dict[str, Any]) -> str:
    """What a value may be, in a few words."""
    match one:
        case {"$ref": name}:
            return _link(str(name).rpartition("/")[2])
        case {"enum": [*words]} | {"const": words}:
            return ", ".join(_code(str(word)) for word in (words if "enum" in one else [words]))
        case {"anyOf": several} | {"oneOf": several}:
            return " or ".join(_type(each) for each in several)
        case {"type": "array", "items": each}:
            return f"list of {_type(each)}"
        case {"type": "object", "additionalProperties": dict(each)}:
            return f"table of {_type(each)}"
    bounds = [f"{sign} {one[key]}" for key, sign in BOUNDS.items() if key in one]
    return ", ".join([str(one.get("type", "anything")), *bounds])


def _default(one: dict[str, Any]) -> str:
    return _code(str(one["default"])) if one.get("default") not in (None, "") else ""


def python() -> str:
    """What the package offers, whose docstrings the site reads."""
    lines = [
        "# Python",
        "",
        "What `import weirlab` offers. [The record](../record.md) has the tables,",
        "[Statistics](../statistics.md) the figures.",
    ]
    for name in weirlab.__all__:
        found = getattr(weirlab, name)
        lines += ["", f"::: {found.__module__}.{found.__qualname__}"]
    return "\n".join(lines) + "\n"


def crates() -> str:
    """What each crate is for, as its own documentation begins, in the order of ARCHITECTURE.md."""
    lines = [
        "# Crates",
        "",
        "The parts of Weir that are Rust, each below those that it uses, with the first page of its",
        "documentation. [Architecture](../architecture.md) says how they fit together.",
    ]
    rooms = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    found = [cells for row in rooms.splitlines() if len(cells := ROOM.split(row)) == ROOM_PARTS]
    known = {file.parent.name for file in (ROOT / "crates").glob("*/Cargo.toml")}
    if {name for _, name, *_ in found} != known:
        raise ValueError(f"ARCHITECTURE.md has not the crates {sorted(known)} in its table")
    for _, name, kind, uses, _ in found:
        used = ", ".join(f"[{one}](#weir-{one})" for one in re.findall(r"`([\w-]+)`", uses)) or "none of them"
        links = f"[Source]({REPOSITORY}/tree/main/crates/{name})"
        if name not in UNDOCUMENTED:
            links = f"[All items](../{RUSTDOC}/weir_{name.replace('-', '_')}/index.html). {links}"
        lines += ["", f"## weir-{name}", "", f"Kind: {kind}. Uses: {used}. {links}", ""]
        lines += _documented(ROOT / "crates" / name / "src")
    return "\n".join(lines) + "\n"


def _documented(source: Path) -> Iterator[str]:
    """What the documentation of a crate begins with; links to its items are their names."""
    (file,) = (source / name for name in ("lib.rs", "main.rs") if (source / name).exists())
    in_code = False
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("//!"):
            return
        text = line.removeprefix("//!").removeprefix(" ")
        if text.startswith("```"):
            in_code = not in_code
            yield "```rust" if in_code else text
        elif not in_code:
            yield ITEM.sub(r"\1", text)
        elif not text.startswith("# "):
            # What only the test of an example needs.
            yield text


def _link(name: str) -> str:
    return f"[{name}](#{name.lower().replace(' ', '-')})"


def _code(words: str) -> str:
    return f"`{' '.join(words.split())}`"


def _cell(text: str) -> str:
    """A text that stays within its cell."""
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def _escaped(text: str) -> str:
    """A text of which nothing but code is taken for markup."""
    parts = text.split("`")
    return "`".join(
        part if at % 2 else TAKEN.sub(r"\\\1", part).replace("<", "&lt;") for at, part in enumerate(parts)
    )


INDEX = """# Reference

What there is, one by one. To learn what it is good for, begin with a [tutorial](../tutorials/index.md).

* [The command weir](../cli.md): how its commands belong together, exit codes, completion and the manual page
* [All commands and options](commands.md), as `--help` says them
* [Python](python.md): the functions and classes of `weirlab`
* [Crates](crates.md): the parts of Weir in Rust, with their documentation
* [Keys of files](files.md): what scenarios, tests, links, and the settings and rules of a shaper may say
* [The record](../record.md): what a run leaves behind, column by column
* [Statistics](../statistics.md): how each figure is computed
* [The protocol](../protocol.md) between Weir's clients and its server
"""
"""What the section begins with."""

ROOT = Path(__file__).resolve().parent.parent

REPOSITORY = "https://github.com/weir-bench/weir"

RUSTDOC = "rustdoc"
"""Where the site has what rustdoc made."""

UNDOCUMENTED = {"py"}
"""Crates that rustdoc is not run over: the module of Python has a reference of its own."""

ROOM = re.compile(r"^\| `crates/([\w-]+)` \| ([^|]+) \|([^|]*)\| .+\|$")
"""A row of the table of rooms: name, kind, what it may use."""

ROOM_PARTS = 5
"""Parts that a row of that table splits into."""

ITEM = re.compile(r"\[(`[^`]+`|[A-Za-z_]+)\](?:\([^)]*\))?")
"""A link of rustdoc."""

TAKEN = re.compile(r"([\[\]*_])")
"""What Markdown takes for markup."""

BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
