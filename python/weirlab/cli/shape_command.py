"""`weir shape`: a shaper on a real interface."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource
from rich.live import Live

from weirlab import _native, reading
from weirlab.cli import completion
from weirlab.cli.options import Share, Whole, option, other_name, renamed
from weirlab.cli.scenario_words import secret_of
from weirlab.errors import ShapeError, UsageError
from weirlab.shape import (
    Proof,
    Prover,
    framing_of,
    line_of,
    metrics_of,
    read_config,
    read_rules,
    rules_text,
    settings_of,
    table_of,
)
from weirlab.shape.prove import SETTLE_OPEN_S, SETTLE_SHAPED_S
from weirlab.shape.settings import NATIVE, host_and_port, time_of
from weirlab.shape.view import LATE_NS
from weirlab.ui import console, note, warn
from weirlab.ui.terminal import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weirlab.shape import ShaperView

T = TypeVar("T")


class _StartUnlessNamed(click.Group):
    """A group of which a word that is none of its commands is the device to start at."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """`start`, unless another command is named."""
        return super().resolve_command(ctx, args if args[0] in self.commands else ["start", *args])


def _no_program(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Refuses a program, which was the option's meaning before it was a time's."""
    if not value[0].isdigit():
        raise other_name(f"--load `{value}`", "--run", "; --load takes a time, such as `5s`")
    return value


@click.group(
    "shape",
    cls=_StartUnlessNamed,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
def command() -> None:
    """Shape a network interface: `weir shape eth0`. Keeps latency low under load, without being told rates.

    \b
    weir shape eth0                         until Ctrl-C; `weir shape start --help` has the options
    weir shape eth0 --prove --server HOST   measure without and with it, print the factor
    weir shape status eth0

    What was there before is there again when it ends, however it does.
    """  # noqa: D301 - \b keeps click from folding the examples


@command.command("start")
@click.argument("device", metavar="IFACE", shell_complete=completion.devices)
@option("--config", type=click.Path(dir_okay=False, path_type=Path), help="TOML file with any of these.")
@option("--up", metavar="RATE", help="Out of IFACE: `auto` (the default), a rate that stays, or `none`.")
@option("--down", metavar="RATE", help="Likewise, into IFACE.")
@option("--up-max", metavar="RATE", help="`auto` never sets a higher rate.")
@option("--down-max", metavar="RATE", help="Likewise, into IFACE.")
@option("--mode", type=click.Choice(["ping", "bandwidth"]), help="What matters more; ping by default.")
@option(
    "--queue-up",
    shell_complete=completion.queues,
    metavar="TC",
    help="Queue out of IFACE, in tc syntax; cake by default.",
)
@option("--queue-down", shell_complete=completion.queues, metavar="TC", help="Likewise, into IFACE.")
@option("--framing", metavar="NAME", help="How bytes are counted; by default as the device tells.")
@option(
    "--reflector",
    "reflectors",
    multiple=True,
    metavar="WHOM",
    help="Whom to probe: HOST, udp:HOST[:PORT] (a `weir serve`), tcp:HOST:PORT.",
)
@option("--auth", metavar="FILE", help="File with the secret that the `weir serve` asks for.")
@option("--backend", type=click.Choice(["auto", "kernel", "userspace"]), help="Who holds packets back.")
@option(
    "--rules",
    shell_complete=completion.rules,
    metavar="FILE",
    help="Priority rules: a file, or `usual` for the shipped list.",
)
@option("--time", metavar="TIME", help="End by itself, such as after `1800s`.")
@option("--log", type=click.Path(dir_okay=False, path_type=Path), help="File for every decision.")
@option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@option("--quiet", is_flag=True, help="Show nothing while it goes on.")
@option("--prove", is_flag=True, help="Measure without and with it, print the factor, undo it if it is none.")
@option("--run", metavar="SHELL", help="With --prove: a command that loads the line until it is ended.")
@option(
    "--server",
    metavar="HOST",
    help="With --prove: a `weir serve` to load the line with, and to probe unless --reflector says whom.",
)
@option("--rounds", type=Whole(1, 20), default=3, show_default=True, help="With --prove.")
@option(
    "--load",
    metavar="TIME",
    callback=_no_program,
    default="5s",
    show_default=True,
    help="With --prove: how long each stage is measured.",
)
@option(
    "--most-cost",
    type=Share(),
    default=0.1,
    show_default=True,
    help="With --prove: of throughput.",
)
@option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
@renamed("--egress", "--up")
@renamed("--ingress", "--down")
@renamed("--egress-max", "--up-max")
@renamed("--ingress-max", "--down-max")
@renamed("--egress-queue", "--queue-up")
@renamed("--ingress-queue", "--queue-down")
@renamed("--measure", "--load")
def start(device: str, **words: Any) -> None:
    """Shape IFACE until Ctrl-C, `weir shape stop IFACE`, or the time is over."""
    said = {} if words["config"] is None else read_config(words["config"])
    named = {name: words[name] for name in WORDS if words[name] is not None}
    if words["reflectors"]:
        named["reflectors"] = list(words["reflectors"])
    said = {**said, **named}
    _check_proving(words)
    if words["server"] is not None:
        said.setdefault("reflectors", [f"udp:{words['server']}"])
    where = "shape" if words["config"] is None else f"shape, config `{words['config']}`"
    settings = settings_of(device, said, where, words["log"])
    settings["open"] = words["prove"]
    _check_server(words["server"], settings)
    choice = _ask(lambda: json.loads(_native.choose_shaper(json.dumps(settings))))
    if words["dry_run"]:
        _show_dry_run(settings, choice, words)
        return
    note(f"backend {choice['backend']}: {choice['why']}")
    if words["prove"]:
        _prove(settings, words)
        return
    shown = _Shown(quiet=words["quiet"])
    decisions = _shape(settings, shown.show)
    shown.close()
    if words["as_json"]:
        click.echo(json.dumps({"decisions": decisions}))
    note(f"{device} is as it was")


@command.command("status")
@click.argument("device", metavar="IFACE", shell_complete=completion.devices)
@option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
@option("--prometheus", is_flag=True, help="Print metrics as Prometheus reads them, nothing else.")
def status(device: str, *, as_json: bool, prometheus: bool) -> None:
    """Say what the shaper of IFACE does."""
    text = _ask(lambda: _native.shaper_status(device))
    if as_json:
        click.echo(text or "{}")
    elif prometheus:
        click.echo(metrics_of(cast("ShaperView", json.loads(text))) if text else "", nl=False)
    elif text:
        view = cast("ShaperView", json.loads(text))
        console.print(table_of(view))
        console.print(
            f"process {view['pid']}; probes answered by {', '.join(view['reflectors']) or 'nobody'}"
        )


@command.command("stop")
@click.argument("device", metavar="IFACE", shell_complete=completion.devices)
def stop(device: str) -> None:
    """End the shaper of IFACE, which restores what was there."""
    answer = json.loads(_ask(lambda: _native.stop_shaper(device)) or "{}")
    if "error" in answer:
        raise ShapeError(answer["error"])
    for _ in range(STOP_LOOKS):
        try:
            _native.shaper_status(device)
        except _native.NativeError:
            return
        time.sleep(STOP_PAUSE_S)
    raise ShapeError(
        f"the shaper of {device} was asked to end and has not after {STOP_LOOKS * STOP_PAUSE_S:g} s"
    )


@command.command("replay")
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@option("--mode", type=click.Choice(["ping", "bandwidth"]), help="What `auto` would have done so instead.")
@option("--json", "as_json", is_flag=True, help="Print the decisions as lines of JSON.")
def replay(log: Path, *, mode: str | None, as_json: bool) -> None:
    """Run the controller over what went into it, and show what it would have done."""

    def show(line: str) -> None:
        click.echo(line if as_json else _decision(json.loads(line)))

    try:
        text = reading.read_bytes(log, reading.MAX_RECORDING_BYTES).decode("utf-8", "replace")
    except reading.Unreadable as error:
        raise UsageError(f"log `{log}` cannot be read: {error}") from error
    logged, made, same = _ask(lambda: _native.replay_shaper(text, mode, show))
    note(f"{made} decisions; the log has {logged}, of which {same} are the same")


@command.command("rules")
@click.argument("name", metavar="[LIST]", default="usual", shell_complete=completion.rules)
def rules(name: str) -> None:
    """Print a list of priority rules, `usual` by default: save it, change it, and give it to --rules."""
    read_rules(name)
    click.echo(rules_text(name), nl=False)


WORDS = (
    "up",
    "down",
    "up_max",
    "down_max",
    "mode",
    "queue_up",
    "queue_down",
    "framing",
    "auth",
    "backend",
    "rules",
    "time",
)
"""The options that a file may have too."""
MAX_LOAD_S = 100.0
"""Below what `weir serve` allows a flow if nothing else is said."""
LOAD_PATIENCE_S = 2.0
"""Between asking a load to end and killing it."""
STOP_LOOKS = 50
STOP_PAUSE_S = 0.1


def _ask(question: Callable[[], T]) -> T:
    try:
        return question()
    except _native.InputError as error:
        raise UsageError(str(error)) from error
    except _native.NativeError as error:
        raise ShapeError(str(error)) from error


def _shape(settings: dict[str, Any], show: Callable[[ShaperView], str]) -> int | None:
    """Shapes until `show` says `stop`: how many decisions were made; None if somebody interrupted it."""
    seed = int.from_bytes(os.urandom(7), "big")

    started = False

    def on_view(text: str) -> str:
        nonlocal started
        if not started:
            started = True
            tell_service_manager("READY=1")
        return show(cast("ShaperView", json.loads(text)))

    try:
        return _ask(lambda: _native.shape(json.dumps(settings), seed, on_view))
    except KeyboardInterrupt:
        # The usual end: everything has been undone.
        return None


def tell_service_manager(news: str) -> None:
    """Tells it to the service manager that started this, if one wants to know: sd_notify(3)."""
    where = os.environ.get("NOTIFY_SOCKET")
    if where is not None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as near:
            near.sendto(news.encode(), where.replace("@", "\0", 1) if where.startswith("@") else where)


class _Shown:
    """Shows views: a table that changes on a terminal, a line a second elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._live = None if quiet or not messages.is_terminal else Live(console=messages, transient=True)
        self._quiet = quiet
        self._next_ns = 0
        self._delays: list[tuple[int, int, int]] = []

    def show(self, view: ShaperView) -> str:
        if self._live is not None:
            self._live.start()
            self._live.update(table_of(view))
        elif not self._quiet:
            self._delays += view["delays"]
            if view["t_ns"] >= self._next_ns:
                self._next_ns = view["t_ns"] + 1_000_000_000
                view["delays"], self._delays = self._delays, []
                click.echo(line_of(view), err=True)
        return "continue"

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()


def _prove(settings: dict[str, Any], words: dict[str, Any]) -> None:
    measure_s = time_of("load", words["load"]) / 1e9
    rounds = words["rounds"]
    own_traffic = words["run"] is None and words["server"] is None
    prover = Prover(rounds=rounds, measure_s=measure_s, most_cost=words["most_cost"], own_traffic=own_traffic)
    if settings["time_ns"] is not None and settings["time_ns"] / 1e9 < prover.total_s:
        raise UsageError(f"--time is shorter than the {prover.total_s:.0f} s that the measurement takes")
    without, shaped = SETTLE_OPEN_S + measure_s, SETTLE_SHAPED_S + measure_s
    what = "your own traffic, which should fill the line" if own_traffic else "then idle"
    note(
        f"measuring for {prover.total_s:.0f} s: {rounds} times {without:g} s without and {shaped:g} s with "
        f"it, {what}"
    )
    with _load(words, settings["auth"], prover.total_s) as load:
        led = _Led(prover, words, load)
        _shape(settings, led.show)
    led.shown.close()
    if led.result is None:
        raise ShapeError("it was ended before the measurement was complete; everything is as it was")
    if isinstance(led.result, str):
        raise ShapeError(f"nothing could be proved, and everything is as it was: {led.result}")
    if led.result.verdict is not None:
        raise ShapeError(f"everything is as it was: {led.result.verdict}")


class _Led:
    """A shaper that a prover leads, and that shapes on if it helps."""

    def __init__(self, prover: Prover, words: dict[str, Any], load: _Load | None) -> None:
        self.shown = _Shown(quiet=words["quiet"])
        self.result: Proof | str | None = None
        self._prover = prover
        self._as_json = words["as_json"]
        self._load = load

    def show(self, view: ShaperView) -> str:
        self.shown.show(view.copy())
        if self.result is not None:
            return "continue"
        wanted = self._prover.step(view)
        failure = None if self._load is None else self._load.failure()
        if self._load is not None and self._prover.kind == "idle":
            self._load.end()
        if self._prover.kind is not None and failure is None:
            return wanted
        self.result = failure or self._prover.proof()
        self.shown.close()
        _show_proof(self.result, as_json=self._as_json)
        if isinstance(self.result, str) or self.result.verdict is not None:
            return "stop"
        note(f"{view['device']} is shaped from now on; end it with Ctrl-C")
        return "shape"


def _check_proving(words: dict[str, Any]) -> None:
    """Refuses what only a proof takes, where none is wanted."""
    if words["server"] is not None and not words["prove"]:
        raise UsageError("--server goes with --prove; to probe a `weir serve` write --reflector udp:HOST")
    context = click.get_current_context()
    for name in ("run", "rounds", "load", "most_cost"):
        if not words["prove"] and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"--{name.replace('_', '-')} goes with --prove: give that too, or leave it out")


def _check_server(server: str | None, settings: dict[str, Any]) -> None:
    """Whether the server that is to help is there and would, before anything is changed."""
    auth = settings["auth"]
    secret = None if auth is None else secret_of(Path(auth))
    if server is None:
        if auth is not None and not any("udp" in one for one in settings["reflectors"]):
            raise UsageError(
                f"auth `{auth}`: only a `weir serve` asks for a secret, and none is named: write "
                "--reflector udp:HOST, or leave it out"
            )
        return
    try:
        why = _native.missing(_authority(server), secret)
    except _native.NativeError as error:
        hint = "; start `weir serve` there" if "refused (os" in str(error) else ""
        raise UsageError(f"{error}{hint}") from error
    if why is not None:
        raise UsageError(why)


class _Load:
    """The load on the line during a proof: a command and all processes that it started."""

    def __init__(self, command: list[str], **how: Any) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True, **how)
        self._command = command[-1]
        self._wanted = True

    def failure(self) -> str | None:
        """Why it does not load the line, if it ended by itself and says that it failed."""
        code = self._process.poll() if self._wanted else None
        return f"the load `{self._command}` ended by itself, with code {code}" if code else None

    def end(self) -> None:
        """Ends it, with what it left in the background; what does not heed that is killed."""
        self._wanted = False
        for one in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, one)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LOAD_PATIENCE_S)
                return


@contextmanager
def _load(words: dict[str, Any], auth: str | None, total_s: float) -> Iterator[_Load | None]:
    """Loads the line as was said; the user's own traffic needs nothing."""
    if words["run"] is None and words["server"] is None:
        yield None
        return
    with ExitStack() as stack:
        if words["run"] is not None:
            load = _Load(["/bin/sh", "-c", words["run"]])
        else:
            # Records of what the line carried for us are of no use to anybody.
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-load-"))
            load = _Load(_load_from(words["server"], auth, total_s), stderr=subprocess.DEVNULL, cwd=folder)
        stack.callback(load.end)
        yield load


def _load_from(server: str, auth: str | None, total_s: float) -> list[str]:
    """Four downloads and four uploads, again and again: a server bounds how long a flow may take."""
    words = [sys.executable, "-m", "weirlab", "run", "rrul_be", "--world", "net"]
    words += ["--host", _authority(server)]
    words += [] if auth is None else ["--auth", auth]
    once = shlex.join([*words, "--idle", "0s", "--load", f"{min(total_s + 2, MAX_LOAD_S):g}s"])
    return ["/bin/sh", "-c", f"while {once} --no-charts; do :; done"]


def _authority(server: str) -> str:
    host, port = host_and_port(server)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _show_proof(result: Proof | str, *, as_json: bool) -> None:
    if as_json:
        told = {"verdict": result} if isinstance(result, str) else asdict(result)
        click.echo(json.dumps(told, indent=2))
    elif isinstance(result, Proof):
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


def _show_dry_run(settings: dict[str, Any], choice: dict[str, Any], words: dict[str, Any]) -> None:
    if words["as_json"]:
        click.echo(json.dumps({"settings": settings, **choice}, indent=2))
        return
    console.print(f"backend {choice['backend']}: {choice['why']}")
    for name, queue in zip(("up", "down"), choice["queues"], strict=True):
        console.print(f"{name}: {'left alone' if queue is None else queue}")
    console.print(f"rates: {_rates_said(settings['control'])}")
    framing = settings["framing"]
    why = f" ({framing_of(settings['device'])['why']})" if words["framing"] in (None, "auto") else ""
    console.print(f"framing: {framing['overhead_bytes']} bytes a packet{why}")
    probed = ", ".join(next(iter(one.values())) for one in settings["reflectors"])
    console.print(f"probes: {probed or 'public resolvers, and the hosts that the traffic goes to'}")
    if choice["backend"] == "userspace":
        console.print(
            f"table that would be made, and goes with the process: inet weir-shape-{settings['device']}"
        )
    else:
        console.print("what is at the device's root and way in would be put back at the end")
        if settings["rules"] is not None:
            console.print(
                "tables that would be made for rules, and go with the process: inet and netdev "
                f"weir-shape-{settings['device']}"
            )


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


def _decision(line: dict[str, Any]) -> str:
    what = line["decision"]
    rate = "open" if what["rate_bps"] is None else f"{what['rate_bps'] / 1e6:.2f} Mbit/s"
    return (
        f"{line['t'] / 1e9:9.2f} s  {what['side']:4} {rate:15} {what['state'].replace('_', ' '):12} "
        f"{what['reason']} {what['value']:.3g}"
    )
