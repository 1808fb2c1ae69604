"""Statements of the study `speedtest-aqm` as claims on figures of cells.

A claim that takes a `sender` is made for that congestion control of the uploads: `bbr`, or None for CUBIC.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from weirstudies.judge import Claim, by_seed
from weirstudies.speedtest_aqm.calibration import reported_ms, true_ms
from weirstudies.speedtest_aqm.design import Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirlab.scenario import Direction
    from weirstudies.speedtest_aqm.figures import Run, Spread
    from weirstudies.speedtest_aqm.known import Figure, Known

    Values = dict[int, float]


def _cell(queue: str, rate: int, **more: Any) -> Cell:
    usual: dict[str, Any] = {"rtt_ms": 20, "burst": "g0", "cross": "none", "method": "ndt7"}
    return Cell(rate_mbps=rate, queue=queue, **(usual | more))


def _first(queue: str, rate: int, sender: str | None) -> Cell:
    """A cell of the authors' first set."""
    return _cell(queue, rate, rtt_ms=10, client_cc=sender)


def _cross(queue: str, rate: int, sender: str | None = "bbr") -> Cell:
    """A cell of the authors' set with cross traffic."""
    return _cell(queue, rate, burst="g2", cross="cubic-up", client_cc=sender)


def upload_mbps(run: Run) -> float | None:
    """Upload in Mbit/s as the method reports it; None if it reports none."""
    value = run.result.get("upload_mbps")
    return float(value) if value is not None else None


def srtt_ms(run: Run) -> float | None:
    """Mean of the upload's SRTT."""
    found = _spread(run, "up", "srtt")
    return found.mean if found else None


def _spike_ms(run: Run) -> float | None:
    """Greatest SRTT of the upload."""
    found = _spread(run, "up", "srtt")
    return found.quantile(1.0) if found else None


def _shown_ms(run: Run) -> float | None:
    """Latency that the client shows: MinRTT of the server's TCP."""
    value = run.result.get("latency_ms")
    return float(value) if value is not None else None


def _true_ms(run: Run) -> float | None:
    return true_ms(run, "up", "own")


def _goodput(run: Run) -> float | None:
    """The upload's Mbit/s while it ran."""
    loaded = run.ways.get("up")
    return loaded.mbps if loaded else None


def _unsteadiness(run: Run) -> float | None:
    """Range from the 5th to the 95th percentile of the instantaneous rate over its median."""
    found = _spread(run, "up", "rates")
    if found is None or found.median <= 0:
        return None
    return (found.quantile(0.95) - found.quantile(0.05)) / found.median


def _is_truncated(run: Run) -> float | None:
    return float(bool(run.result.get("truncated", {}).get("upload")))


def _spread(run: Run, way: Direction, which: str) -> Spread | None:
    loaded = run.ways.get(way)
    found: Spread | None = getattr(loaded, which) if loaded else None
    return found


def _over(values: Values, divisor: float) -> Values:
    return {seed: value / divisor for seed, value in values.items()}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _range(values: Sequence[float]) -> float:
    return max(values) - min(values)


def _relative_range(values: Sequence[float]) -> float:
    return _range(values) / _mean(values)


def _runs_of(known: Known, cells: Sequence[Cell], figure: Figure) -> Values:
    """The figure of every run of the cells, each a repetition of its own."""
    found: Values = {}
    for cell in cells:
        found.update(
            {len(found) + place: value for place, value in enumerate(known.values(cell, figure).values())}
        )
    return found


def throughput(known: Known, sender: str | None) -> list[Claim]:
    """Uploads through sfq are those of the authors."""
    published = known.of.published["g0"]
    return [
        Claim(
            what=f"of theirs at {rate}",
            ours=_over(
                known.values(_first("sfq", rate, sender), upload_mbps),
                published.at("upload_mbps", "sfq", rate),
            ),
            above=0.95,
            below=1.05,
        )
        for rate in COMPARED
    ]


def codel_costs(known: Known, sender: str | None) -> list[Claim]:
    """A single flow through codel reports less than one through sfq."""
    return [
        Claim(
            what=f"at {rate}",
            ours=known.values(_first("codel", rate, sender), upload_mbps),
            other=known.values(_first("sfq", rate, sender), upload_mbps),
            below=0.97,
        )
        for rate in COMPARED[:4]
    ]


def alike(known: Known, sender: str | None, rates: Sequence[int]) -> list[Claim]:
    """Uploads through fq_codel and codel are alike at these rates."""
    return [
        Claim(
            what=f"at {rate}",
            ours=known.values(_first("fq_codel", rate, sender), upload_mbps),
            other=known.values(_first("codel", rate, sender), upload_mbps),
            above=0.95,
            below=1.05,
        )
        for rate in rates
    ]


def no_burst(known: Known) -> list[Claim]:
    """Uploads without a burst stay below 700 Mbit/s at 800 and 900."""
    return [
        Claim(what=f"{queue} {rate}", ours=known.values(_first(queue, rate, None), upload_mbps), below=700)
        for queue in ("codel", "fq_codel", "sfq")
        for rate in (800, 900)
    ]


def min_rtt(known: Known, sender: str | None) -> list[Claim]:
    """The latency shown hardly differs over queues and rates, while round trips under load do."""
    queues = QUEUES_OF_AUTHORS if sender is None else ("codel", "fq_codel", "sfq")
    cells = [_first(queue, rate, sender) for queue in queues for rate in COMPARED]
    shown, true = (
        by_seed([known.values(cell, figure) for cell in cells], _range) for figure in (_shown_ms, _true_ms)
    )
    return [
        Claim(what="range of the latency shown, ms", ours=shown, below=0.5),
        Claim(what="range of the median round trips, ms", ours=true, above=2),
    ]


def sfq_srtt(known: Known, sender: str | None) -> list[Claim]:
    """SRTT through sfq is that of the authors, and falls with the rate."""
    published = known.of.published["g0"]
    ours = {rate: known.values(_first("sfq", rate, sender), srtt_ms) for rate in COMPARED}
    near = [
        Claim(
            what=f"of theirs at {rate}",
            ours=_over(ours[rate], published.at("srtt_ms", "sfq", rate)),
            above=0.8,
            below=1.2,
        )
        for rate in COMPARED
    ]
    falls = [
        Claim(what=f"{rate} over {rate + 400}", ours=ours[rate], other=ours[rate + 400], above=1)
        for rate in (100, 200)
    ]
    return [*near, *falls]


def fair_share(known: Known) -> list[Claim]:
    """An upload beside five flows gets a sixth under queues for each flow."""
    return [
        Claim(
            what=f"{queue} {rate}",
            ours=_over(known.values(_cross(queue, rate), _goodput), rate / 6),
            above=0.9,
            below=1.1,
        )
        for queue in ("fq_codel", "sfq")
        for rate in COMPARED
    ]


def bbr_share(known: Known) -> list[Claim]:
    """A BBR upload beside five CUBIC flows takes more than a sixth under codel."""
    return [
        Claim(
            what=f"of a sixth at {rate}",
            ours=_over(known.values(_cross("codel", rate), _goodput), rate / 6),
            above=1.8,
            below=3.5,
        )
        for rate in (100, 200, 300)
    ]


def baseline(known: Known) -> list[Claim]:
    """SRTT beside cross traffic is shorter under pfifo 100 than under codel."""
    return [
        Claim(
            what=f"at {rate}",
            ours=known.values(_cross("pfifo-100", rate), srtt_ms),
            other=known.values(_cross("codel", rate), srtt_ms),
            below=1,
        )
        for rate in COMPARED[1:]
    ]


def bloated(known: Known) -> list[Claim]:
    """SRTT beside cross traffic is shorter under codel than under a pfifo of four BDPs."""
    return [
        Claim(
            what=f"at {rate}",
            ours=known.values(_cross("codel", rate), srtt_ms),
            other=known.values(_cross("pfifo-4bdp", rate), srtt_ms),
            below=1,
        )
        for rate in COMPARED
    ]


def steadier(known: Known) -> list[Claim]:
    """Rates and spikes of SRTT are steadier under queues for each flow than under the others."""

    def average(queue: str, figure: Figure) -> Values:
        return by_seed([known.values(_cross(queue, rate), figure) for rate in COMPARED], _mean)

    return [
        Claim(
            what=f"{name}, {fair} over {plain}",
            ours=average(fair, figure),
            other=average(plain, figure),
            below=1,
        )
        for name, figure in (("range of rate", _unsteadiness), ("greatest SRTT", _spike_ms))
        for fair in ("fq_codel", "sfq")
        for plain in ("codel", "pfifo-100")
    ]


def burst(known: Known, sender: str | None, rates: Sequence[int]) -> list[Claim]:
    """Uploads are higher with the burst than without it at these rates."""
    return [
        Claim(
            what=f"{queue} {rate}",
            ours=known.values(_cell(queue, rate, burst="g2", client_cc=sender), upload_mbps),
            other=known.values(_cell(queue, rate, client_cc=sender), upload_mbps),
            above=1,
        )
        for queue in QUEUES_OF_AUTHORS
        for rate in rates
    ]


def truncated(known: Known) -> list[Claim]:
    """Most tests through codel and fq_codel end early at 500 and 600 Mbit/s."""
    cells = [_first(queue, rate, None) for queue in ("codel", "fq_codel") for rate in (500, 600)]
    return [Claim(what="share of runs", ours=_runs_of(known, cells, _is_truncated), above=0.5, share=True)]


def flow_matters(known: Known) -> list[Claim]:
    """Packets of the load wait longer than pings under queues for each flow, and as long under others."""

    def own_over_other(way: Direction, run: Run) -> float | None:
        own, other = true_ms(run, way, "own"), true_ms(run, way, "other")
        return own / other if own is not None and other else None

    def ratio(queue: str) -> Values:
        cells = known.cells(lambda one: one.queue == queue and one.cross == "none" and one.rtt_ms == 20)
        parts = [known.values(cell, partial(own_over_other, way)) for cell in cells for way in WAYS]
        return by_seed(parts, median, least=1)

    fair = [Claim(what=queue, ours=ratio(queue), above=1.05) for queue in ("fq_codel", "sfq", "cake")]
    deep = ("pfifo-1bdp", "pfifo-4bdp")
    return [*fair, *(Claim(what=queue, ours=ratio(queue), above=0.95, below=1.05) for queue in deep)]


def no_loaded_latency(known: Known, rate: int) -> list[Claim]:
    """Most of Cloudflare's tests at this rate report no loaded latency of the download."""
    metric = known.of.method_named("cloudflare").metric[1]

    def has_one(run: Run) -> float | None:
        return float(reported_ms(run, metric) is not None)

    cells = known.cells(
        lambda one: one.method == "cloudflare" and one.cross == "none" and one.rate_mbps == rate
    )
    return [
        Claim(
            what=f"share of runs with one at {rate}",
            ours=_runs_of(known, cells, has_one),
            below=0.5,
            share=True,
        )
    ]


def rpm_self(known: Known) -> list[Claim]:
    """RPM's self probes report more than the path's round trip under every queue."""
    metric = known.of.method_named("rpm").metric[0]

    def told_over_true(run: Run) -> float | None:
        told, real = reported_ms(run, metric), true_ms(run, "down", "own")
        return told / real if told is not None and real else None

    cells = known.cells(lambda one: one.method == "rpm" and one.cross == "none")
    return [
        Claim(
            what=queue,
            ours=by_seed(
                [known.values(cell, told_over_true) for cell in cells if cell.queue == queue],
                median,
                least=1,
            ),
            above=1.5,
        )
        for queue in (one.name for one in known.of.queue)
    ]


def _over_queues(
    known: Known,
    figure: Figure,
    together: Callable[[Sequence[float]], float],
    make: Callable[[str], Cell],
) -> Values:
    return by_seed([known.values(make(queue), figure) for queue in QUEUES_OF_AUTHORS], together)


def _captions_spread(known: Known, rate: int, burst: str, cross: str, sender: str | None) -> Values:
    """Range of the uploads over the four queues, over their mean, seed by seed."""

    def make(queue: str) -> Cell:
        return _cell(queue, rate, burst=burst, cross=cross, client_cc=sender)

    return _over_queues(known, upload_mbps, _relative_range, make)


def _higher_beside_traffic(known: Known, rate: int, burst: str, sender: str | None) -> Values:
    """By how much the spread over queues is higher with burst and cross traffic, seed by seed."""
    beside = _captions_spread(known, rate, "g2", "cubic-up", sender)
    alone = _captions_spread(known, rate, burst, "none", sender)
    return {seed: beside[seed] - alone[seed] for seed in beside if seed in alone}


def figure_1(known: Known, sender: str | None) -> list[Claim]:
    """Figure 1: uploads spread less over queues than those of figure 5, and leave the line underused."""
    lower = [
        Claim(
            what=f"spread at {rate} less than that of figure 5 by",
            ours=_higher_beside_traffic(known, rate, "g0", sender),
            above=0,
        )
        for rate in CAPTIONED
    ]
    return [*lower, _use_of_the_line(known, sender)]


def figure_1_by_ratio(known: Known, sender: str | None) -> list[Claim]:
    """Figure 1 as it was judged first: by the ratio of the spreads."""
    lower = [
        Claim(
            what=f"spread at {rate} over that of figure 5",
            ours=_captions_spread(known, rate, "g0", "none", sender),
            other=_captions_spread(known, rate, "g2", "cubic-up", sender),
            below=1,
        )
        for rate in CAPTIONED
    ]
    return [*lower, _use_of_the_line(known, sender)]


def _use_of_the_line(known: Known, sender: str | None) -> Claim:
    """Uploads without burst and cross traffic use less than nine tenths of the line in the mean."""
    use = by_seed(
        [
            _over(known.values(_cell(queue, rate, client_cc=sender), upload_mbps), rate)
            for queue in QUEUES_OF_AUTHORS
            for rate in CAPTIONED
        ],
        _mean,
    )
    return Claim(what="mean use of the line", ours=use, below=0.9)


def spikes(known: Known, burst: str, sender: str | None) -> list[Claim]:
    """Figures 2 and 4: the greatest SRTT with this burst stays below 40 ms."""

    def greatest(rate: int) -> Values:
        def make(queue: str) -> Cell:
            return _cell(queue, rate, burst=burst, client_cc=sender)

        return _over_queues(known, _spike_ms, max, make)

    return [Claim(what=f"{rate} Mbit/s, ms", ours=greatest(rate), below=40) for rate in CAPTIONED]


def figure_3(known: Known, sender: str | None) -> list[Claim]:
    """Figure 3: uploads are higher with the burst than without it."""
    return burst(known, sender, CAPTIONED)


def figure_5(known: Known, sender: str | None) -> list[Claim]:
    """Figure 5: uploads spread more over queues than those of figure 3."""
    return [
        Claim(
            what=f"spread at {rate} more than that of figure 3 by",
            ours=_higher_beside_traffic(known, rate, "g2", sender),
            above=0,
        )
        for rate in CAPTIONED
    ]


def figure_5_by_ratio(known: Known, sender: str | None) -> list[Claim]:
    """Figure 5 as it was judged first: by the ratio of the spreads."""
    return [
        Claim(
            what=f"spread at {rate} over that of figure 3",
            ours=_captions_spread(known, rate, "g2", "cubic-up", sender),
            other=_captions_spread(known, rate, "g2", "none", sender),
            above=1,
        )
        for rate in CAPTIONED
    ]


WAYS: tuple[Direction, Direction] = ("down", "up")
RATES = tuple(range(100, 1000, 100))
COMPARED = (100, 200, 300, 400, 500, 600)
"""Above, the authors' router was at the end of its processor."""
CAPTIONED = (100, 300, 500)
"""Rates at which the captions of the paper's figures are judged."""

QUEUES_OF_AUTHORS = ("codel", "fq_codel", "pfifo-100", "sfq")
