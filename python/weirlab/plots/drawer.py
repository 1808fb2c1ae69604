"""The process that draws charts: `python -m weirlab.plots.drawer` draws what a line of JSON says.

It loads what charts need before it reads. Each chart is drawn by a child of its own, which has all that
already. It answers each order with a line; `weirlab.drawers` is its other end.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import sys
import traceback
import warnings
from collections import deque
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from weirlab.loading import uncollected, without_documentation, without_lament

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = "MPLCONFIGDIR"
"""The variable by which Matplotlib names its folder, one that it made itself too."""

LOADED = (
    *(f"weirlab.plots.{name}" for name in ("scope", "three_plot", "box", "cdf", "ping")),
    "weirlab.record.reader",
)
"""Modules that the charts which a run has in any case need, some of them only once they are drawn or written.

Children load others, each for itself.
"""


def main() -> None:
    """Draws what the input says."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _tidies_up()
    answers = os.dup(sys.stdout.fileno())
    # What a library prints shall not stand among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with uncollected():
        without_lament()
        import matplotlib as mpl  # noqa: PLC0415 - signals first

        without_documentation()
        # Whoever goes through all settings has Matplotlib look for a screen otherwise, with all of pyplot.
        mpl.use("agg")
        for module in LOADED:
            import_module(module)
        from weirlab.record import open_record  # noqa: PLC0415
    line = sys.stdin.readline()
    if not line:
        return
    asked = json.loads(line)
    paths = {path for order in asked["orders"] for path in (*order["records"], *order["whole"])}
    # No table is read here: what reads them may start threads, which a child does not have and waits for.
    records = {path: open_record(path) for path in paths}
    # Who asked may be gone: nothing more is drawn then.
    with suppress(BrokenPipeError):
        _draw_all(asked, records, answers)


def _tidies_up() -> None:
    """Has this process, when it is told to end, remove the folder that Matplotlib made for want of a home.

    Python's own end, which does so too, takes longer, and who asked waits for it.
    """
    given = os.environ.get(FOLDER)

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        made = os.environ.get(FOLDER)
        if made is not None and made != given:
            shutil.rmtree(made, ignore_errors=True)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)


def _draw_all(asked: Mapping[str, Any], records: Mapping[str, Any], answers: int) -> None:
    """Draws each chart in a child, so many at once as are asked for."""
    waiting, running = deque(enumerate(asked["orders"])), dict[int, int]()
    while waiting or running:
        while waiting and len(running) < asked["at_once"]:
            number, order = waiting.popleft()
            child = os.fork()
            if not child:
                _draw_and_leave(number, order, records, answers)
            running[child] = number
        child, status = os.wait()
        number, code = running.pop(child), os.waitstatus_to_exitcode(status)
        if code:
            _answer(answers, number, "WeirError", f"the process that drew a chart ended with code {code}")


def _draw_and_leave(number: int, order: Mapping[str, Any], records: Mapping[str, Any], answers: int) -> None:
    """Draws one chart, says so, and ends the process."""
    from weirlab.errors import WeirError, WeirWarning  # noqa: PLC0415
    from weirlab.plots import draw  # noqa: PLC0415

    # It draws one chart and ends: what it leaves is not worth looking for.
    gc.disable()
    ends = False

    def end(*_: object) -> NoReturn:
        nonlocal ends
        ends = True
        # What is half written is removed on the way out.
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    try:
        with warnings.catch_warnings(record=True) as caught:
            try:
                draw(
                    order["kind"],
                    [records[path] for path in order["records"]],
                    Path(order["target"]),
                    title=order["title"],
                    whole=[records[path] for path in order["whole"]],
                )
            except WeirError as error:
                _answer(answers, number, type(error).__name__, str(error))
            else:
                ours = [str(one.message) for one in caught if issubclass(one.category, WeirWarning)]
                _answer(answers, number, None, "", ours)
        for one in caught:
            if not issubclass(one.category, WeirWarning):
                warnings.showwarning(one.message, one.category, one.filename, one.lineno)
    except (SystemExit, BrokenPipeError):
        # Told to end, or nobody is there any more to be answered.
        os._exit(1)
    except BaseException:  # noqa: BLE001 - the parent says that it failed
        # Matplotlib makes an error of its own of a request to end that comes while it draws.
        if not ends:
            traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _answer(answers: int, number: int, error: str | None, says: str, warned: Sequence[str] = ()) -> None:
    answer = {"number": number, "error": error, "says": says, "warned": list(warned)}
    # In one piece: several children write at once.
    os.write(answers, (json.dumps(answer) + "\n").encode())


if __name__ == "__main__":
    main()
