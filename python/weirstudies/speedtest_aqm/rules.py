"""The statements of the study `speedtest-aqm` with their rules: what must lie where for each to be seen.

The sender of the authors' uploads is an assumption. Their raw data of the first set (packets out of order, a
smoothed round trip of twice the shortest one) speak for BBR, so that what is theirs is judged by that sender,
and shown with CUBIC, the usual one, beside it. A rule's bound was written before its cells were run; of the
captions' rules, single runs with CUBIC at 100, 300 and 600 Mbit/s were known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirstudies.speedtest_aqm import claims

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirstudies.judge import Claim
    from weirstudies.speedtest_aqm.known import Known

    Claims = Callable[["Known"], list[Claim]]
    MakesClaims = Callable[["Known", str | None], list[Claim]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A statement and when it counts as seen.

    Attributes:
        says: what it says.
        by: whose it is: the authors', or our reading of their configuration.
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


def _sent_with(make: MakesClaims, sender: str | None) -> Claims:
    return lambda known: make(known, sender)


def _by_sender(make: MakesClaims, before: MakesClaims | None = None) -> dict[str, Any]:
    """The rule of a BBR sender; beside it what counted before, if that was another, and a CUBIC sender's."""
    former = () if before is None else (("By their ratio, as before", _sent_with(before, "bbr")),)
    return {
        "claims": _sent_with(make, "bbr"),
        "others": (*former, ("With a CUBIC sender", _sent_with(make, None))),
    }


SENDER = "the sender is BBR, for which the authors' raw data speak; it was CUBIC before"

DIFFERENCE = (
    "lower and higher are judged by the difference of the spreads in place of their ratio, whose divisor "
    "is near 0"
)

RULES = (
    Rule(
        says="Upload through sfq without burst, one flow, 10 ms: 95, 190, 284, 377, 469, 548 Mbit/s at "
        "100 to 600",
        by="authors, data_json_3",
        rule="within 5 % of theirs at 100 to 600 Mbit/s",
        changed=SENDER,
        **_by_sender(claims.throughput),
    ),
    Rule(
        says="One flow through codel reports less than through sfq: 86 against 95 Mbit/s at 100, 349 "
        "against 377 at 400",
        by="authors, data_json_3",
        rule="codel's share of sfq's upload is below 0.97 at 100 to 400 Mbit/s",
        changed=SENDER,
        note="Their tests through codel ended after 2.5 to 4.7 s on average, ours lasted 10 s. That is "
        "not the cause: uploads that end when theirs did report 0.98 to 0.99 of what sfq's report in 10 s, "
        "as was tested apart from this study.",
        **_by_sender(claims.codel_costs),
    ),
    Rule(
        says="For a single flow fq_codel is codel",
        by="authors, data_json_3 (100 to 400 Mbit/s)",
        rule="uploads within 5 % of each other at 100 to 600 Mbit/s",
        changed=SENDER,
        claims=lambda known: claims.alike(known, "bbr", claims.COMPARED),
        others=(("With a CUBIC sender, 100 to 900", lambda known: claims.alike(known, None, claims.RATES)),),
        note="A single flow is in one queue of fq_codel's, which is a codel: here that is so by "
        "construction.",
    ),
    Rule(
        says="Without burst at 800 Mbit/s throughput ends below 700 Mbit/s, whatever the queue",
        by="authors, figure 1",
        rule="our uploads at 800 and 900 Mbit/s are below 700 (CUBIC)",
        claims=claims.no_burst,
        note="Theirs end at 605 to 650 from 700 on. Whether their router's processor holds them there was "
        "not tested.",
    ),
    Rule(
        says="MinRTT, which clients show as latency, carries no information about the queue: 10.5 to 10.6 "
        "ms in every cell",
        by="authors, data_json_3",
        rule="over queues and rates (10 ms, no cross traffic, 100 to 600 Mbit/s) the latency that the "
        "client shows differs by less than 0.5 ms, the median round trip under load by more than 2 ms",
        changed=SENDER,
        **_by_sender(claims.min_rtt),
    ),
    Rule(
        says="SRTT through sfq falls with the rate, as 127 packets take less and less time: 20.9 ms at "
        "100, 12.6 at 500",
        by="authors, data_json_3",
        rule="mean SRTT of the upload within 20 % of theirs at 100 to 600 Mbit/s, and falling",
        changed=SENDER,
        note="Ours is the sender's SRTT, theirs the server's, which samples only its few messages.",
        **_by_sender(claims.sfq_srtt),
    ),
    Rule(
        says="Beside five flows a queue for each flow gives the test a sixth of the rate",
        by="authors, g2, cross traffic",
        rule="the upload is within 10 % of rate/6 under fq_codel and sfq at 100 to 600 Mbit/s",
        claims=claims.fair_share,
    ),
    Rule(
        says="Beside five CUBIC flows a BBR sender takes two to three times its share under codel (100 to "
        "300 Mbit/s)",
        by="authors, g2, cross traffic",
        rule="1.8 to 3.5 times rate/6 at 100, 200 and 300 Mbit/s",
        claims=claims.bbr_share,
        note="Theirs: 2.8, 2.6 and 2.3 times.",
    ),
    Rule(
        says='The drop-tail baseline is shallower than codel\'s limit, so that "no AQM" shows the shorter '
        "round trips (25 to 28 ms against 40 to 60 at 200 to 600 Mbit/s)",
        by="ours, from the authors' scripts and SRTT series",
        rule="mean SRTT of the upload beside cross traffic under pfifo 100 is below that under codel at "
        "each rate from 200 to 600",
        claims=claims.baseline,
    ),
    Rule(
        says="Against a drop-tail queue of four bandwidth-delay products the order turns round: codel "
        "shortens round trips",
        by="ours",
        rule="mean SRTT of the upload beside cross traffic is lower under codel at each rate from 100 to 600",
        claims=claims.bloated,
    ),
    Rule(
        says="Under cross traffic fq_codel and sfq give steadier throughput and smaller spikes of latency "
        "than codel and no AQM",
        by="a summary of the paper",
        rule="5 to 95 % range of rate over median and greatest SRTT, both averaged over 100 to 600 "
        "Mbit/s, are smaller for each of the two than for each of the others",
        claims=claims.steadier,
        note="The authors' own series contradict smaller spikes than no AQM: without AQM they stay at 25 "
        "to 30 ms, through fq_codel they reach 75 to 150.",
    ),
    Rule(
        says="The bucket of 295 ms raises a test's average: what it lets through unqueued is 3 % of ten "
        "seconds",
        by="authors; the size of it ours, from their scripts",
        rule="uploads are higher with g2 than with g0 under pfifo 100, codel, fq_codel and sfq at 100 and "
        "500 Mbit/s (CUBIC)",
        claims=lambda known: claims.burst(known, None, (100, 500)),
    ),
    Rule(
        says="Through codel and fq_codel at 500 and 600 Mbit/s the client reports 42 to 158 Mbit/s",
        by="authors, data_json_3",
        rule="more than half of our runs there end before 9 s as theirs did (CUBIC)",
        claims=claims.truncated,
        note="Theirs ended after 0.7 to 1.4 s, when the server's messages stopped. That alone is not the "
        "cause: uploads that end then report 0.89 to 1.05 of what sfq's report in 10 s, as was tested apart "
        "from this study.",
    ),
    Rule(
        says="A queue for each flow hides the load's own delay from a probe in another flow; one queue "
        "for all does not",
        by="ours",
        rule="median round trip of the load's packets over that of pings (median of the cells that were "
        "run, 20 ms, no cross traffic): above 1.05 under fq_codel, sfq and cake, within 5 % of 1 under "
        "the deep pfifos",
        claims=claims.flow_matters,
    ),
    Rule(
        says="On fast links Cloudflare's test reports no loaded latency, as no set of requests lasts 250 ms",
        by="ours, from the engine's source",
        rule="less than half of the runs at 900 Mbit/s have a loaded latency for the download",
        changed="judged at 900 Mbit/s; before at the highest rate that was run, 300",
        claims=lambda known: claims.no_loaded_latency(known, 900),
        others=(("At 300 Mbit/s, as before", lambda known: claims.no_loaded_latency(known, 300)),),
    ),
    Rule(
        says="RPM's self probes wait in the endpoints' buffers too and report more than the path's delay",
        by="the draft, on the server's side",
        rule="median of reported over true round trip of the load's packets is above 1.5 under every queue",
        claims=claims.rpm_self,
    ),
    Rule(
        says='Figure 1: "Throughput measurements without burst shaping and without cross traffic has '
        'lower variability across different AQM algorithms but often underutilizes the link capacity"',
        by="authors, caption",
        rule="range of uploads over the four queues, over their mean, is lower than with burst and cross "
        "traffic (figure 5) at 100, 300 and 500 Mbit/s; mean use of the line is below 0.9",
        changed=DIFFERENCE,
        **_by_sender(claims.figure_1, claims.figure_1_by_ratio),
    ),
    Rule(
        says='Figure 2: "Latency measurements without burst shaping and without cross traffic does not '
        'introduce significant latency spikes"',
        by="authors, caption",
        rule="the greatest SRTT of the four queues stays below 40 ms, twice the empty path, at each rate",
        claims=lambda known: claims.spikes(known, "g0", "bbr"),
        others=(("With a CUBIC sender", lambda known: claims.spikes(known, "g0", None)),),
    ),
    Rule(
        says='Figure 3: "Throughput measurement with burst shaping without cross traffic achieve higher '
        'link utilization and better use of available bandwidth across all AQM algorithms"',
        by="authors, caption",
        rule="uploads are higher with g2 than with g0 under each of the four queues at 100, 300 and 500 "
        "Mbit/s",
        **_by_sender(claims.figure_3),
    ),
    Rule(
        says='Figure 4: "Latency measurement with burst shaping without cross traffic is still stable"',
        by="authors, caption",
        rule="as figure 2, with the burst",
        claims=lambda known: claims.spikes(known, "g2", "bbr"),
        others=(("With a CUBIC sender", lambda known: claims.spikes(known, "g2", None)),),
    ),
    Rule(
        says='Figure 5: "Throughput measurement with burst shaping and TCP cross traffic shows higher '
        'variability across different AQM algorithms"',
        by="authors, caption",
        rule="range of uploads over the four queues, over their mean, is higher than without cross "
        "traffic (figure 3) at 100, 300 and 500 Mbit/s",
        changed=DIFFERENCE,
        **_by_sender(claims.figure_5, claims.figure_5_by_ratio),
    ),
)
"""All statements, in the order of the report."""
