"""Which package of `weirlab` may use which: every import is held against the table in ARCHITECTURE.md."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "python"


def modules() -> dict[str, Path]:
    """All modules by name; `weirlab.stats` stands for its `__init__.py`."""
    found = {}
    for file in SOURCE.rglob("*.py*"):
        if file.suffix not in {".py", ".pyi"}:
            continue
        parts = file.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = modules()


def imports(module: str) -> Iterator[str]:
    """The modules of ours that a module imports: at its head, in functions, and for types alone."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import"
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                if inner in MODULES or node.module in MODULES:
                    yield inner if inner in MODULES else str(node.module)


def room(module: str) -> str:
    """The package or module right below `weirlab` that a module belongs to."""
    return module.split(".")[1] if "." in module else module


@cache
def rooms() -> dict[str, set[str]]:
    """What each room uses, by what stands in its files."""
    found: dict[str, set[str]] = {}
    for module in MODULES:
        used = found.setdefault(room(module), set())
        used |= {room(other) for other in imports(module)} - {room(module)}
    return found


@cache
def allowed() -> dict[str, set[str]]:
    """What each room may use, as ARCHITECTURE.md says, in its order."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("| package | may use |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1:3] for row in table.splitlines()[2:]]
    return {name.strip().strip("`"): set(re.findall(r"`(\w+)`", may)) for name, may in rows}


def test_every_package_is_in_the_table() -> None:
    assert len(allowed()) > 15
    assert set(allowed()) == set(rooms())


@pytest.mark.parametrize("name", rooms())
def test_a_package_uses_what_the_table_says_and_nothing_else(name: str) -> None:
    rest = {other for user, other in REST if user == name}
    assert rooms()[name] - rest == allowed()[name]


def test_a_package_uses_only_those_above_it() -> None:
    above: set[str] = set()
    for name, used in allowed().items():
        below = {(name, other) for other in used - above}
        assert below <= REST, f"{name} uses what stands below it"
        above.add(name)


def test_what_is_still_wrong_becomes_less() -> None:
    assert {(name, other) for name, other in REST if other not in rooms()[name]} == set(), "mended: remove it"


REST = {("plots", "studies"), ("report", "scenario"), ("report", "studies"), ("studies", "cli")}
"""Uses that should not be, until the studies are a package of their own."""
