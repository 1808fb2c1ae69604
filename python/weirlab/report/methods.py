"""What a foreign speed test showed, beside what our own pings saw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weirlab.net.methods import Truth


def method_table(result: dict[str, Any], truth: Truth | None) -> Table:
    """All its figures by name; the truth below them."""
    table = Table(title=f"{result['method']}, by {result['formula']}", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("", justify="right", style="bold")
    for name, value in _flat(result):
        if name not in {"method", "formula", "failures"}:
            table.add_row(name, value)
    if truth is not None:
        table.add_section()
        for name, one in (("before it", truth.idle), ("during it", truth.during)):
            figures = f"median {one.median:.1f}, p95 {one.p95:.1f}, max {one.max:.1f} ms"
            table.add_row(f"our own pings {name}", figures)
        table.add_row("our own pings lost", str(truth.lost))
    return table


def _flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        full = f"{before}{name.replace('_', ' ')}"
        if isinstance(value, dict):
            yield from _flat(value, f"{full}: ")
        elif isinstance(value, list):
            yield full, ", ".join(str(one) for one in value)
        elif isinstance(value, float):
            yield full, f"{value:.2f}"
        else:
            yield full, "-" if value is None else str(value)
