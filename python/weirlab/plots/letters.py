"""Letters that the font of charts lacks: fonts of this machine that have them, or what is said of them."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from matplotlib.font_manager import findSystemFonts, fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

from weirlab.plots.measure import has_letter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["complete"]


def complete(figure: Figure) -> str:
    """Sets letters that the font of charts lacks in fonts of this machine that have them.

    Returns:
        What is said of letters that none of them has; empty if there are none.
    """
    lacking = {text: _lacking(text.get_text()) for text in figure.findobj(Text)}
    letters = frozenset().union(*lacking.values())
    if not letters:
        return ""
    families, unset = _families(letters)
    for text, of_it in lacking.items():
        if of_it:
            text.set_fontfamily([*text.get_fontfamily(), *families])
    if not unset:
        return ""
    first = "".join(sorted(unset)[:MAX_NAMED])
    more = f" and {len(unset) - MAX_NAMED} more" if len(unset) > MAX_NAMED else ""
    return (
        f"no font of this machine has the letters `{first}`{more} of a chart, which shows boxes for them: "
        "install one that has, such as Noto Sans CJK for Chinese, Japanese and Korean, or write SVG, whose "
        "readers set it in fonts of their own"
    )


def _lacking(text: str) -> frozenset[str]:
    """The letters of a text that are seen and that the font of charts lacks."""
    if text.isascii():
        return frozenset()
    return frozenset(one for one in text if one.isprintable() and not one.isspace() and not has_letter(one))


@lru_cache(maxsize=64)
def _families(letters: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Families that have these letters together, as few as can be told, and the letters that none has."""
    having = {}
    for family, file in _installed().items():
        # A file that is no font, or has gone since it was listed.
        with suppress(OSError, RuntimeError):
            font = FT2Font(file)
            having[family] = frozenset(one for one in letters if font.get_char_index(ord(one)))
    chosen: list[str] = []
    left = letters
    while best := max(having, key=lambda family: len(having[family] & left), default=None):
        if not having[best] & left:
            break
        chosen.append(best)
        left -= having[best]
    return tuple(chosen), left


def _installed() -> dict[str, str]:
    """A file of each family of this machine, those without serifs first."""
    known = {font.fname for font in fontManager.ttflist}
    # Matplotlib keeps its list, and does not look for fonts that were installed since.
    for file in sorted(set(findSystemFonts()) - known):
        with suppress(OSError, RuntimeError):
            fontManager.addfont(file)
    upright = [
        font for font in fontManager.ttflist if font.style == "normal" and not font.name.startswith(BOXES)
    ]
    upright.sort(
        key=lambda font: ("Sans" not in font.name, font.name, abs(int(font.weight) - 400), font.fname)
    )
    found: dict[str, str] = {}
    for font in upright:
        found.setdefault(font.name, font.fname)
    return found


BOXES = "Last Resort"
"""The font that comes with Matplotlib and has a box for every letter."""

MAX_NAMED = 12
"""Letters that a sentence names."""
