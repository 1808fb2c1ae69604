"""What the authors found, what follows from their set-up, and whether our runs say so too, by rule."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

from weirstudies.speedtest_aqm.calibration import reported_ms, true_ms
from weirstudies.speedtest_aqm.design import PACKET_BYTES, Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weirlab.scenario import Direction
    from weirstudies.speedtest_aqm.design import Study
    from weirstudies.speedtest_aqm.figures import Run, Spread

    Figure = Callable[[Run], float | None]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A statement.

    Attributes:
        says: what it says.
        by: whose it is: the authors', or our reading of their set-up.
        rule: when it counts as seen.
        seen: whether it is; None if that cannot be decided.
        evidence: by which figures.
    """

    says: str
    by: str
    rule: str
    seen: bool | None
    evidence: str

    def as_dict(self) -> dict[str, Any]:
        """It as plain values, for JSON."""
        return asdict(self)


def judged(found: Mapping[Cell, Sequence[Run]], of: Study) -> list[Judged]:
    """All statements. One whose cells were not run is not decided."""
    known = _Known(found, of)
    every = [
        _throughput(known),
        _codel_costs(known),
        _alike(known),
        _no_burst(known),
        _min_rtt(known),
        _sfq_srtt(known),
        _fair_share(known),
        _bbr_share(known),
        _baseline(known),
        _bloated(known),
        _steadier(known),
        _burst(known),
        _truncated(known),
        _flow_matters(known),
        _no_loaded_latency(known),
        _rpm_self(known),
    ]
    return [replace(one, evidence=NOT_RUN) if one.seen is None else one for one in every]


class _Known:
    """Medians of figures by cell, of runs in the simulator."""

    def __init__(self, found: Mapping[Cell, Sequence[Run]], of: Study) -> None:
        self.of = of
        self.runs = {
            cell: [run for run in runs if run.world == "sim"]
            for cell, runs in found.items()
            if any(run.world == "sim" for run in runs)
        }

    def first(self, queue: str, rate: int) -> Cell:
        """A cell of the authors' first set."""
        return _cell(queue, rate, rtt_ms=10)

    def cross(self, queue: str, rate: int) -> Cell:
        """A cell of the authors' set with cross traffic."""
        return _cell(queue, rate, burst="g2", cross="cubic-up", client_cc="bbr")

    def value(self, cell: Cell, figure: Figure) -> float | None:
        """The median over the cell's runs; None if there is none."""
        values = [value for run in self.runs.get(cell, []) if (value := figure(run)) is not None]
        return median(values) if values else None

    def by_rate(
        self, make: Callable[[str, int], Cell], queue: str, rates: Sequence[int], figure: Figure
    ) -> dict[int, float]:
        """The figure at each rate at which there is one."""
        values = {rate: self.value(make(queue, rate), figure) for rate in rates}
        return {rate: value for rate, value in values.items() if value is not None}


def _cell(queue: str, rate: int, **more: Any) -> Cell:
    usual: dict[str, Any] = {"rtt_ms": 20, "burst": "g0", "cross": "none", "method": "ndt7"}
    return Cell(rate_mbps=rate, queue=queue, **(usual | more))


def upload_mbps(run: Run) -> float | None:
    """What the method says of the upload."""
    value = run.result.get("upload_mbps")
    return float(value) if value is not None else None


def srtt_ms(run: Run) -> float | None:
    """Mean of the upload's SRTT."""
    found = _spread(run, "up", "srtt")
    return found.mean if found else None


def _shown_ms(run: Run) -> float | None:
    """What the client shows as latency: MinRTT of the server's TCP."""
    value = run.result.get("latency_ms")
    return float(value) if value is not None else None


def _true_ms(run: Run) -> float | None:
    return true_ms(run, "up", "own")


def _unsteadiness(run: Run) -> float | None:
    """Range from the 5th to the 95th percentile of the instantaneous rate over its median."""
    found = _spread(run, "up", "rates")
    if found is None or found.median <= 0:
        return None
    return (found.quantile(0.95) - found.quantile(0.05)) / found.median


def _spike_ms(run: Run) -> float | None:
    found = _spread(run, "up", "srtt")
    return found.quantile(1.0) if found else None


def _spread(run: Run, way: Direction, which: str) -> Spread | None:
    loaded = run.ways.get(way)
    found: Spread | None = getattr(loaded, which) if loaded else None
    return found


def _decided(good: Sequence[bool]) -> bool | None:
    return all(good) if good else None


def _pairs(values: Mapping[Any, float], theirs: Callable[[Any], float], digits: int = 0) -> str:
    return ", ".join(f"{key}: {value:.{digits}f} ({theirs(key):.{digits}f})" for key, value in values.items())


def _named(values: Mapping[str, float], digits: int) -> str:
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())


def _throughput(known: _Known) -> Judged:
    published = known.of.published["g0"]
    ours = known.by_rate(known.first, "sfq", COMPARED, upload_mbps)
    theirs = {rate: published.at("upload_mbps", "sfq", rate) for rate in ours}
    return Judged(
        says="Upload through sfq without burst, one flow, 10 ms: 95, 190, 284, 377, 469, 548 Mbit/s at 100 "
        "to 600",
        by="authors, data_json_3",
        rule="medians within 5 % of theirs at 100 to 600 Mbit/s",
        seen=_decided([abs(ours[rate] / theirs[rate] - 1) <= 0.05 for rate in ours]),
        evidence="ours (theirs), Mbit/s: " + _pairs(ours, theirs.__getitem__),
    )


def _codel_costs(known: _Known) -> Judged:
    published = known.of.published["g0"]
    codel = known.by_rate(known.first, "codel", COMPARED[:4], upload_mbps)
    sfq = known.by_rate(known.first, "sfq", COMPARED[:4], upload_mbps)
    shares = {rate: codel[rate] / sfq[rate] for rate in codel if rate in sfq}

    def theirs(rate: int) -> float:
        return published.at("upload_mbps", "codel", rate) / published.at("upload_mbps", "sfq", rate)

    return Judged(
        says="One flow through codel reports less than through sfq: 86 against 95 Mbit/s at 100, 349 "
        "against 377 at 400",
        by="authors, data_json_3",
        rule="codel's share of sfq's upload is 0.97 or less at 100 to 400 Mbit/s",
        seen=_decided([share <= 0.97 for share in shares.values()]),
        evidence="our share (theirs): "
        + _pairs(shares, theirs, 2)
        + "; their tests through codel ended after 2.5 to 4.7 s "
        "on average, when slow start and its loss still weigh; ours lasted 10 s",
    )


def _alike(known: _Known) -> Judged:
    codel = known.by_rate(known.first, "codel", RATES, upload_mbps)
    fq_codel = known.by_rate(known.first, "fq_codel", RATES, upload_mbps)
    ratios = {rate: fq_codel[rate] / codel[rate] for rate in codel if rate in fq_codel}
    return Judged(
        says="For a single flow fq_codel is codel",
        by="authors, data_json_3 (100 to 400 Mbit/s)",
        rule="uploads within 5 % of each other at every rate",
        seen=_decided([abs(ratio - 1) <= 0.05 for ratio in ratios.values()]),
        evidence="fq_codel over codel: "
        + ", ".join(f"{rate}: {ratio:.3f}" for rate, ratio in ratios.items()),
    )


def _no_burst(known: _Known) -> Judged:
    ours = {
        f"{queue} {rate}": value
        for queue in ("codel", "fq_codel", "sfq")
        for rate, value in known.by_rate(known.first, queue, (700, 800, 900), upload_mbps).items()
    }
    return Judged(
        says="Without burst at 800 Mbit/s throughput ends below 700 Mbit/s, whatever the queue",
        by="authors, figure 1",
        rule="our uploads at 800 and 900 Mbit/s are below 700",
        seen=_decided([value < 700 for name, value in ours.items() if not name.endswith("700")]),
        evidence="ours, Mbit/s: "
        + ", ".join(f"{name}: {value:.0f}" for name, value in ours.items())
        + "; theirs end at 605 to "
        "650 from 700 on: a bucket of one packet costs their router a timer event a packet. That is its "
        "processor, "
        "which is no part of a scenario",
    )


def _min_rtt(known: _Known) -> Judged:
    """By cell of the first set: what the client shows, and the usual round trip."""
    shown, true = [], []
    for queue in QUEUES_OF_AUTHORS:
        for rate in COMPARED:
            cell = known.first(queue, rate)
            told, usual = known.value(cell, _shown_ms), known.value(cell, _true_ms)
            if told is not None and usual is not None:
                shown.append(told)
                true.append(usual)
    spans = (max(shown) - min(shown), max(true) - min(true)) if shown else (0.0, 0.0)
    low, high = known.of.published["g0"].min_rtt_ms or (0.0, 0.0)
    return Judged(
        says="MinRTT, which clients show as latency, carries no information about the queue: "
        f"{low:g} to {high:g} ms in every cell",
        by="authors, data_json_3",
        rule="over queues and rates (10 ms, no cross traffic, 100 to 600 Mbit/s) medians of the latency that "
        "the client shows differ by 0.5 ms at most, those of the round trip under load by more than 2 ms",
        seen=(spans[0] <= 0.5 and spans[1] > 2) if shown else None,
        evidence=f"shown {min(shown):.2f} to {max(shown):.2f} ms; median round trip of the upload's packets "
        f"{min(true):.1f} to {max(true):.1f} ms, over {len(shown)} cells"
        if shown
        else NOT_RUN,
    )


def _sfq_srtt(known: _Known) -> Judged:
    published = known.of.published["g0"]
    ours = known.by_rate(known.first, "sfq", COMPARED, srtt_ms)
    theirs = {rate: published.at("srtt_ms", "sfq", rate) for rate in ours}
    falls = [ours[rate] > ours[rate + 400] for rate in (100, 200) if rate in ours and rate + 400 in ours]
    near = [abs(ours[rate] / theirs[rate] - 1) <= 0.2 for rate in ours]
    return Judged(
        says="SRTT through sfq falls with the rate, as 127 packets take less and less time: 20.9 ms at "
        "100, 12.6 at 500",
        by="authors, data_json_3",
        rule="mean SRTT of the upload within 20 % of theirs at 100 to 600 Mbit/s, and falling",
        seen=_decided([*falls, *near]),
        evidence="ours (theirs), ms: "
        + _pairs(ours, theirs.__getitem__, 1)
        + "; ours is the sender's, theirs the server's, which samples only its few messages",
    )


def _fair_share(known: _Known) -> Judged:
    published = known.of.published["cross"]
    shares: dict[str, float] = {}
    theirs: dict[str, float] = {}
    for queue in ("fq_codel", "sfq"):
        for rate, value in known.by_rate(known.cross, queue, COMPARED, _goodput).items():
            shares[f"{queue} {rate}"] = value / (rate / 6)
            theirs[f"{queue} {rate}"] = published.at("upload_mbps", queue, rate) / (rate / 6)
    return Judged(
        says="Beside five flows a queue for each flow gives the test a sixth of the rate",
        by="authors, g2, cross traffic",
        rule="the upload is within 10 % of rate/6 under fq_codel and sfq at 100 to 600 Mbit/s",
        seen=_decided([abs(share - 1) <= 0.1 for share in shares.values()]),
        evidence="share of rate/6, ours (theirs): " + _pairs(shares, theirs.__getitem__, 2),
    )


def _bbr_share(known: _Known) -> Judged:
    published = known.of.published["cross"]
    ours = {
        rate: value / (rate / 6)
        for rate, value in known.by_rate(known.cross, "codel", COMPARED, _goodput).items()
    }

    def theirs(rate: int) -> float:
        return published.at("upload_mbps", "codel", rate) / (rate / 6)

    return Judged(
        says="Beside five CUBIC flows a BBR sender takes two to three times its share under codel (100 to "
        "300 Mbit/s)",
        by="authors, g2, cross traffic",
        rule="1.8 to 3.5 times rate/6 at 100, 200 and 300 Mbit/s",
        seen=_decided([1.8 <= ours[rate] <= 3.5 for rate in (100, 200, 300) if rate in ours]),
        evidence="multiple of rate/6, ours (theirs): " + _pairs(ours, theirs, 2),
    )


def _baseline(known: _Known) -> Judged:
    none = known.by_rate(known.cross, "pfifo-100", COMPARED[1:], srtt_ms)
    codel = known.by_rate(known.cross, "codel", COMPARED[1:], srtt_ms)
    both = [rate for rate in none if rate in codel]
    full = ", ".join(f"{rate}: {_full_ms(100, rate):.1f}" for rate in COMPARED)
    return Judged(
        says='The drop-tail baseline is shallower than codel\'s limit, so that "no AQM" shows the shorter '
        "round trips (25 to 28 ms "
        "against 40 to 60 at 200 to 600 Mbit/s)",
        by="ours, from the authors' scripts and SRTT series",
        rule="mean SRTT of the upload beside cross traffic is lower under pfifo 100 than under codel at "
        "each rate from 200 to 600",
        seen=_decided([none[rate] < codel[rate] for rate in both]),
        evidence="pfifo 100 / codel, ms: "
        + ", ".join(f"{rate}: {none[rate]:.1f} / {codel[rate]:.1f}" for rate in both)
        + f"; 100 full packets last, ms at Mbit/s: {full}; codel's limit of 1000 ten times that",
    )


def _bloated(known: _Known) -> Judged:
    deep = known.by_rate(known.cross, "pfifo-4bdp", COMPARED, srtt_ms)
    codel = known.by_rate(known.cross, "codel", COMPARED, srtt_ms)
    both = [rate for rate in deep if rate in codel]
    return Judged(
        says="Against a drop-tail queue of four bandwidth-delay products the order turns round: codel "
        "shortens round trips",
        by="ours",
        rule="mean SRTT of the upload beside cross traffic is lower under codel at each rate from 100 to 600",
        seen=_decided([codel[rate] < deep[rate] for rate in both]),
        evidence="codel / 4 BDP, ms: "
        + ", ".join(f"{rate}: {codel[rate]:.1f} / {deep[rate]:.1f}" for rate in both),
    )


def _steadier(known: _Known) -> Judged:
    good, texts = [], []
    for name, figure, digits in (
        ("5 to 95 % range of rate over median", _unsteadiness, 2),
        ("greatest SRTT, ms", _spike_ms, 0),
    ):
        means = {}
        for queue in QUEUES_OF_AUTHORS:
            values = known.by_rate(known.cross, queue, COMPARED, figure)
            if values:
                means[queue] = sum(values.values()) / len(values)
        if set(means) == set(QUEUES_OF_AUTHORS):
            good += [
                means[fair] < means[plain] for fair in ("fq_codel", "sfq") for plain in ("codel", "pfifo-100")
            ]
        texts.append(f"{name}: " + ", ".join(f"{queue} {value:.{digits}f}" for queue, value in means.items()))
    return Judged(
        says="Under cross traffic fq_codel and sfq give steadier throughput and smaller spikes of latency "
        "than codel and no AQM",
        by="authors, abstract as summarised",
        rule="both figures, averaged over 100 to 600 Mbit/s, are smaller for each of the two than for each "
        "of the others",
        seen=_decided(good),
        evidence="; ".join(texts),
    )


def _burst(known: _Known) -> Judged:
    gains = {}
    for queue in ("pfifo-100", "codel", "fq_codel", "sfq"):
        for rate in (100, 500):
            plain = known.value(_cell(queue, rate), upload_mbps)
            burst = known.value(_cell(queue, rate, burst="g2"), upload_mbps)
            if plain and burst:
                gains[f"{queue} {rate}"] = burst / plain - 1
    return Judged(
        says="The bucket of 295 ms raises a test's average: what it lets through unqueued is 3 % of ten "
        "seconds",
        by="authors; the size of it ours, from their scripts",
        rule="uploads are higher with g2 than with g0 under pfifo 100, codel, fq_codel and sfq at 100 and "
        "500 Mbit/s",
        seen=_decided([gain > 0 for gain in gains.values()]),
        evidence="gain: " + ", ".join(f"{name}: {gain:+.1%}" for name, gain in gains.items()),
    )


def _truncated(known: _Known) -> Judged:
    published = known.of.published["g0"]
    runs = [
        run
        for queue in ("codel", "fq_codel")
        for rate in (500, 600)
        for run in known.runs.get(known.first(queue, rate), [])
    ]
    short = sum(bool(run.result.get("truncated", {}).get("upload")) for run in runs)
    seconds = [published.at("seconds", queue, rate) for queue in ("codel", "fq_codel") for rate in (500, 600)]
    return Judged(
        says="Through codel and fq_codel at 500 and 600 Mbit/s the client reports 42 to 158 Mbit/s",
        by="authors, data_json_3",
        rule="more than half of our runs there are truncated as theirs",
        seen=(2 * short > len(runs)) if runs else None,
        evidence=f"{short} of {len(runs)} runs of ours ended before 9 s; theirs after {min(seconds):g} to "
        f"{max(seconds):g} s, when the "
        "server's messages stopped: a fault of that measurement, not of the queue",
    )


def _flow_matters(known: _Known) -> Judged:
    """Own over other round trip, by queue, over all cells without cross traffic."""
    ratios: dict[str, list[float]] = {}
    for cell, runs in known.runs.items():
        if cell.cross != "none" or cell.rtt_ms != 20:
            continue
        for way in ("down", "up"):
            pairs = [(true_ms(run, way, "own"), true_ms(run, way, "other")) for run in runs]
            found = [own / other for own, other in pairs if own is not None and other is not None]
            if found:
                ratios.setdefault(cell.queue, []).append(median(found))
    means = {queue: median(values) for queue, values in ratios.items()}
    fair = [means[queue] > 1.05 for queue in ("fq_codel", "sfq", "cake") if queue in means]
    plain = [abs(means[queue] - 1) <= 0.05 for queue in ("pfifo-1bdp", "pfifo-4bdp") if queue in means]
    return Judged(
        says="A queue for each flow hides the load's own delay from a probe in another flow; one queue for "
        "all does not",
        by="ours",
        rule="median round trip of the load's packets over that of pings: above 1.05 under fq_codel, sfq "
        "and cake, within 5 % of 1 "
        "under the deep pfifos (median of cells)",
        seen=_decided([*fair, *plain]) if fair and plain else None,
        evidence="own over other: " + _named(means, 2),
    )


def _no_loaded_latency(known: _Known) -> Judged:
    metric = known.of.method_named("cloudflare").metric[1]
    told: dict[int, list[bool]] = {}
    for cell, runs in known.runs.items():
        if cell.method == "cloudflare" and cell.cross == "none":
            told.setdefault(cell.rate_mbps, []).extend(reported_ms(run, metric) is not None for run in runs)
    shares = {rate: sum(all_of) / len(all_of) for rate, all_of in sorted(told.items())}
    return Judged(
        says="On fast links Cloudflare's test reports no loaded latency, as no set of requests lasts 250 ms",
        by="ours, from the engine's source",
        rule="in less than half of the runs at the highest rate that was run there is a loaded latency for "
        "the download",
        seen=(shares[max(shares)] < 0.5) if shares else None,
        evidence="share of runs with one, by Mbit/s: "
        + ", ".join(f"{rate}: {share:.2f}" for rate, share in shares.items()),
    )


def _rpm_self(known: _Known) -> Judged:
    """Reported over true, by queue, of downloads without cross traffic."""
    metric = known.of.method_named("rpm").metric[0]
    ratios: dict[str, list[float]] = {}
    for cell, runs in known.runs.items():
        if cell.method != "rpm" or cell.cross != "none":
            continue
        for run in runs:
            told, real = reported_ms(run, metric), true_ms(run, "down", "own")
            if told is not None and real is not None:
                ratios.setdefault(cell.queue, []).append(told / real)
    means = {queue: median(values) for queue, values in ratios.items()}
    return Judged(
        says="RPM's self probes wait in the endpoints' buffers too and report more than the path's delay",
        by="the draft, on the server's side",
        rule="median of reported over true round trip of the load's packets is above 1.5 under every queue",
        seen=_decided([value > 1.5 for value in means.values()]),
        evidence="reported over true: " + _named(means, 1),
    )


def _goodput(run: Run) -> float | None:
    """The upload's Mbit/s while it ran."""
    loaded = run.ways.get("up")
    return loaded.mbps if loaded else None


def _full_ms(packets: int, rate_mbps: int) -> float:
    return packets * PACKET_BYTES * 8 / rate_mbps / 1e3


NOT_RUN = "the cells that it is about were not run"

RATES = tuple(range(100, 1000, 100))
COMPARED = (100, 200, 300, 400, 500, 600)
"""Above, the authors' router was at the end of its processor."""

QUEUES_OF_AUTHORS = ("codel", "fq_codel", "pfifo-100", "sfq")
