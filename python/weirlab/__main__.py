"""The command `weir`, also `python -m weirlab`: requests to end are heard before anything else is loaded."""

from __future__ import annotations

from weirlab import interrupt


def main() -> None:
    """Runs the command line."""
    requests = interrupt.take_over()
    from weirlab.cli import main as command_line  # noqa: PLC0415 - takes a while

    try:
        command_line()
    except KeyboardInterrupt:
        # In the midst of telling what went wrong.
        interrupt.end_at_once()
    except Exception:
        # Libraries may make an error of their own of it, as Polars does of what is raised beneath it.
        if requests.raised:
            interrupt.end_at_once()
        raise
    except SystemExit as end:
        if end.code == interrupt.INTERRUPTED:
            interrupt.leave()
        raise
    finally:
        requests.ended()


if __name__ == "__main__":
    main()
