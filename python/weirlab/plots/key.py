"""The key to the right of axes: what each line is, one below the other.

Matplotlib's legend is made of boxes within boxes, each of which is measured whenever it is drawn. Here a row
is placed by its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox, IdentityTransform

from weirlab.plots.measure import width_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["Key"]


class Key(Artist):
    """A sample and words for each of several lines or areas, beside axes."""

    def __init__(  # noqa: PLR0913 - what it says, and how
        self,
        axes: Axes,
        handles: Sequence[Artist],
        names: Sequence[str],
        *,
        title: str = "",
        size: float = 8.5,
        sample: float = 1.8,
        pitch: float = 1.54,
        of_all: bool = False,
    ) -> None:
        """The key of `axes`, which is that of their `get_legend`.

        Args:
            axes: to their right it stands.
            handles: what is told apart.
            names: what each of them is.
            title: heads the key; empty for none.
            size: of its letters, in points.
            sample: width of a sample, in sizes of letters.
            pitch: from line to line, in sizes of letters.
            of_all: whether it is that of the axes below too, beside which it may reach.
        """
        super().__init__()
        self.set_zorder(5)
        self._size, self._sample, self._pitch = size, sample, pitch
        self._of_all = of_all
        self._title = Text(text=title, size=size)
        self._texts = [Text(text=name, size=size) for name in names]
        self._samples = [_sample_of(handle) for handle in handles]
        figure: Any = axes.get_figure(root=False)
        for part in self.get_children():
            part.set_transform(IdentityTransform())
            part.set_figure(figure)
        self.axes = axes
        self.set_figure(figure)
        axes.legend_ = self  # type: ignore[assignment]

    def get_texts(self) -> list[Text]:
        """What stands beside the samples."""
        return self._texts

    def get_title(self) -> Text:
        """What heads the key."""
        return self._title

    def get_children(self) -> list[Artist]:
        """All that it is made of."""
        return [self._title, *self._texts, *self._samples]

    def draw(self, renderer: Any) -> None:
        """Draws it."""
        if not self.get_visible():
            return
        renderer.open_group("legend", gid=self.get_gid())
        letter, left, top = self._place()
        line = top - FIRST * letter
        if self._title.get_text():
            self._title.set_position((left, line))
            self._title.draw(renderer)
            line -= self._pitch * letter
        ends = (left, left + self._sample * letter)
        for sample, text in zip(self._samples, self._texts, strict=True):
            middle = line + MIDDLE * letter
            if isinstance(sample, Line2D):
                sample.set_data([ends[0], sum(ends) / 2, ends[1]], [middle] * 3)
            else:
                sample.set_bounds(ends[0], middle - MIDDLE * letter, ends[1] - ends[0], 2 * MIDDLE * letter)
            sample.draw(renderer)
            # Text of several lines stands on its last.
            more = MORE * text.get_text().count("\n") * letter
            text.set_position((ends[1] + GAP * letter, line - more))
            text.draw(renderer)
            line -= self._pitch * letter + more
        renderer.close_group("legend")
        self.stale = False

    def get_window_extent(self, renderer: Any = None) -> Bbox:
        """The box around it, in pixels."""
        del renderer
        letter, left, top = self._place()
        dpi = self._dpi()
        size = HINTED * self._size
        titles = [width_of(self._title.get_text(), size) * dpi]
        indent = (self._sample + GAP) * letter
        lines = [line for text in self._texts for line in text.get_text().split("\n")]
        widest = max(titles + [indent + width_of(line, size) * dpi for line in lines])
        rows = len(self._texts) + bool(self._title.get_text())
        more = MORE * (len(lines) - len(self._texts))
        return Bbox.from_extents(left, top - (rows * self._pitch + more) * letter, left + widest, top)

    def get_tightbbox(self, renderer: Any = None) -> Bbox:
        """The box for which a layout makes room, in pixels."""
        box = self.get_window_extent(renderer)
        if self._of_all:
            box.y0 = max(box.y0, self.axes.bbox.y0)  # type: ignore[union-attr]
        return box

    def _dpi(self) -> float:
        return float(self.axes.get_figure(root=True).dpi)  # type: ignore[union-attr]

    def _place(self) -> tuple[float, float, float]:
        """The size of a letter, and the upper left corner; in pixels."""
        letter, box = self._size * self._dpi() / 72, self.axes.bbox  # type: ignore[union-attr]
        return letter, box.x1 + ASIDE * letter, box.y1 + ABOVE * letter


def _sample_of(handle: Artist | ErrorbarContainer) -> Any:
    """What shows how a line, one with bars for intervals, or an area is drawn."""
    if isinstance(handle, ErrorbarContainer):
        handle = handle.lines[0]
    if isinstance(handle, Line2D):
        sample = Line2D([], [])
        sample.update_from(handle)
        sample.set(markevery=[1], clip_on=False, path_effects=None)
        return sample
    if isinstance(handle, Collection):
        return Rectangle((0, 0), 0, 0, facecolor=handle.get_facecolor()[0], linewidth=0)
    raise TypeError(f"a key of {type(handle).__name__}")


HINTED = 1.03
"""By so much a line is wider at most once its letters are fitted to pixels."""

MORE = 1.17
"""From line to line of one thing, in sizes of letters."""

ASIDE, ABOVE, FIRST = 0.7, 0.7, 1.15
"""From the axes to the right, above their upper end, and down to the first line, in sizes of letters."""

MIDDLE, GAP = 0.35, 0.8
"""Half the height of small letters; between sample and words; in sizes of letters."""
