"""The statements of the study `speedtest-aqm` with their rules: what must lie where for each to be seen.

The sender of the authors' uploads is an assumption. Their raw data of the first set (packets out of order, a
smoothed round trip of twice the shortest one) speak for BBR, so that what is theirs is judged by that sender,
and shown with CUBIC, the usual one, beside it. A rule's bound was written before its cells were run; of the
captions' rules, single runs with CUBIC at 100, 300 and 600 Mbit/s were known.
"""

from __future__ import annotations

from dataclasses import dataclass
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

    Claims = Callable[["Known"], list[Claim]]
    Values = dict[int, float]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A statement and when it counts as seen.

    Attributes:
        says: what it says.
        by: whose it is: the authors', or our reading of their set-up.
        rule: when it counts as seen, in words.
        claims: the same as claims on figures; all must hold.
        others: rules that do not count, whose verdicts are shown beside: which, and their claims.
        changed: what changed of the rule after a result was known, and why; empty if nothing did.
        note: what a reader must know beside the verdict.
    """

    says: str
    by: str
    rule: str
    claims: Claims
    others: tuple[tuple[str, Claims], ...] = ()
    changed: str = ""
    note: str = ""


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
    """What the method says of the upload."""
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
    """What the client shows as latency: MinRTT of the server's TCP."""
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


def _throughput(known: Known, sender: str | None) -> list[Claim]:
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


def _codel_costs(known: Known, sender: str | None) -> list[Claim]:
    return [
        Claim(
            what=f"at {rate}",
            ours=known.values(_first("codel", rate, sender), upload_mbps),
            other=known.values(_first("sfq", rate, sender), upload_mbps),
            below=0.97,
        )
        for rate in COMPARED[:4]
    ]


def _alike(known: Known, sender: str | None, rates: Sequence[int]) -> list[Claim]:
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


def _no_burst(known: Known) -> list[Claim]:
    return [
        Claim(what=f"{queue} {rate}", ours=known.values(_first(queue, rate, None), upload_mbps), below=700)
        for queue in ("codel", "fq_codel", "sfq")
        for rate in (800, 900)
    ]


def _min_rtt(known: Known, sender: str | None) -> list[Claim]:
    queues = QUEUES_OF_AUTHORS if sender is None else ("codel", "fq_codel", "sfq")
    cells = [_first(queue, rate, sender) for queue in queues for rate in COMPARED]
    shown, true = (
        by_seed([known.values(cell, figure) for cell in cells], _range) for figure in (_shown_ms, _true_ms)
    )
    return [
        Claim(what="range of the latency shown, ms", ours=shown, below=0.5),
        Claim(what="range of the median round trips, ms", ours=true, above=2),
    ]


def _sfq_srtt(known: Known, sender: str | None) -> list[Claim]:
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


def _fair_share(known: Known) -> list[Claim]:
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


def _bbr_share(known: Known) -> list[Claim]:
    return [
        Claim(
            what=f"of a sixth at {rate}",
            ours=_over(known.values(_cross("codel", rate), _goodput), rate / 6),
            above=1.8,
            below=3.5,
        )
        for rate in (100, 200, 300)
    ]


def _baseline(known: Known) -> list[Claim]:
    return [
        Claim(
            what=f"at {rate}",
            ours=known.values(_cross("pfifo-100", rate), srtt_ms),
            other=known.values(_cross("codel", rate), srtt_ms),
            below=1,
        )
        for rate in COMPARED[1:]
    ]


def _bloated(known: Known) -> list[Claim]:
    return [
        Claim(
            what=f"at {rate}",
            ours=known.values(_cross("codel", rate), srtt_ms),
            other=known.values(_cross("pfifo-4bdp", rate), srtt_ms),
            below=1,
        )
        for rate in COMPARED
    ]


def _steadier(known: Known) -> list[Claim]:
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


def _burst(known: Known, sender: str | None, rates: Sequence[int]) -> list[Claim]:
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


def _truncated(known: Known) -> list[Claim]:
    cells = [_first(queue, rate, None) for queue in ("codel", "fq_codel") for rate in (500, 600)]
    return [Claim(what="share of runs", ours=_runs_of(known, cells, _is_truncated), above=0.5, share=True)]


def _flow_matters(known: Known) -> list[Claim]:
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


def _no_loaded_latency(known: Known, rate: int) -> list[Claim]:
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


def _rpm_self(known: Known) -> list[Claim]:
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


def _figure_1(known: Known, sender: str | None) -> list[Claim]:
    lower = [
        Claim(
            what=f"spread at {rate} less than that of figure 5 by",
            ours=_higher_beside_traffic(known, rate, "g0", sender),
            above=0,
        )
        for rate in CAPTIONED
    ]
    use = by_seed(
        [
            _over(known.values(_cell(queue, rate, client_cc=sender), upload_mbps), rate)
            for queue in QUEUES_OF_AUTHORS
            for rate in CAPTIONED
        ],
        _mean,
    )
    return [*lower, Claim(what="mean use of the line", ours=use, below=0.9)]


def _spikes(known: Known, burst: str, sender: str | None) -> list[Claim]:
    def greatest(rate: int) -> Values:
        def make(queue: str) -> Cell:
            return _cell(queue, rate, burst=burst, client_cc=sender)

        return _over_queues(known, _spike_ms, max, make)

    return [Claim(what=f"{rate} Mbit/s, ms", ours=greatest(rate), below=40) for rate in CAPTIONED]


def _figure_3(known: Known, sender: str | None) -> list[Claim]:
    return _burst(known, sender, CAPTIONED)


def _figure_5(known: Known, sender: str | None) -> list[Claim]:
    return [
        Claim(
            what=f"spread at {rate} more than that of figure 3 by",
            ours=_higher_beside_traffic(known, rate, "g2", sender),
            above=0,
        )
        for rate in CAPTIONED
    ]


def _sent_with(claims: Callable[[Known, str | None], list[Claim]], sender: str | None) -> Claims:
    return lambda known: claims(known, sender)


def _by_sender(claims: Callable[[Known, str | None], list[Claim]]) -> dict[str, Any]:
    """The rule of a BBR sender, and of a CUBIC one beside it."""
    return {
        "claims": _sent_with(claims, "bbr"),
        "others": (("With a CUBIC sender", _sent_with(claims, None)),),
    }


WAYS: tuple[Direction, Direction] = ("down", "up")
RATES = tuple(range(100, 1000, 100))
COMPARED = (100, 200, 300, 400, 500, 600)
"""Above, the authors' router was at the end of its processor."""
CAPTIONED = (100, 300, 500)
"""Rates at which the captions of the paper's figures are judged."""

QUEUES_OF_AUTHORS = ("codel", "fq_codel", "pfifo-100", "sfq")

SENDER = "the sender is BBR, for which the authors' raw data speak; it was CUBIC before"

DIFFERENCE = (
    "lower and higher are judged by the difference of the spreads in place of their ratio, whose divisor is "
    "near 0"
)

RULES = (
    Rule(
        says="Upload through sfq without burst, one flow, 10 ms: 95, 190, 284, 377, 469, 548 Mbit/s at 100 "
        "to "
        "600",
        by="authors, data_json_3",
        rule="within 5 % of theirs at 100 to 600 Mbit/s",
        changed=SENDER,
        **_by_sender(_throughput),
    ),
    Rule(
        says="One flow through codel reports less than through sfq: 86 against 95 Mbit/s at 100, 349 against "
        "377 at 400",
        by="authors, data_json_3",
        rule="codel's share of sfq's upload is below 0.97 at 100 to 400 Mbit/s",
        changed=SENDER,
        note="Their tests through codel ended after 2.5 to 4.7 s on average, ours lasted 10 s. Whether "
        "that is "
        "the cause was not tested.",
        **_by_sender(_codel_costs),
    ),
    Rule(
        says="For a single flow fq_codel is codel",
        by="authors, data_json_3 (100 to 400 Mbit/s)",
        rule="uploads within 5 % of each other at 100 to 600 Mbit/s",
        changed=SENDER,
        claims=lambda known: _alike(known, "bbr", COMPARED),
        others=(("With a CUBIC sender, 100 to 900", lambda known: _alike(known, None, RATES)),),
        note="A single flow is in one queue of fq_codel's, which is a codel: here that is so by "
        "construction.",
    ),
    Rule(
        says="Without burst at 800 Mbit/s throughput ends below 700 Mbit/s, whatever the queue",
        by="authors, figure 1",
        rule="our uploads at 800 and 900 Mbit/s are below 700 (CUBIC)",
        claims=_no_burst,
        note="Theirs end at 605 to 650 from 700 on: a bucket of one packet costs their router a timer "
        "event a "
        "packet. That is its processor, which is no part of these scenarios.",
    ),
    Rule(
        says="MinRTT, which clients show as latency, carries no information about the queue: 10.5 to 10.6 "
        "ms in "
        "every cell",
        by="authors, data_json_3",
        rule="over queues and rates (10 ms, no cross traffic, 100 to 600 Mbit/s) the latency that the client "
        "shows differs by less than 0.5 ms, the median round trip under load by more than 2 ms",
        changed=SENDER,
        **_by_sender(_min_rtt),
    ),
    Rule(
        says="SRTT through sfq falls with the rate, as 127 packets take less and less time: 20.9 ms at 100, "
        "12.6 at 500",
        by="authors, data_json_3",
        rule="mean SRTT of the upload within 20 % of theirs at 100 to 600 Mbit/s, and falling",
        changed=SENDER,
        note="Ours is the sender's SRTT, theirs the server's, which samples only its few messages.",
        **_by_sender(_sfq_srtt),
    ),
    Rule(
        says="Beside five flows a queue for each flow gives the test a sixth of the rate",
        by="authors, g2, cross traffic",
        rule="the upload is within 10 % of rate/6 under fq_codel and sfq at 100 to 600 Mbit/s",
        claims=_fair_share,
    ),
    Rule(
        says="Beside five CUBIC flows a BBR sender takes two to three times its share under codel (100 to "
        "300 "
        "Mbit/s)",
        by="authors, g2, cross traffic",
        rule="1.8 to 3.5 times rate/6 at 100, 200 and 300 Mbit/s",
        claims=_bbr_share,
        note="Theirs: 2.8, 2.6 and 2.3 times.",
    ),
    Rule(
        says='The drop-tail baseline is shallower than codel\'s limit, so that "no AQM" shows the shorter '
        "round "
        "trips (25 to 28 ms against 40 to 60 at 200 to 600 Mbit/s)",
        by="ours, from the authors' scripts and SRTT series",
        rule="mean SRTT of the upload beside cross traffic under pfifo 100 is below that under codel at each "
        "rate from 200 to 600",
        claims=_baseline,
    ),
    Rule(
        says="Against a drop-tail queue of four bandwidth-delay products the order turns round: codel "
        "shortens "
        "round trips",
        by="ours",
        rule="mean SRTT of the upload beside cross traffic is lower under codel at each rate from 100 to 600",
        claims=_bloated,
    ),
    Rule(
        says="Under cross traffic fq_codel and sfq give steadier throughput and smaller spikes of latency "
        "than "
        "codel and no AQM",
        by="a summary of the paper",
        rule="5 to 95 % range of rate over median and greatest SRTT, both averaged over 100 to 600 Mbit/s, "
        "are "
        "smaller for each of the two than for each of the others",
        claims=_steadier,
        note="The authors' own series contradict smaller spikes than no AQM: without AQM they stay at 25 "
        "to 30 "
        "ms, through fq_codel they reach 75 to 150.",
    ),
    Rule(
        says="The bucket of 295 ms raises a test's average: what it lets through unqueued is 3 % of ten "
        "seconds",
        by="authors; the size of it ours, from their scripts",
        rule="uploads are higher with g2 than with g0 under pfifo 100, codel, fq_codel and sfq at 100 and "
        "500 "
        "Mbit/s (CUBIC)",
        claims=lambda known: _burst(known, None, (100, 500)),
    ),
    Rule(
        says="Through codel and fq_codel at 500 and 600 Mbit/s the client reports 42 to 158 Mbit/s",
        by="authors, data_json_3",
        rule="more than half of our runs there end before 9 s as theirs did (CUBIC)",
        claims=_truncated,
        note="Theirs ended after 0.7 to 1.4 s, when the server's messages stopped: a fault of that "
        "measurement, "
        "not of the queue.",
    ),
    Rule(
        says="A queue for each flow hides the load's own delay from a probe in another flow; one queue for "
        "all "
        "does not",
        by="ours",
        rule="median round trip of the load's packets over that of pings (median of the cells that were run, "
        "20 ms, no cross traffic): above 1.05 under fq_codel, sfq and cake, within 5 % of 1 under the deep "
        "pfifos",
        claims=_flow_matters,
    ),
    Rule(
        says="On fast links Cloudflare's test reports no loaded latency, as no set of requests lasts 250 ms",
        by="ours, from the engine's source",
        rule="less than half of the runs at 900 Mbit/s have a loaded latency for the download",
        changed="judged at 900 Mbit/s; before at the highest rate that was run, 300",
        claims=lambda known: _no_loaded_latency(known, 900),
        others=(("At 300 Mbit/s, as before", lambda known: _no_loaded_latency(known, 300)),),
    ),
    Rule(
        says="RPM's self probes wait in the endpoints' buffers too and report more than the path's delay",
        by="the draft, on the server's side",
        rule="median of reported over true round trip of the load's packets is above 1.5 under every queue",
        claims=_rpm_self,
    ),
    Rule(
        says='Figure 1: "Throughput measurements without burst shaping and without cross traffic has lower '
        'variability across different AQM algorithms but often underutilizes the link capacity"',
        by="authors, caption",
        rule="range of uploads over the four queues, over their mean, is lower than with burst and cross "
        "traffic (figure 5) at 100, 300 and 500 Mbit/s; mean use of the line is below 0.9",
        changed=DIFFERENCE,
        **_by_sender(_figure_1),
    ),
    Rule(
        says='Figure 2: "Latency measurements without burst shaping and without cross traffic does not '
        "introduce "
        'significant latency spikes"',
        by="authors, caption",
        rule="the greatest SRTT of the four queues stays below 40 ms, twice the empty path, at each rate",
        claims=lambda known: _spikes(known, "g0", "bbr"),
        others=(("With a CUBIC sender", lambda known: _spikes(known, "g0", None)),),
    ),
    Rule(
        says='Figure 3: "Throughput measurement with burst shaping without cross traffic achieve higher link '
        'utilization and better use of available bandwidth across all AQM algorithms"',
        by="authors, caption",
        rule="uploads are higher with g2 than with g0 under each of the four queues at 100, 300 and 500 "
        "Mbit/s",
        **_by_sender(_figure_3),
    ),
    Rule(
        says='Figure 4: "Latency measurement with burst shaping without cross traffic is still stable"',
        by="authors, caption",
        rule="as figure 2, with the burst",
        claims=lambda known: _spikes(known, "g2", "bbr"),
        others=(("With a CUBIC sender", lambda known: _spikes(known, "g2", None)),),
    ),
    Rule(
        says='Figure 5: "Throughput measurement with burst shaping and TCP cross traffic shows higher '
        'variability across different AQM algorithms"',
        by="authors, caption",
        rule="range of uploads over the four queues, over their mean, is higher than without cross traffic "
        "(figure 3) at 100, 300 and 500 Mbit/s",
        changed=DIFFERENCE,
        **_by_sender(_figure_5),
    ),
)
"""All statements, in the order of the report."""
