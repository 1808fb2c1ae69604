"""How wide text is, without setting it: the sum of the widths of its letters, as the font has them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import LoadFlags

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

__all__ = ["FONT", "fits", "has_letter", "width_of", "wrapped"]


def wrapped(text: str, inches: float, size: float, *, weight: str = "normal") -> list[str]:
    """`text` in lines of at most `inches`; words longer than that are broken."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if fits(longer, inches, size, weight=weight):
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append("")
        for letter in word:
            if lines[-1] and not fits(lines[-1] + letter, inches, size, weight=weight):
                lines.append("")
            lines[-1] += letter
    return lines


def fits(text: str, inches: float, size: float, *, weight: str = "normal") -> bool:
    """Whether a line of text is at most so wide."""
    return width_of(text, size, weight=weight) <= inches


def width_of(text: str, size: float, *, weight: str = "normal") -> float:
    """How wide a line of text is, in inches; hardly ever less, and then by less than two per cent."""
    return size / 72 * sum(_advance(letter, weight) for letter in text)


def has_letter(letter: str) -> bool:
    """Whether the font of charts has a letter."""
    return bool(_font("normal").get_char_index(ord(letter)))


@lru_cache(maxsize=4096)
def _advance(letter: str, weight: str) -> float:
    """The width of a letter, in its font's size."""
    font = _font(weight)
    index = font.get_char_index(ord(letter))
    if not index:
        return LAST_RESORT
    glyph = font.load_glyph(index, LoadFlags.NO_SCALE)
    return float(glyph.horiAdvance) / font.units_per_EM


@lru_cache(maxsize=4)
def _font(weight: str) -> FT2Font:
    return get_font(findfont(FontProperties(family=FONT, weight=weight)))


FONT = "DejaVu Sans"
"""The font of charts, which comes with Matplotlib: they look the same everywhere."""

LAST_RESORT = 1.15
"""Width of a letter that the font has not, in its size: Matplotlib has a font of boxes for those."""
