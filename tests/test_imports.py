"""Packages that a package may use: every import is held against ARCHITECTURE.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
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


@cache
def imports(module: str) -> tuple[str, ...]:
    """The modules of ours that a module imports: at its head, in functions, and for types alone."""
    return tuple(_imports(module))


def _imports(module: str) -> Iterator[str]:
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
    """The package or module right below `weirlab` or `weirstudies` that a module belongs to."""
    top, *inner = module.split(".")
    if top == "weirstudies":
        return ".".join([top, *inner[:1]])
    return inner[0] if inner else top


@cache
def rooms() -> dict[str, set[str]]:
    """What each room uses, by what stands in its files."""
    found: dict[str, set[str]] = {}
    for module in MODULES:
        used = found.setdefault(room(module), set())
        used |= {room(other) for other in imports(module)} - {room(module)}
    return found


# Every process collects these, and one of them reads what stands in the files.
PRODUCT = [name for name in dict.fromkeys(map(room, MODULES)) if not name.startswith("weirstudies")]
STUDIES = [name for name in MODULES if name.startswith("weirstudies")]


@cache
def allowed() -> dict[str, set[str]]:
    """What each room may use, as ARCHITECTURE.md says, in its order."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("| package | may use |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1:3] for row in table.splitlines()[2:]]
    return {name.strip().strip("`"): set(re.findall(r"`(\w+)`", may)) for name, may in rows}


def test_every_package_is_in_the_table() -> None:
    assert len(allowed()) > 15
    assert set(allowed()) == set(PRODUCT)


@pytest.mark.parametrize("name", PRODUCT)
def test_a_package_uses_what_the_table_says_and_nothing_else(name: str) -> None:
    assert rooms()[name] == allowed()[name]


def test_a_package_uses_only_those_above_it() -> None:
    above: set[str] = set()
    for name, used in allowed().items():
        assert used <= above, f"{name} uses what stands below it"
        above.add(name)


def test_no_module_uses_itself_through_others() -> None:
    rest = {module: {other for other in imports(module) if other != module} for module in MODULES}
    while free := {module for module, used in rest.items() if not used}:
        rest = {module: used - free for module, used in rest.items() if module not in free}
    assert rest == {}, "these use each other in a circle, or use such a circle"


def test_no_study_uses_another() -> None:
    """Beside what they share."""
    for name in rooms():
        if name.startswith("weirstudies."):
            used = {other for other in rooms()[name] if other.startswith("weirstudies")}
            assert used <= SHARED - {name}, name


SHARED = {f"weirstudies.{name}" for name in ("choosing", "command", "judge", "running", "statements")}


@pytest.mark.parametrize("module", STUDIES)
def test_a_study_uses_only_what_is_public(module: str) -> None:
    assert [name for name in used_names(module) if name not in public()] == []


def used_names(module: str) -> Iterator[str]:
    """What a module uses of `weirlab`, such as `weirlab.stats.interval`, through names of modules too."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("weirlab"))
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("weirlab"):
            for name in node.names:
                full = f"{node.module}.{name.name}"
                if full in MODULES:
                    modules[name.asname or name.name] = full
                else:
                    yield full
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{modules[node.value.id]}.{node.attr}"


@cache
def public() -> set[str]:
    """What the modules of `weirlab` offer: the names in their `__all__`."""
    found = set()
    for module in MODULES:
        for node in ast.parse(MODULES[module].read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == ["__all__"]:
                found |= {f"{module}.{name}" for name in ast.literal_eval(node.value)}
    return found


def own_names(module: str) -> Iterator[str]:
    """What a module has of its own at its head: functions, classes and constants."""
    for node in ast.parse(MODULES[module].read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.decorator_list:
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Assign):
            yield from (one.id for one in node.targets if isinstance(one, ast.Name))


def test_nothing_stands_there_that_nobody_names() -> None:
    """Nor a module that nobody imports: what is called from outside stands in pyproject.toml."""
    places = [SOURCE, ROOT / "tests", ROOT / "tools", ROOT / "site"]
    texts = [file.read_text(encoding="utf-8") for place in places for file in place.rglob("*.py")]
    texts += [(ROOT / "pyproject.toml").read_text(encoding="utf-8"), MODULES["weirlab._native"].read_text()]
    words = Counter(word for text in texts for word in re.findall(r"\w+", text))
    own = {f"{module}: {name}" for module in MODULES for name in own_names(module) if words[name] < 2}
    assert {one for one in own if not one.partition(": ")[2].startswith("__")} == set()
    imported = {one for module in MODULES for one in imports(module)}
    asked_for = re.compile(r"\bweir(?:lab|studies)(?:\.\w+)+")
    imported |= {name for text in texts for name in asked_for.findall(text)}
    alone = {one for one, file in MODULES.items() if file.name != "__init__.py" and not commands(one)}
    assert alone - imported == set()


def commands(module: str) -> bool:
    """Whether a module is found by its name: that of a command, or of a chart."""
    return (
        module.endswith(("_command", ".command", "__main__")) or ".charts." in module or ".plots." in module
    )
