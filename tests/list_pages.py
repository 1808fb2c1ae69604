"""The lists of names in the documentation, as the registries have them; run, it writes them there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weirlab import _native
from weirlab.flent.plots import flent_plots as plots
from weirlab.plots import KINDS
from weirlab.scenario import load_link, load_test, shipped_links, shipped_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DOCS = Path(__file__).parent.parent / "docs"

Rows = list[tuple[str, ...]]


def charts() -> Rows:
    """Every kind of chart."""
    head = ("chart", "shows", "takes")
    return [head, *((f"`{name}`", known.summary, known.takes) for name, known in KINDS.items())]


def methods() -> Rows:
    """Every foreign speed test."""
    known = [
        (
            f"`{one['name']}`",
            one["summary"],
            "TLS" if one["needs_tls"] else "",
            one["congestion_control"] or "",
        )
        for one in _native.methods()
    ]
    return [("method", "runs", "needs", "its servers ask for"), *known]


def services() -> Rows:
    """Everything that a server offers."""
    return [("word", "what it is"), *((f"`{one['name']}`", one["summary"]) for one in _native.services())]


def links() -> Rows:
    """Every shipped link."""
    known = map(load_link, shipped_links())
    return [("name", "line", "what it is"), *((f"`{one.name}`", one.title, one.summary) for one in known)]


def tests() -> Rows:
    """Every shipped test."""
    known = map(load_test, shipped_tests())
    return [("name", "title", "what runs"), *((f"`{one.name}`", one.title, one.summary) for one in known)]


def flent_plots() -> Rows:
    """Every plot of Flent, those with the same charts and note together."""
    together: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for plot in plots().values():
        together.setdefault((plot.charts, plot.note), []).append(plot.name)
    rows = [
        (
            ", ".join(f"`{name}`" for name in names),
            ", ".join(f"`{chart}`" for chart in charts) or "none",
            note,
        )
        for (charts, note), names in together.items()
    ]
    return [("plots of Flent", "chart", "what it shows, or why there is none"), *rows]


LISTS: Mapping[tuple[str, str], Callable[[], Rows]] = {
    ("cli.md", "charts"): charts,
    ("flent.md", "plots"): flent_plots,
    ("test.md", "methods"): methods,
    ("serve.md", "services"): services,
    ("links.md", "links"): links,
    ("scenarios.md", "tests"): tests,
}
"""What makes each list, by page and name."""


def renewed(page: str, name: str, rows: Rows) -> str:
    """`page` with the list called `name` between its marks.

    Raises:
        ValueError: if it has no marks for it.
    """
    before, start, rest = page.partition(f"<!-- list of {name} -->\n")
    _, end, after = rest.partition("<!-- end of list -->\n")
    if not end:
        raise ValueError(f"the page has no marks for the list of {name}")
    table = "".join(map(_row, [rows[0], ("---",) * len(rows[0]), *rows[1:]]))
    return f"{before}{start}\n{table}\n{end}{after}"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def write() -> None:
    """Writes every list into its page."""
    for (file, name), rows in LISTS.items():
        page = DOCS / file
        page.write_text(renewed(page.read_text(), name, rows()))


if __name__ == "__main__":
    write()
