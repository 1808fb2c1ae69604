"""ASCII forms of the signs that Weir prints, for terminals and pipes that know no others."""

from __future__ import annotations

import codecs
import io
import sys


def ascii_of(text: str) -> str:
    """`text` in ASCII: signs that have an ASCII form in that form, all others as `?`."""
    return text.translate(FORMS).encode("ascii", "replace").decode("ascii")


def replace_what_cannot_be_written() -> None:
    """Lets standard output and error write whatever they are given, whatever their encoding.

    A stream that knows a sign writes it; for other signs it writes their ASCII forms.
    """
    codecs.register_error(HANDLER, _form)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def _form(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return ascii_of(error.object[error.start : error.end]), error.end


HANDLER = "weir.ascii"

FORMS = str.maketrans(
    {
        "\N{PLUS-MINUS SIGN}": "+-",
        "\N{MULTIPLICATION SIGN}": "x",
        "\N{MIDDLE DOT}": "-",
        "\N{HORIZONTAL ELLIPSIS}": "...",
        "\N{EN DASH}": "-",
        "\N{EM DASH}": "-",
        "\N{MINUS SIGN}": "-",
        "\N{MICRO SIGN}": "u",
        "\N{GREEK SMALL LETTER MU}": "u",
        "\N{RIGHTWARDS ARROW}": "->",
        "\N{NO-BREAK SPACE}": " ",
        "\N{BULLET}": "*",
        "\N{BOX DRAWINGS LIGHT HORIZONTAL}": "-",
        "\N{BOX DRAWINGS LIGHT VERTICAL}": "|",
    }
)
