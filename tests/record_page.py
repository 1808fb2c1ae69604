"""The columns of the record's tables in docs/record.md, as they are declared; run, it writes them there."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab import _native

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parent.parent / "docs/record.md"


def renewed(page: str) -> str:
    """`page` with the columns of every table between the marks for it.

    Raises:
        ValueError: if a table has no marks.
    """
    for table in _native.tables():
        before, start, rest = page.partition(f"<!-- columns of {table['name']} -->\n")
        _, end, after = rest.partition("<!-- end of columns -->\n")
        if not end:
            raise ValueError(f"{PAGE.name} has no marks for the columns of `{table['name']}`")
        rows = "".join(f"| {' | '.join(row)} |\n" for row in _rows(table))
        page = f"{before}{start}\n{rows}\n{end}{after}"
    return page


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


def _type(column: _native.Column) -> str:
    return f"{column['kind']} or null" if column["nullable"] else column["kind"]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
