"""Whether a shaper helps: the line under load, in turn without and with it, and idle.

Stages of the two kinds alternate, so that what else changes meanwhile falls on both. The increase of the
round trip is that above its mean while the line is idle, a reflector at a time; a second's mean is one value,
since the round trips within a second are not independent of each other. Where the load is the user's own
traffic, which nobody ends, the least round trip stands for the idle line's.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weirlab.stats.comparison import Factor, factor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weirlab.shape.view import ShaperView, Wanted


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Result of the measurement.

    Attributes:
        idle_ms: mean round trip of the idle line.
        before_ms, after_ms: mean increase of the round trip under load, without and with the shaper.
        factor: before / after, with its 95 % interval.
        before_mbps, after_mbps: what crossed the line under load, both directions together.
        cost: share of it that the shaper costs, 0 to 1; below 0 if it gains.
        late_ms: how late the shaper's own process was at worst while it shaped: a busy machine's part of
            `after_ms`.
        verdict: None if the shaper helps, otherwise why it is undone.
    """

    idle_ms: float
    before_ms: float
    after_ms: float
    factor: Factor
    before_mbps: float
    after_mbps: float
    cost: float
    late_ms: float
    verdict: str | None


@dataclass(frozen=True)
class Stage:
    """A stretch of time: `kind` is `before`, `after` or `idle`; what is measured comes behind `settle`."""

    kind: str
    settle_s: float
    measure_s: float


class Prover:
    """Leads a shaper through the stages. It is shown views, and says what is to be done."""

    def __init__(self, *, rounds: int, measure_s: float, max_cost: float, own_traffic: bool = False) -> None:
        """So many rounds, in which each kind is measured so long; a cost above `max_cost` is too much.

        With `own_traffic` nobody makes a load, and nobody ends it: the line is never idle.
        """
        one = [Stage("before", SETTLE_OPEN_S, measure_s), Stage("after", SETTLE_SHAPED_S, measure_s)]
        idle = [] if own_traffic else [Stage("idle", SETTLE_OPEN_S, measure_s)]
        self._stages = [*one * rounds, *idle]
        self._own_traffic = own_traffic
        self._late_ns = 0
        self._max_cost = max_cost
        self._stage = -1
        self._began = 0.0
        self._first: float | None = None
        self._loaded = own_traffic
        self._delays: dict[str, list[tuple[int, float, int]]] = defaultdict(list)
        self._loads: dict[str, list[float]] = defaultdict(list)

    @property
    def total_s(self) -> float:
        """How long it takes from the moment at which the load is there."""
        return sum(stage.settle_s + stage.measure_s for stage in self._stages)

    @property
    def kind(self) -> str | None:
        """Step that is being measured; None after the end."""
        return self._stages[self._stage].kind if self._stage < len(self._stages) else None

    def step(self, view: ShaperView) -> Wanted:
        """Takes a view in: what the shaper is to do, `continue`, `open` or `shape`."""
        now = view["t_ns"] / 1e9
        sides = [side for side in view["sides"] if side is not None]
        load_mbps = sum(side["load_bps"] for side in sides) / 1e6
        if self._stage == 0 and not self._loaded:
            self._await_load(load_mbps, now)
        if self._stage < 0 or now >= self._began + self._length():
            self._stage += 1
            self._began = now
            return "shape" if self.kind == "after" else "open"
        stage = self._stages[self._stage]
        begins = self._began + stage.settle_s
        if now >= begins:
            for sent, rtt, source in view["delays"]:
                if sent / 1e9 >= begins and source < FIRST_PASSIVE:
                    self._delays[stage.kind].append((sent, rtt / 1e6, source))
            if stage.kind == "after":
                self._late_ns = max(self._late_ns, view["late_ns"])
            self._loads[stage.kind].append(load_mbps)
        return "continue"

    def _await_load(self, load_mbps: float, now: float) -> None:
        """The first stage begins once there is traffic: a busy machine starts the load late."""
        self._first = now if self._first is None else self._first
        self._loaded = load_mbps >= MIN_MBPS or now >= self._first + MAX_START_S
        self._began = now

    def _length(self) -> float:
        stage = self._stages[self._stage]
        return stage.settle_s + stage.measure_s

    def proof(self) -> Proof | str:
        """Result, or the reason why there is none."""
        rates = [float(np.mean(self._loads[kind] or [0.0])) for kind in ("before", "after", "idle")]
        if self._own_traffic and rates[0] < MIN_OWN_MBPS:
            return (
                f"your own traffic was {rates[0]:.2f} Mbit/s, which shows nothing: name a `weir serve` with "
                "`--server`, or a command that loads the line with `--run`"
            )
        if rates[0] < MIN_MBPS or rates[0] < MIN_LOAD_RATIO * rates[2]:
            return (
                f"the line was not loaded: {rates[0]:.2f} Mbit/s crossed it, and {rates[2]:.2f} Mbit/s while "
                "it was to be idle; `--run` takes a command that loads it"
            )
        idle = self._idle()
        if not idle:
            return "nobody answered probes while the line was idle: name a reflector that does"
        before, after = (_increases(self._delays[kind], idle) for kind in ("before", "after"))
        if not before or not after:
            return "nobody who answered probes on the idle line did so under load: name a reflector that does"
        found = factor(before, after, same=False)
        cost = 1 - rates[1] / rates[0]
        return Proof(
            idle_ms=float(np.mean(list(idle.values()))),
            before_ms=float(np.mean(before)),
            after_ms=float(np.mean(after)),
            factor=found,
            before_mbps=rates[0],
            after_mbps=rates[1],
            cost=cost,
            late_ms=self._late_ns / 1e6,
            verdict=self._verdict(float(np.mean(before)), float(np.mean(after)), found, cost),
        )

    def _idle(self) -> dict[int, float]:
        """The round trip of the idle line by source, ms."""
        kinds = ("before", "after") if self._own_traffic else ("idle",)
        by_source: dict[int, list[float]] = defaultdict(list)
        for _, rtt, source in (delay for kind in kinds for delay in self._delays[kind]):
            by_source[source].append(rtt)
        usual = min if self._own_traffic else np.mean
        return {source: float(usual(rtts)) for source, rtts in by_source.items()}

    def _verdict(self, before: float, after: float, found: Factor, cost: float) -> str | None:
        if after >= before or (found.low is not None and found.low <= 1):
            what = f"the increase was {before:.1f} ms without it, {after:.1f} ms with it"
            return f"latency did not improve: {what}"
        if cost > self._max_cost:
            return f"throughput fell by {cost:.1%}, and {self._max_cost:.1%} is allowed"
        return None


def _increases(delays: Iterable[tuple[int, float, int]], idle: dict[int, float]) -> list[float]:
    """The mean increase of each second, ms."""
    seconds: dict[int, list[float]] = defaultdict(list)
    for sent, rtt, source in delays:
        if source in idle:
            seconds[sent // 1_000_000_000].append(rtt - idle[source])
    return [float(np.mean(values)) for _, values in sorted(seconds.items())]


SETTLE_OPEN_S = 3.0
"""Time until the queue of a bloated line is full, or empty again, in seconds."""
SETTLE_SHAPED_S = 5.0
"""Time in which a controller finds the rate of an unknown line, in seconds; docs/shape.md has figures."""
MAX_START_S = 20.0
"""Seconds to wait for a load that was started; if it never comes, the proof says so."""
FIRST_PASSIVE = 1 << 16
"""Sources from here on are the user's connections (crates/shape/src/passive.rs): none of them is idle."""
MIN_MBPS = 0.1
MIN_OWN_MBPS = 1.0
"""Traffic that may fill a line: a call alone, or a page now and then, is less."""
MIN_LOAD_RATIO = 2.0
"""A loaded line carries so much more than an idle one."""
