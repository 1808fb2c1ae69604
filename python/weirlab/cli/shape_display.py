"""What `weir shape` shows: a running shaper, what would be done, and whether it helps."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from rich.live import Live

from weirlab.shape import framing_of, line_of, table_of
from weirlab.shape.settings import NATIVE
from weirlab.shape.view import LATE_NS
from weirlab.ui import console, warn
from weirlab.ui.terminal import messages

if TYPE_CHECKING:
    from weirlab.cli.shape_settings import StartOptions
    from weirlab.shape import ShaperView
    from weirlab.shape.prove import Proof
    from weirlab.shape.running import Choice


class Display:
    """Shows views as they come: a table that changes on a terminal, a line a second elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        """Has shown nothing yet; with `quiet` it never does."""
        self._live = None if quiet or not messages.is_terminal else Live(console=messages, transient=True)
        self._quiet = quiet
        self._next_ns = 0
        self._delays: list[tuple[int, int, int]] = []

    def show(self, view: ShaperView) -> None:
        """Shows a view."""
        if self._live is not None:
            self._live.start()
            self._live.update(table_of(view))
        elif not self._quiet:
            self._delays += view["delays"]
            if view["t_ns"] >= self._next_ns:
                self._next_ns = view["t_ns"] + 1_000_000_000
                click.echo(line_of({**view, "delays": self._delays}), err=True)
                self._delays = []

    def close(self) -> None:
        """Takes the table away."""
        if self._live is not None:
            self._live.stop()


def show_dry_run(settings: dict[str, Any], choice: Choice, options: StartOptions) -> None:
    """Prints what would be done."""
    if options.as_json:
        click.echo(json.dumps({"settings": settings, **choice}, indent=2))
        return
    console.print(f"backend {choice['backend']}: {choice['why']}")
    for name, queue in zip(("up", "down"), choice["queues"], strict=True):
        console.print(f"{name}: {'left alone' if queue is None else queue}")
    console.print(f"rates: {_rates_said(settings['control'])}")
    framing = settings["framing"]
    detected = options.framing in (None, "auto")
    why = f" ({framing_of(settings['device'])['why']})" if detected else ""
    console.print(f"framing: {framing['overhead_bytes']} bytes a packet{why}")
    probed = ", ".join(next(iter(one.values())) for one in settings["reflectors"])
    console.print(f"probes: {probed or 'public resolvers, and the hosts that the traffic goes to'}")
    for line in _changes(choice["backend"], settings):
        console.print(line)


def _rates_said(control: dict[str, Any]) -> str:
    """How rates are found, in words."""
    [(kind, said)] = control.items()
    stays = "fixed at " if kind == "auto" else ""
    rates = [
        f"{way} {how}{said[key] / 1e6:g} Mbit/s"
        for way, side in NATIVE.items()
        for key, how in ((f"{side}_max_bps", "at most "), (f"{side}_bps", stays))
        if said.get(key) is not None
    ]
    found = f"found by `auto`, mode {said['mode']}" if kind == "auto" else "fixed"
    return ", ".join([found, *rates])


def _changes(backend: str, settings: dict[str, Any]) -> list[str]:
    """What would be changed on this machine, and what becomes of it."""
    table = f"weir-shape-{settings['device']}"
    if backend == "userspace":
        return [f"table that would be made, and goes with the process: inet {table}"]
    back = "what is at the device's root and way in would be put back at the end"
    if settings["rules"] is None:
        return [back]
    return [
        back,
        f"tables that would be made for rules, and go with the process: inet and netdev {table}",
    ]


def show_proof(result: Proof | str, *, as_json: bool) -> None:
    """Prints a proof; a text says why there is none, which only JSON tells."""
    if as_json:
        told = {"verdict": result} if isinstance(result, str) else asdict(result)
        click.echo(json.dumps(told, indent=2))
    elif not isinstance(result, str):
        factor = result.factor
        interval = "" if factor.ends is None else f" (95 % interval {factor.ends})"
        times = (
            "none: latency does not rise with it"
            if factor.factor is None
            else f"{factor.factor:.1f}{interval}"
        )
        latency = f"{result.before_ms:.1f} ms without it, {result.after_ms:.1f} ms with it"
        rates = f"{result.before_mbps:.2f} Mbit/s without it, {result.after_mbps:.2f} Mbit/s with it"
        console.print(f"round trip, idle     {result.idle_ms:.1f} ms")
        console.print(f"increase under load  {latency}")
        console.print(f"factor               {times}")
        console.print(f"throughput           {rates} ({-result.cost:+.1%})")
        if result.late_ms >= LATE_NS / 1e6:
            warn(f"this machine is busy: the shaper itself was up to {result.late_ms:.0f} ms late")


def decision_line(logged: dict[str, Any]) -> str:
    """A decision of a log in one line."""
    what = logged["decision"]
    rate = "open" if what["rate_bps"] is None else f"{what['rate_bps'] / 1e6:.2f} Mbit/s"
    return (
        f"{logged['t'] / 1e9:9.2f} s  {what['side']:4} {rate:15} {what['state'].replace('_', ' '):12} "
        f"{what['reason']} {what['value']:.3g}"
    )
