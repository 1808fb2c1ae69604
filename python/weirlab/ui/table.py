"""Tables that fit the terminal: numbers stay whole, words are folded, and what has no room becomes a list.

A column of numbers is never narrower than its widest number. Where the columns have no room together,
headings are folded first, then the columns that may be left out go, which is said beneath, then words are
folded. Where that is not enough, and below `LIST_BELOW` columns, each row becomes a paragraph with a line for
each column.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Group
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from weirlab.ascii import ascii_of
from weirlab.errors import written_out
from weirlab.ui.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


class Table(RichTable):
    """A table of texts and numbers that fits whatever it is printed on.

    Columns that are justified to the right hold numbers, all others words.

    Attributes:
        dispensable: numbers of the columns that may be left out where there is no room, in this order. The
            list form has them all.
    """

    dispensable: Sequence[int] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table in the width that there is."""
        cells = [[_text(cell, ascii_only=options.ascii_only) for cell in one.cells] for one in self.columns]
        width = options.max_width
        fitted = None
        if width >= LIST_BELOW or len(self.columns) <= 2:
            fitted = self._fitted(
                console, options, [_Sizes(*one) for one in zip(self.columns, cells, strict=True)]
            )
        if fitted is None:
            yield self._as_list(cells, options)
        else:
            shown = self._with(cells, fitted, options)
            yield from RichTable.__rich_console__(shown, console, options)

    def _fitted(
        self, console: Console, options: ConsoleOptions, sizes: list[_Sizes]
    ) -> dict[int, int] | None:
        """The columns that are shown and their widths; None if no choice of columns fits."""
        shown = list(range(len(sizes)))
        room = options.max_width - self._around(console, options, shown)
        for number in self.dispensable:
            if sum(sizes[one].readable for one in shown) <= room:
                break
            shown.remove(number)
            room = options.max_width - self._around(console, options, shown)
        least = {one: sizes[one].readable for one in shown}
        if sum(least.values()) > room:
            least = {one: sizes[one].least for one in shown}
        if sum(least.values()) > room:
            return None
        left = room - sum(least.values())
        # Words first: headings on one line are the last thing to spend room on.
        words = [one for one in shown if not sizes[one].numbers]
        numbers = [one for one in shown if sizes[one].numbers]
        for group in (words, numbers):
            left = _grow(least, {one: sizes[one].natural for one in group}, left)
        if words and self.title:
            title = max(cell_len(line) for line in str(self.title).splitlines())
            wanted = title - (options.max_width - left)
            least[words[0]] += max(0, min(left, wanted))
        return least

    def _around(self, console: Console, options: ConsoleOptions, shown: Sequence[int]) -> int:
        """Width that lines and gaps between the columns take, in characters."""
        bare = copy(self)
        bare.columns = []
        for number in shown:
            RichTable.add_column(bare, width=1, no_wrap=self.columns[number].no_wrap)
        measured = RichTable.__rich_measure__(bare, console, options.update_width(UNLIMITED))
        return measured.maximum - len(shown)

    def _with(self, cells: list[list[Text]], widths: dict[int, int], options: ConsoleOptions) -> Table:
        """Returns a copy of the table with these columns, each of the given width."""
        shown = copy(self)
        shown.columns = []
        shown.rows = []
        for number, width in widths.items():
            column = self.columns[number]
            RichTable.add_column(
                shown,
                _text(column.header, ascii_only=options.ascii_only),
                justify=column.justify,
                style=column.style,
                overflow="fold",
                width=width,
                vertical=column.vertical,
            )
        for place, row in enumerate(self.rows):
            RichTable.add_row(
                shown,
                *(cells[number][place] for number in widths),
                style=row.style,
                end_section=row.end_section,
            )
        left_out = [
            _one_line(_text(self.columns[number].header)).plain
            for number in sorted(self.dispensable)
            if number not in widths
        ]
        if left_out:
            more = f"more in a wider terminal: {', '.join(left_out)}"
            shown.caption = f"{shown.caption}; {more}" if shown.caption else more
        if options.ascii_only:
            shown.title = shown.title and _text(shown.title, ascii_only=True)
            shown.caption = shown.caption and _text(shown.caption, ascii_only=True)
        return shown

    def _as_list(self, cells: list[list[Text]], options: ConsoleOptions) -> Group:
        """A paragraph a row: the first column heads it, the others follow with their headings."""
        plain = options.ascii_only
        parts: list[RenderableType] = []
        if self.title:
            parts += [_text(str(self.title), ascii_only=plain), Text("")]
        headings = [_one_line(_text(column.header, ascii_only=plain)) for column in self.columns]
        for place in range(len(self.rows)):
            values = [one[place] for one in cells]
            first = _one_line(values[0])
            if headings[0].plain and self.columns[0].justify == "right":
                first = Text(f"{headings[0].plain} {first.plain}")
            parts += [first, *self._lines(headings[1:], values[1:], options.max_width)]
            if len(values) > 2:
                parts.append(Text(""))
        if self.caption:
            caption = _text(str(self.caption), ascii_only=plain)
            caption.style = "dim"
            parts.append(caption)
        return Group(*parts)

    def _lines(
        self, headings: Sequence[Text], values: Sequence[Text], width: int
    ) -> Iterable[RenderableType]:
        """The lines below the first one of a row: heading and value."""
        there = [
            (heading, _one_line(value), column.style)
            for heading, value, column in zip(headings, values, self.columns[1:], strict=True)
            if value.plain
        ]
        if not there:
            return
        grid = RichTable.grid()
        longest = max(_longest_word(value) for _, value, _ in there)
        named = max(cell_len(heading.plain) for heading, _, _ in there)
        named = max(min(named, MIN_HEADING_CHARS), min(named, width - 4 - longest)) if named else 0
        grid.add_column(width=2)
        grid.add_column(overflow="fold", width=named)
        grid.add_column(width=2 if named else 0)
        grid.add_column(overflow="fold")
        for heading, value, style in there:
            value.style = value.style or style
            grid.add_row("", heading, "", value)
        yield grid


class _Sizes:
    """How wide a column may be.

    Attributes:
        numbers: whether it holds numbers.
        least: less would cut a number or break a word.
        readable: below this its words take too many lines; room for it comes before dispensable columns.
        natural: wide enough for everything on one line.
    """

    def __init__(self, column: Column, cells: Sequence[Text]) -> None:
        header = _text(column.header)
        widest = max((cell_len(line) for cell in cells for line in cell.plain.splitlines()), default=0)
        heading = max((cell_len(line) for line in header.plain.splitlines()), default=0)
        self.natural = max(widest, heading, 1)
        self.numbers = column.justify == "right" and widest <= WIDEST_NUMBER
        if self.numbers or column.no_wrap:
            self.least = self.readable = max(widest, _longest_word(header), 1)
            return
        word = max([_longest_word(header), *(_longest_word(cell) for cell in cells)])
        self.least = max(min(word, MAX_WORD_CHARS), min(self.natural, MIN_WORDS_CHARS))
        self.readable = max(self.least, min(self.natural, max(column.min_width or 0, READABLE_WORDS)))


def _grow(widths: dict[int, int], natural: dict[int, int], left: int) -> int:
    """Widens columns evenly up to their natural widths; returns what is left of the room."""
    while left:
        short = [one for one, wanted in natural.items() if widths[one] < wanted]
        if not short:
            break
        narrowest = min(short, key=lambda one: widths[one])
        widths[narrowest] += 1
        left -= 1
    return left


def _text(cell: object, *, ascii_only: bool = False) -> Text:
    text = harmless(cell).copy() if isinstance(cell, Text) else Text(written_out(str(cell)))
    return Text(ascii_of(text.plain), style=text.style) if ascii_only else text


def _one_line(text: Text) -> Text:
    return Text(" ").join(text.split("\n")) if "\n" in text.plain else text.copy()


def _longest_word(text: Text) -> int:
    return max((cell_len(word) for word in text.plain.split()), default=0)


LIST_BELOW = 60
"""Columns of a terminal below which tables of more than two columns are lists."""

WIDEST_NUMBER = 32
"""A wider cell is no number but a sentence, and may be folded."""

MAX_WORD_CHARS = 24
"""Longer words, such as paths, may be broken."""

MIN_WORDS_CHARS, READABLE_WORDS, MIN_HEADING_CHARS = 10, 18, 8
"""Widths of columns of words in which a name of a queue stands on few lines; and of headings in lists."""

UNLIMITED = 10_000
"""Columns, for measuring."""
