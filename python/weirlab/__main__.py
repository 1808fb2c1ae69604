"""The command `weir`, also `python -m weirlab`: requests to end are heard before anything else is loaded."""

from __future__ import annotations

import sys

from weirlab.ending import INTERRUPTED, end_at_once


def main() -> None:
    """Runs the command line."""
    try:
        from weirlab import interrupt  # noqa: PLC0415 - takes long enough to be interrupted

        requests = interrupt.take_over()
        _begin_drawing(sys.argv[1:])
    except KeyboardInterrupt:
        # Of Python's own handler: nothing has begun.
        end_at_once()
    try:
        from weirlab.cli import main as command_line  # noqa: PLC0415 - takes a while

        command_line()
    except KeyboardInterrupt:
        # In the midst of telling what went wrong.
        end_at_once()
    except Exception:
        # Libraries may make an error of their own of it, as Polars does of what is raised beneath it.
        if requests.raised:
            end_at_once()
        raise
    except SystemExit as end:
        if end.code == INTERRUPTED:
            interrupt.leave()
        raise
    finally:
        requests.ended()


def _begin_drawing(args: list[str]) -> None:
    """Begins what draws the charts of a line, if it will draw some, before the line itself is understood."""
    from weirlab import drawers  # noqa: PLC0415 - as above

    if drawers.draws(args):
        drawers.begin()


if __name__ == "__main__":
    main()
