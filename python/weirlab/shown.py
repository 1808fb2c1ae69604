"""How a notebook shows results.

Records and comparisons say that they can be shown; how is said above them, by the package (`render_with`). So
the record does not know the report.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar


class Shown:
    """A value that a notebook shows as HTML.

    Attributes:
        shown_as: the kind of thing that it is, by which the renderer knows it.
    """

    shown_as: ClassVar[str]

    def _repr_html_(self) -> str | None:
        """HTML of the value; None while no renderer is known, and the notebook then shows its text."""
        return None if _renderer is None else _renderer(self.shown_as, self)


def render_with(renderer: Callable[[str, Any], str]) -> None:
    """Shows everything by `renderer`, which takes what kind of thing it is and the thing itself."""
    global _renderer  # noqa: PLW0603 - one for the process, as a notebook is
    _renderer = renderer


_renderer: Callable[[str, Any], str] | None = None
