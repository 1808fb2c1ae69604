"""`weir shape IFACE --prove`: a shaper that is measured first, and goes on only if it helps."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from weirlab.cli.shape_display import Display, show_proof
from weirlab.cli.shape_settings import address_of
from weirlab.errors import ShapeError, UsageError
from weirlab.shape.load import load_by_command, load_from_server
from weirlab.shape.prove import SETTLE_OPEN_S, SETTLE_SHAPED_S, Proof, Prover
from weirlab.shape.running import shape
from weirlab.shape.settings import time_of
from weirlab.ui import note

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from weirlab.cli.shape_settings import StartOptions
    from weirlab.shape import ShaperView
    from weirlab.shape.load import LineLoad
    from weirlab.shape.view import Wanted


def prove(settings: dict[str, Any], options: StartOptions) -> None:
    """Measures without and with the shaper, and shapes on until it is ended if the shaper helps.

    Raises:
        UsageError: if the measurement takes longer than the shaper is to run.
        ShapeError: if it does not help, or if nothing could be proved. What was there before is there again.
    """
    measure_s = time_of("load", options.load) / 1e9
    own_traffic = options.run is None and options.server is None
    prover = Prover(
        rounds=options.rounds, measure_s=measure_s, max_cost=options.max_cost, own_traffic=own_traffic
    )
    if settings["time_ns"] is not None and settings["time_ns"] / 1e9 < prover.total_s:
        raise UsageError(f"--time is shorter than the {prover.total_s:.0f} s that the measurement takes")
    without, shaped = SETTLE_OPEN_S + measure_s, SETTLE_SHAPED_S + measure_s
    what = "your own traffic, which should fill the line" if own_traffic else "then idle"
    note(
        f"measuring for {prover.total_s:.0f} s: {options.rounds} times {without:g} s without and "
        f"{shaped:g} s with it, {what}"
    )
    display = Display(quiet=options.quiet)
    with _load(options, settings["auth"], prover.total_s) as load:
        proving = _Proving(prover, load, display, as_json=options.as_json)
        shape(settings, proving.step)
    display.close()
    _check(proving.result)


def _load(options: StartOptions, auth: str | None, total_s: float) -> AbstractContextManager[LineLoad | None]:
    """The load that was asked for; None for the user's own traffic."""
    if options.run is not None:
        return load_by_command(options.run)
    if options.server is not None:
        return load_from_server(address_of(options.server), auth, total_s)
    return nullcontext()


class _Proving:
    """Leads a shaper by a prover, and gives its orders after that.

    Attributes:
        result: the proof, or why there is none; None until the measurement is complete.
    """

    def __init__(self, prover: Prover, load: LineLoad | None, display: Display, *, as_json: bool) -> None:
        self.result: Proof | str | None = None
        self._prover = prover
        self._load = load
        self._display = display
        self._as_json = as_json

    def step(self, view: ShaperView) -> Wanted:
        """The order to the shaper after this view."""
        self._display.show(view)
        if self.result is not None:
            return "continue"
        wanted = self._prover.step(view)
        failure = None if self._load is None else self._load.failure()
        if self._load is not None and self._prover.kind == "idle":
            self._load.end()
        if self._prover.kind is not None and failure is None:
            return wanted
        self.result = failure or self._prover.proof()
        self._display.close()
        show_proof(self.result, as_json=self._as_json)
        if isinstance(self.result, str) or self.result.verdict is not None:
            return "stop"
        note(f"{view['device']} is shaped from now on; end it with Ctrl-C")
        return "shape"


def _check(result: Proof | str | None) -> None:
    """Refuses what is no proof that the shaper helps."""
    if result is None:
        raise ShapeError("it was ended before the measurement was complete; everything is as it was")
    if isinstance(result, str):
        raise ShapeError(f"nothing could be proved, and everything is as it was: {result}")
    if result.verdict is not None:
        raise ShapeError(f"everything is as it was: {result.verdict}")
