"""The canvas of charts: pixels by Matplotlib's Agg, text a line at a time, and PNG files of our own.

Matplotlib sets each letter by itself, without keeping any, and packs images with filters that gain nothing on
charts. Both were most of the time of drawing.
"""

from __future__ import annotations

import math
import struct
import zlib
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg, get_hinting_flag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

__all__ = ["Canvas", "canvas_of", "measuring"]


class Canvas(FigureCanvasAgg):
    """A canvas that draws with `Renderer`."""

    def get_renderer(self) -> Renderer:
        """The renderer of the figure as large as it is now."""
        width, height = (float(length) for length in self.figure.bbox.size)
        made: Any = getattr(self, "renderer", None)
        if made is None or (made.width, made.height, made.dpi) != (width, height, self.figure.dpi):
            made = self.renderer = Renderer(width, height, self.figure.dpi)
        return cast("Renderer", made)

    def png(self, metadata: Mapping[str, str]) -> bytes:
        """Draws the figure as a PNG file, whose text chunks are `metadata`."""
        self.draw()  # type: ignore[no-untyped-call]
        pixels = np.asarray(self.buffer_rgba())  # type: ignore[no-untyped-call]
        return _png(pixels, self.figure.dpi, metadata)


def canvas_of(figure: Figure) -> Canvas:
    """The canvas of a chart."""
    if not isinstance(figure.canvas, Canvas):
        raise TypeError("a chart of Weir has a canvas of its own")
    return figure.canvas


def measuring(figure: Figure) -> Renderer:
    """What measures text in a figure, whatever it is drawn into."""
    canvas = figure.canvas
    if isinstance(canvas, Canvas):
        return canvas.get_renderer()
    return Renderer(*figure.bbox.size, figure.dpi)


class Renderer(RendererAgg):
    """Draws lines of text as a whole, and each that is there several times once."""

    def __init__(self, width: float, height: float, dpi: float) -> None:
        """Of so many pixels."""
        super().__init__(width, height, dpi)  # type: ignore[no-untyped-call]
        self._lines: dict[Any, _Line] = {}
        self._fonts: dict[Any, Any] = {}
        self._heights: dict[Any, tuple[float, float, float]] = {}

    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> tuple[float, float, float]:
        """How large a line of text is, in pixels."""
        if ismath:
            size: tuple[float, float, float]
            size = super().get_text_width_height_descent(s, prop, ismath)  # type: ignore[no-untyped-call]
            return size
        return self._line(s, prop).size

    def draw_text(  # noqa: PLR0913, PLR0917 - what Matplotlib gives
        self,
        gc: Any,
        x: float,
        y: float,
        s: str,
        prop: Any,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        """Draws a line of text, of whole pixels."""
        if ismath:
            super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)  # type: ignore[no-untyped-call]
            return
        line = self._line(s, prop)
        # The lower left corner of its image, which is turned about that.
        down, turn = line.size[2], math.radians(angle)
        left, bottom = x + line.right + down * math.sin(turn), y + down * math.cos(turn)
        self._renderer.draw_text_image(line.image, round(left), round(bottom) + 1, angle, gc)

    def _line(self, text: str, prop: Any) -> _Line:
        key = (text, prop.get_size_in_points(), *_face(prop))
        if key not in self._lines:
            self._lines[key] = _Line(self._prepare_font(prop), text)
        return self._lines[key]

    def _prepare_font(self, font_prop: Any) -> Any:
        """The font in its size; fonts are looked for once, not once for each size."""
        face = _face(font_prop)
        font = self._fonts.get(face)
        if font is None:
            font = self._fonts[face] = super()._prepare_font(font_prop)  # type: ignore[no-untyped-call]
        font.clear()
        font.set_size(font_prop.get_size_in_points(), self.dpi)
        return font

    def _get_font_height_metrics(self, prop: Any) -> tuple[float, float, float]:
        """Ascent, descent and gap of the lines of a font, in pixels: each text asks for it."""
        face = _face(prop)
        if face not in self._heights:
            font = self._prepare_font(prop)
            table, em = font.get_sfnt_table("OS/2"), font.units_per_EM
            names = ("sTypoAscender", "sTypoDescender", "sTypoLineGap")
            ascent, descent, gap = (table[name] / em for name in names)
            self._heights[face] = (ascent, -descent, gap)
        pixels = prop.get_size_in_points() * self.dpi / 72
        ascent, descent, gap = self._heights[face]
        return ascent * pixels, descent * pixels, gap * pixels


class _Line:
    """A line of text in its font.

    Attributes:
        size: width, height and descent in pixels.
        right: by how much its image begins to the right of the line, in pixels.
        image: how much of each pixel it covers, 0 to 255.
    """

    def __init__(self, font: Any, text: str) -> None:
        font.set_text(text, 0.0, flags=get_hinting_flag())  # type: ignore[no-untyped-call]
        width, height = font.get_width_height()
        self.size = (width / 64, height / 64, font.get_descent() / 64)
        font.draw_glyphs_to_bitmap(antialiased=True)
        self.right = font.get_bitmap_offset()[0] / 64
        self.image: NDArray[np.uint8] = np.array(font.get_image())


def _face(prop: Any) -> tuple[Any, ...]:
    """What a font is, but for its size."""
    return (*prop.get_family(), prop.get_weight(), prop.get_style())


def _png(pixels: NDArray[np.uint8], dpi: float, metadata: Mapping[str, str]) -> bytes:
    """A PNG file of opaque pixels, each row as its difference from the one above (RFC 2083, section 6.4)."""
    height, width, _ = pixels.shape
    rows = np.empty((height, 1 + 3 * width), dtype=np.uint8)
    rows[:, 0] = FILTER_UP
    rows[:, 1:] = pixels[:, :, :3].reshape(height, -1)
    rows[1:, 1:] -= rows[:-1, 1:].copy()
    per_metre = round(dpi / 0.0254)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, TRUECOLOUR, 0, 0, 0)),
        *(_text(word, text) for word, text in metadata.items()),
        (b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1)),
        (b"IDAT", zlib.compress(rows.data, PACKING)),
        (b"IEND", b""),
    ]
    return SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))
        for name, data in chunks
    )


def _text(word: str, text: str) -> tuple[bytes, bytes]:
    """A text chunk: of Latin letters, or international."""
    try:
        return b"tEXt", word.encode("latin-1") + b"\0" + text.encode("latin-1")
    except UnicodeEncodeError:
        return b"iTXt", word.encode("latin-1") + b"\0\0\0\0\0" + text.encode("utf-8")


SIGNATURE = b"\x89PNG\r\n\x1a\n"

TRUECOLOUR, FILTER_UP = 2, 2
"""Red, green and blue without transparency; and rows as differences (RFC 2083, sections 4.1.1 and 6.4)."""

PACKING = 2
"""How hard zlib works, 0 to 9: at 6 it takes twice as long, for files that are a tenth smaller."""
