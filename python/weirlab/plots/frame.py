"""Axes as charts have them: ticks, labels and grid are drawn from places, without an object for each.

Matplotlib makes seven objects for every tick and measures each several times, which is more than all that is
drawn between the axes. Everything else is Matplotlib's: scales, locators, formatters and `tick_params`. Minor
ticks and ticks above or on the right are not drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox, IdentityTransform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Frame"]


class Frame(Axes):
    """Axes whose ticks are no objects."""

    xaxis: _Below
    yaxis: _Left

    def _init_axis(self) -> None:
        self.xaxis = _Below(self, clear=False)
        self.yaxis = _Left(self, clear=False)
        self.spines.bottom.register_axis(self.xaxis)
        self.spines.left.register_axis(self.yaxis)

    def clear(self) -> None:
        """Begins anew; the lines of the axes are where the axes end."""
        super().clear()
        for spine in self.spines.values():
            # Matplotlib does so when it makes the first tick.
            spine.set_position(("outward", 0.0))


class _Ticks:
    """What both axes have in common; `along` and `across` number the coordinates, x is 0 and y is 1.

    Attributes:
        room: how far the labels of ticks reach at least, in inches from the axes. Axes above each other that
            have the same have their own labels at one place.
    """

    majorTicks = minorTicks = ()  # noqa: N815 - names of Matplotlib's, whose objects are not made
    along, across = 0, 1
    tick, shown, words = "xtick", "bottom", "labelbottom"
    alignment = ("center", "top")
    room = 0.0

    def clear(self: Any) -> None:
        """Begins anew, with the settings that are in force."""
        super().clear()  # type: ignore[misc]
        of: Any = mpl.rcParams
        self._settings = {
            "length": of[f"{self.tick}.major.size"],
            "width": of[f"{self.tick}.major.width"],
            "pad": of[f"{self.tick}.major.pad"],
            "labelsize": of[f"{self.tick}.labelsize"],
            "labelrotation": 0,
            "color": of[f"{self.tick}.color"],
            self.shown: True,
            self.words: True,
        }
        self._grid = (of["grid.color"], of["grid.linewidth"])
        self._sizes: dict[Any, tuple[float, float]] = {}
        self._text = Text(ha=self.alignment[0], va=self.alignment[1])
        self._text.set_figure(self.axes.get_figure(root=False))

    def get_major_ticks(self, numticks: int | None = None) -> Sequence[Any]:
        """None: ticks are no objects."""
        del numticks
        return ()

    get_minor_ticks = get_major_ticks

    def _update_ticks(self) -> Sequence[Any]:
        return ()

    def get_majorticklabels(self: Any) -> list[Text]:
        """The labels of ticks as texts, made for who asks: to change them changes no chart."""
        look = self._look()
        at, words = self._places(look)
        near = self.axes.bbox.min[self.across]
        return [
            Text(*((place, near) if self.along == 0 else (near, place)), word, size=look["labelsize"])
            for place, word in zip(at, words, strict=False)
        ]

    def get_children(self: Any) -> list[Any]:
        """The labels of the axis and of its ticks."""
        return [self.label, self.offsetText, *self.get_majorticklabels()]

    def get_ticks_position(self) -> str:
        """Below or left."""
        return self.shown

    def draw(self: Any, renderer: Any) -> None:
        """Draws grid, ticks and all labels."""
        if not self.get_visible():
            return
        renderer.open_group(__name__, gid=self.get_gid())
        look = self._look()
        at, words = self._places(look)
        box = self.axes.bbox
        if look["gridOn"]:
            self._strokes(renderer, at, box.min[self.across], box.max[self.across], *self._grid)
        near = box.min[self.across]
        pixels = renderer.points_to_pixels(1.0)
        if look[self.shown]:
            self._strokes(renderer, at, near - look["length"] * pixels, near, look["color"], look["width"])
        beyond = near - self._gap(look) * pixels
        for place, word in zip(at, words, strict=False):
            self._text.set_text(word)
            self._text.set_position((place, beyond) if self.along == 0 else (beyond, place))
            self._text.draw(renderer)
        self._place_label(self._reach(renderer, look, words))
        self.label.draw(renderer)
        if self.offsetText.get_text():
            self.offsetText.draw(renderer)
        renderer.close_group(__name__)
        self.stale = False

    def get_tightbbox(self: Any, renderer: Any = None, *, for_layout_only: bool = False) -> Bbox | None:
        """The box that holds all labels, in pixels; as Matplotlib's."""
        if not self.get_visible() or (for_layout_only and not self.get_in_layout()):
            return None
        if renderer is None:
            renderer = self.axes.get_figure(root=True).canvas.get_renderer()
        look = self._look()
        at, words = self._places(look)
        reach = self._reach(renderer, look, words)
        self._place_label(reach)
        box = self.axes.bbox
        ends = np.array([box.min, box.max])
        ends[:, self.across] = box.min[self.across] - reach, box.min[self.across]
        ends[:, self.along] = self._ends(renderer, at, words)
        boxes = [Bbox(ends)]
        if self.label.get_visible() and self.label.get_text():
            around = self.label.get_window_extent(renderer).get_points()
            if for_layout_only:
                # A label that is too long makes no axes larger.
                around[:, self.along] = around[:, self.along].mean()
            boxes.append(Bbox(around))
        if self.offsetText.get_visible() and self.offsetText.get_text():
            boxes.append(self.offsetText.get_window_extent(renderer))
        return Bbox.union(boxes)

    def reach(self: Any, renderer: Any) -> tuple[float, float, float]:
        """How far the labels of its ticks reach, in inches from the axes: outwards, and beyond both ends."""
        look = self._look()
        self.room = 0.0
        at, words = self._places(look)
        low, high = self._ends(renderer, at, words)
        box, dpi = self.axes.bbox, float(self.axes.get_figure(root=True).dpi)
        beyond = box.min[self.along] - low, high - box.max[self.along]
        return self._reach(renderer, look, words) / dpi, beyond[0] / dpi, beyond[1] / dpi

    def _look(self: Any) -> dict[str, Any]:
        """How ticks look, as `tick_params` has it."""
        look: dict[str, Any] = {**self._settings, **self.get_tick_params("major")}
        # Matplotlib takes it as `labelrotation` and tells it as `rotation`.
        self._text.set(size=look["labelsize"], rotation=look.get("rotation", look["labelrotation"]))
        return look

    def _places(self: Any, look: dict[str, Any]) -> tuple[NDArray[np.float64], list[str]]:
        """Where ticks are, in pixels, and what stands at them; nothing if they have no labels."""
        locations = np.asarray(self.get_majorticklocs(), dtype=float)
        words = self.major.formatter.format_ticks(locations)
        self.offsetText.set_text(self.major.formatter.get_offset())
        low, high = sorted(self.get_view_interval())
        scaled, ends = (self.get_transform().transform(values) for values in (locations, [low, high]))
        some = NEAR * (ends[1] - ends[0])
        seen = (scaled >= ends[0] - some) & (scaled <= ends[1] + some)
        points = np.zeros((locations.size, 2))
        points[:, self.along] = locations
        points[:, self.across] = self.axes.viewLim.min[self.across]
        at = self.axes.transData.transform(points)[seen, self.along]
        if not look[self.words]:
            return at, []
        return at, [word for word, there in zip(words, seen, strict=True) if there]

    def _strokes(  # noqa: PLR0913, PLR0917 - a line at each place, from where to where, and its look
        self: Any, renderer: Any, at: NDArray[np.float64], low: float, high: float, colour: str, width: float
    ) -> None:
        if not at.size:
            return
        ends = np.empty((at.size, 2, 2))
        ends[:, :, self.along] = at[:, np.newaxis]
        ends[:, :, self.across] = low, high
        gc = renderer.new_gc()
        gc.set_foreground(colour)
        gc.set_linewidth(width)
        gc.set_capstyle("butt")
        codes = np.tile([Path.MOVETO, Path.LINETO], at.size).astype(Path.code_type)
        renderer.draw_path(gc, Path(ends.reshape(-1, 2), codes), IdentityTransform())
        gc.restore()

    def _gap(self: Any, look: dict[str, Any]) -> float:
        """Between the axes and the labels of ticks, in points."""
        return float(look["pad"]) + (float(look["length"]) if look[self.shown] else 0.0)

    def _reach(self: Any, renderer: Any, look: dict[str, Any], words: Sequence[str]) -> float:
        """How far ticks and their labels reach, in pixels from the axes."""
        dpi = self.axes.get_figure(root=True).dpi
        widest = max((self._size(renderer, word)[self.across] for word in words), default=0.0)
        points = self._gap(look) if words else (look["length"] if look[self.shown] else 0.0)
        return float(max(points * dpi / 72 + widest, self.room * dpi))

    def _ends(self: Any, renderer: Any, at: NDArray[np.float64], words: Sequence[str]) -> tuple[float, float]:
        """From where to where the axes and the labels of ticks reach along the axis, in pixels."""
        low, high = self.axes.bbox.min[self.along], self.axes.bbox.max[self.along]
        for place, word in zip(at, words, strict=False):
            half = self._size(renderer, word)[self.along] / 2
            low, high = min(low, place - half), max(high, place + half)
        return low, high

    def _size(self: Any, renderer: Any, word: str) -> tuple[float, float]:
        """Width and height of a label of a tick, in pixels."""
        key = (word, self._text.get_size(), self._text.get_rotation(), self.axes.get_figure(root=True).dpi)
        if key not in self._sizes:
            self._text.set_text(word)
            box = self._text.get_window_extent(renderer)
            self._sizes[key] = (box.width, box.height) if word else (0.0, 0.0)
        found: tuple[float, float] = self._sizes[key]
        return found

    def _place_label(self: Any, reach: float) -> None:
        """Sets the label of the axis beyond those of its ticks."""
        dpi = self.axes.get_figure(root=True).dpi
        at = self.axes.bbox.min[self.across] - reach - self.labelpad * dpi / 72
        x, y = self.label.get_position()
        self.label.set_position((x, at) if self.along == 0 else (at, y))


class _Below(_Ticks, XAxis):  # type: ignore[misc]
    """The axis below."""


class _Left(_Ticks, YAxis):  # type: ignore[misc]
    """The axis on the left."""

    along, across = 1, 0
    tick, shown, words = "ytick", "left", "labelleft"
    alignment = ("right", "center_baseline")


NEAR = 1e-10
"""A tick this share of the axis beyond its end is at its end: the rest is rounding."""
