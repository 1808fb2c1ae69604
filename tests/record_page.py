"""The record's tables and the results of methods in docs/record.md, as declared; run, it writes them."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab import _native

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PAGE = Path(__file__).parent.parent / "docs/record.md"


def renewed(page: str) -> str:
    """`page` with the columns of every table, and the keys of results, between the marks for them.

    Raises:
        ValueError: if the marks for one of them are missing.
    """
    for table in _native.tables():
        page = _between(page, f"columns of {table['name']}", "end of columns", _rows(table))
    return _between(page, "keys of results", "end of keys", _keys())


def _between(page: str, start: str, end: str, rows: Iterable[tuple[str, ...]]) -> str:
    """`page` with `rows` as the table between the marks `start` and `end`."""
    before, start, rest = page.partition(f"<!-- {start} -->\n")
    _, end, after = rest.partition(f"<!-- {end} -->\n")
    if not end:
        raise ValueError(f"{PAGE.name} has no marks `{start}` and `{end}`")
    text = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{before}{start}\n{text}\n{end}{after}"


def _rows(table: _native.Table) -> Iterator[tuple[str, str, str]]:
    yield "column", "type", "meaning"
    yield "---", "---", "---"
    for family, group in groupby(table["columns"], key=lambda column: column["family"]):
        columns = list(group)
        if family is None:
            yield from ((f"`{one['name']}`", _type(one), one["meaning"]) for one in columns)
        else:
            reasons = ", ".join(f"`{one['name'].removeprefix(family + '_')}`" for one in columns)
            meaning = columns[0]["meaning"].removesuffix(".")
            yield f"`{family}_<reason>`", _type(columns[0]), f"{meaning}: {reasons}."


def _keys() -> Iterator[tuple[str, str, str, str]]:
    """A row for each key of results; keys of several methods that mean the same share one."""
    yield "key", "of", "type", "meaning"
    yield "---", "---", "---", "---"
    methods = _native.methods()
    rows: dict[tuple[str, str, str], list[str]] = {}
    for method in methods:
        for row in _keys_of(method["result"], [""]):
            rows.setdefault(row, []).append(f"`{method['name']}`")
    for (key, kind, meaning), of in rows.items():
        yield key, "all" if len(of) == len(methods) else ", ".join(of), kind, meaning


def _keys_of(declared: _native.ResultObject, places: list[str]) -> Iterator[tuple[str, str, str]]:
    """The keys of an object that stands at `places`, and those of its parts."""
    for name, group in groupby(declared["fields"], key=lambda field: (field["object"] or field)["name"]):
        fields = list(group)
        for field in fields:
            key = ", ".join(f"`{place}{field['name']}`" for place in places)
            yield key, _type(field), field["meaning"]
        part = fields[0]["object"]
        if part is not None and part["name"] == name:
            inside = [f"{place}{field['name']}." for place in places for field in fields]
            yield from _keys_of(part, inside)


def _type(declared: _native.Column | _native.ResultField) -> str:
    kind = "list of texts" if declared["kind"] == "texts" else declared["kind"]
    return f"{kind} or null" if declared["nullable"] else kind


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
