"""`weir shape IFACE --prove`: a shaper that is measured first, and goes on only if it helps."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.cli.shape_display import Display, show_proof
from weirlab.cli.shape_settings import address_of
from weirlab.errors import ShapeError
from weirlab.shape.asked import asked
from weirlab.shape.load import load_by_command, load_from_server
from weirlab.shape.proving import proof_of, step
from weirlab.shape.running import shape
from weirlab.shape.settings import time_of
from weirlab.ui import note

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from weirlab.cli.shape_settings import StartOptions
    from weirlab.shape import ShaperView
    from weirlab.shape.load import LineLoad
    from weirlab.shape.view import Wanted


def prover_of(settings: dict[str, Any], options: StartOptions) -> _native.Prover:
    """The prover that the options ask for.

    Raises:
        UsageError: if they cannot be had, or the measurement takes longer than the shaper is to run.
    """
    prover = _native.Prover(
        rounds=options.rounds,
        measure_ns=time_of("load", options.load),
        max_cost=options.max_cost,
        own_traffic=options.run is None and options.server is None,
    )
    asked(lambda: prover.check_time(settings["time_ns"]))
    return prover


def prove(settings: dict[str, Any], options: StartOptions, prover: _native.Prover) -> None:
    """Measures without and with the shaper, and shapes on until it is ended if the shaper helps.

    Raises:
        ShapeError: if it does not help, or if nothing could be proved. What was there before is there again.
    """
    note(prover.plan)
    display = Display(quiet=options.quiet)
    with _load(options, settings["auth"], prover.total_ns / 1e9) as load:
        proving = _Proving(prover, load, display, as_json=options.as_json)
        _, unkept = shape(settings, proving.step)
    display.close()
    if unkept is not None:
        note(f"warning: {unkept}")
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

    def __init__(
        self, prover: _native.Prover, load: LineLoad | None, display: Display, *, as_json: bool
    ) -> None:
        self.result: _native.Proof | str | None = None
        self._prover = prover
        self._load = load
        self._display = display
        self._as_json = as_json

    def step(self, view: ShaperView) -> Wanted:
        """The order to the shaper after this view."""
        self._display.show(view)
        if self.result is not None:
            return "continue"
        wanted = step(self._prover, view)
        failure = None if self._load is None else self._load.failure()
        if self._load is not None and self._prover.is_past_load:
            self._load.end()
        if not self._prover.has_ended and failure is None:
            return wanted
        self.result = failure or proof_of(self._prover)
        self._display.close()
        # Who read it, or the terminal, may be gone: that ends no shaper that helps.
        with suppress(OSError):
            show_proof(self.result, as_json=self._as_json)
        if isinstance(self.result, str) or self.result["verdict"] is not None:
            return "stop"
        note(f"{view['device']} is shaped from now on; end it with Ctrl-C")
        return "shape"


def _check(result: _native.Proof | str | None) -> None:
    """Refuses what is no proof that the shaper helps."""
    if result is None:
        raise ShapeError("it was ended before the measurement was complete; everything is as it was")
    if isinstance(result, str):
        raise ShapeError(f"nothing could be proved, and everything is as it was: {result}")
    if result["verdict"] is not None:
        raise ShapeError(f"everything is as it was: {result['verdict']}")
