"""`weir ping`: pings any host."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click
from rich.live import Live
from rich.text import Text

from weirlab import interrupt
from weirlab.cli.options import OneOf, Whole, argument, option
from weirlab.cli.scenario_words import secret_of
from weirlab.errors import NetError, WriteError
from weirlab.loading import without_lament
from weirlab.net.ping import (
    MAX_COUNT,
    MAX_LATENESS_NS,
    MAX_PAYLOAD_BYTES,
    METHODS,
    PingTarget,
    SampleFile,
    Samples,
    plan_ping,
    send_pings,
)
from weirlab.plots import format_of, save
from weirlab.report.tables import LOOK
from weirlab.ui import Table, console, note, warn
from weirlab.ui.terminal import messages

if TYPE_CHECKING:
    from weirlab.interrupt import Stop
    from weirlab.net.ping import PingPlan, Row


@click.command("ping")
@argument("host")
@option(
    "--method",
    type=OneOf(METHODS),
    default="icmp",
    show_default=True,
    help="What is sent: ICMP echo, UDP, TCP handshakes, or UDP echo of a `weir serve`.",
)
@option("--port", type=Whole(1, 65_535), help="Port of HOST.  [default: udp 33434, tcp 443, weir 8080]")
@option("--ttl", type=Whole(1, 255), help="Time to live: the router at which it ends answers.")
@option("--payload", type=Whole(0, MAX_PAYLOAD_BYTES), help="Bytes.  [default: icmp 56, udp 60, weir 60]")
@option("--dscp", metavar="NAME", default="BE", show_default=True, help="DSCP of all packets, such as EF.")
@option("--ip", type=OneOf(["4", "6"]), help="Internet protocol.  [default: the name's first]")
@option("--ping", metavar="TIME", default="200ms", show_default=True, help="Time between two pings.")
@option("--count", type=Whole(1, MAX_COUNT), help="How many are sent.  [default: until Ctrl-C]")
@option("--for", "length", metavar="TIME", help="How long they are sent, such as 60s.")
@option(
    "--timeout",
    metavar="TIME",
    default="5s",
    show_default=True,
    help="A ping that is not answered for so long is lost.",
)
@option("--auth", type=click.Path(path_type=Path), help="With --method weir: file with the server's secret.")
@option("--out", type=click.Path(path_type=Path), help="File for every ping, .csv, .jsonl or .parquet.")
@option("--chart", type=click.Path(path_type=Path), help="File to draw into, .png, .svg or .pdf.")
@option("--json", "as_json", is_flag=True, help="Print the figures as JSON, nothing else.")
def command(host: str, *, out: Path | None, chart: Path | None, as_json: bool, **words: Any) -> None:
    """Ping HOST until Ctrl-C, and say how long the round trips took.

    \b
    weir ping example.net
    weir ping example.net --method udp --ttl 3 --payload 0 --out pings.csv
    weir ping 192.0.2.1 --method tcp --port 22 --ping 10ms --for 60s --chart pings.png

    HOST needs no server of Weir's, but for --method weir. With --ttl the router that many hops away answers:
    the line in front of it is measured, and nothing behind it. What comes in counts from the kernel's own
    time stamp.

    Exit codes: 0 done, 1 no ping was answered, 2 pings cannot be sent like that.
    """  # noqa: D301 - \b keeps click from folding the examples
    plan = plan_ping(words)
    if chart is not None:
        format_of(chart)
    secret = secret_of(words["auth"])
    target = PingTarget.find(host, plan.ip)
    file = None if out is None else SampleFile(out)
    samples = Samples()
    ended: NetError | WriteError | None = None
    if not as_json:
        note(f"{target}: {plan.words}")
    try:
        _send(target, plan, samples, file, secret, quiet=as_json)
    except (NetError, WriteError) as error:
        # What came until then is told first.
        ended = error
    finally:
        closed = None if file is None else _closed(file)
    ended = ended or closed
    if chart is not None and samples.answered:
        _draw(chart, target, plan, samples)
    _tell(target, plan, samples, as_json=as_json)
    written = out if closed is None else None
    _say_where(written, chart if samples.answered else None, quiet=as_json)
    if ended is not None:
        raise ended
    if samples.sent and not samples.answered:
        none = "the ping" if samples.sent == 1 else f"none of {samples.sent} pings"
        raise NetError(f"{none} was {'not ' if samples.sent == 1 else ''}answered by `{host}`")


def _closed(file: SampleFile) -> WriteError | None:
    """Ends the file; why its last part could not be written, if so."""
    try:
        file.close()
    except WriteError as error:
        return error
    return None


def _send(  # noqa: PLR0913 - what is sent, and where it goes
    target: PingTarget,
    plan: PingPlan,
    samples: Samples,
    file: SampleFile | None,
    secret: str | None,
    *,
    quiet: bool,
) -> None:
    with interrupt.heeding() as stop, _Line(samples, quiet=quiet) as line:

        def told(rows: list[Row], refused: list[int], unix_zero_ns: int) -> bool:
            samples.add(rows)
            samples.refused.update(refused)
            if file is not None:
                file.add(rows, unix_zero_ns)
            line.show()
            return _goes_on(stop)

        send_pings(target, plan, told, secret)


def _goes_on(stop: Stop) -> bool:
    return not stop.told


class _Line:
    """One line on a terminal that changes while pings are sent; nothing elsewhere."""

    def __init__(self, samples: Samples, *, quiet: bool) -> None:
        self._samples = samples
        self._live = None
        if messages.is_terminal and not quiet:
            self._live = Live(console=messages, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            # A terminal that is gone has no line to take away.
            with suppress(OSError):
                self._live.stop()

    def show(self) -> None:
        """Shows how far the pings are."""
        if self._live is not None:
            with suppress(OSError):
                self._live.update(Text(_running(self._samples), no_wrap=True), refresh=True)


def _running(samples: Samples) -> str:
    last = "-" if samples.last_ns is None else f"{samples.last_ns / 1e6:.3f}"
    mean = "-" if samples.mean_ms is None else f"{samples.mean_ms:.3f}"
    return f"last {last} ms, mean {mean} ms, {_losses(samples)}"


def _losses(samples: Samples) -> str:
    share = "" if samples.loss_rate is None else f" ({samples.loss_rate:.1%})"
    return f"{samples.sent} sent, {samples.lost} lost{share}"


def _draw(chart: Path, target: PingTarget, plan: PingPlan, samples: Samples) -> None:
    without_lament()
    from weirlab.plots.pings import Drawn, figure  # noqa: PLC0415 - loads Matplotlib

    figures = samples.distribution
    if figures is not None:
        drawn = Drawn(str(target), plan.words, samples.t_s, samples.rtt_ms, figures)
        save(lambda: figure(drawn), chart)


def _tell(target: PingTarget, plan: PingPlan, samples: Samples, *, as_json: bool) -> None:
    cautions = []
    late = samples.lateness_ns
    if late is not None and late > MAX_LATENESS_NS:
        cautions.append(f"pings left up to {late / 1e6:.1f} ms late (p99): this machine was busy")
    if as_json:
        said: dict[str, Any] = {
            "host": target.name,
            "address": target.address,
            "method": plan.method,
            "port": plan.port,
        }
        said |= {"ttl": plan.ttl, "period_ms": plan.period_ns / 1e6}
        if plan.method != "tcp":
            said["payload_bytes"] = plan.payload_bytes
        click.echo(json.dumps({**said, **samples.figures(), "warnings": cautions}, indent=2))
        return
    for text in cautions:
        warn(text)
    found = samples.distribution
    if found is not None:
        table = Table(title=f"Round trips to {target}, ms", **LOOK)
        for name in FIGURES:
            table.add_column(name, justify="right")
        values = [getattr(found, name) for name in FIGURES]
        table.add_row(*("-" if value is None else f"{value:.3f}" for value in values))
        console.print(table)
    console.print(_losses(samples))
    for by, count in samples.answered_by.most_common(MAX_NAMED):
        console.print(f"answered by {by}: {count}", soft_wrap=True)
    for by, count in list(samples.figures()["refused"].items())[:MAX_NAMED]:
        console.print(f"{by.lower()}: {count}", soft_wrap=True)


def _say_where(out: Path | None, chart: Path | None, *, quiet: bool) -> None:
    for path in (out, chart):
        if path is not None and not quiet:
            console.print(str(path), soft_wrap=True)


FIGURES = ("min", "mean", "max", "std", "median", "p5", "p95", "p99")
"""In the order of hrPing's report, and percentiles."""

MAX_NAMED = 5
"""Routers that are named; a path that changes all the time has more."""
