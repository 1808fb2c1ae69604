"""Letters that the font of charts lacks: other fonts of this machine, or a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from matplotlib.text import Text

from weirlab.plots import letters, measure, theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure


OF_STIX = "\u210a"
"""A letter of STIX, which comes with Matplotlib, that the font of charts lacks."""

JAPANESE = "日本語"


def chart(title: str) -> Figure:
    return theme.framed((title, "", ""), "", "Weir", height=3.0)


def drawn(title: str, suffix: str = "png") -> bytes:
    with theme.applied():
        return theme.render(chart(title), suffix)


def without_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with the font of charts and those of STIX alone, which come with Matplotlib."""
    ours = {name: file for name, file in letters._installed().items() if name.startswith("STIX")}
    monkeypatch.setattr(letters, "_installed", lambda: ours)
    letters._families.cache_clear()


@pytest.fixture(autouse=True)
def _anew() -> None:
    letters._families.cache_clear()


def test_a_letter_that_another_font_has_is_set_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without_fonts(monkeypatch)
    assert not measure.has_letter(OF_STIX)
    with theme.applied():
        figure = chart(f"a {OF_STIX}")
        assert letters.complete(figure) == ""
        families = {text.get_text(): text.get_fontfamily() for text in figure.findobj(Text)}
    assert families[f"a {OF_STIX}"][0] == measure.FONT
    assert any("STIX" in one for one in families[f"a {OF_STIX}"])
    assert not any("STIX" in one for one in families["Weir"])
    for suffix in ("png", "svg", "pdf"):
        # No warning, which would be an error here.
        assert drawn(OF_STIX, suffix)


def test_letters_that_no_font_has_are_told_of_once_where_they_are_boxes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_fonts(monkeypatch)
    for suffix in ("png", "pdf"):
        with pytest.warns(UserWarning, match="no font of this machine has the letters") as told:
            drawn(f"{JAPANESE} {JAPANESE}", suffix)
        assert len(told) == 1
        assert f"`{''.join(sorted(JAPANESE))}`" in str(told[0].message)
    assert JAPANESE in drawn(JAPANESE, "svg").decode()


def test_many_letters_are_told_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    without_fonts(monkeypatch)
    many = "".join(chr(0x4E00 + number) for number in range(40))
    with theme.applied():
        said = letters.complete(chart(many))
    assert f"`{many[:12]}` and 28 more" in said


def test_what_is_not_seen_or_there_anyway_needs_no_font() -> None:
    with theme.applied():
        assert letters.complete(chart("αβγ → ± \t\u200b\ufffd Ünïcode")) == ""
