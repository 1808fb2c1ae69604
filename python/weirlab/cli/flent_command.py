"""`weir flent`: Flent's command line, translated into `weir run` and `weir export`."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weirlab import _native
from weirlab.cli import completion, weir
from weirlab.cli.flent_options import INPUT, refuses_flents_others
from weirlab.cli.options import MAX_NUMBER_DIGITS, argument, option
from weirlab.errors import UsageError
from weirlab.flent.exporting import flent_name
from weirlab.flent.tests import computed_series, flent_test, flent_tests
from weirlab.record import find_records
from weirlab.scenario import load_test
from weirlab.scenario.files import told
from weirlab.scenario.resolving import resolve
from weirlab.ui import note
from weirlab.worlds.net import check_hosts, path_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


OF_THE_MACHINE = (
    "of this machine a record has the kernel, the processors and, over real paths, the interfaces to the "
    "servers, but no sysctls, addresses, gateways or qdiscs"
)
"""What `-x` would ask for, and what there is."""


@click.command("flent")
@refuses_flents_others
@argument("test", shell_complete=completion.flent_tests)
@argument("more_hosts", nargs=-1, metavar="[HOST]...")
@option(
    "-H",
    "--host",
    "hosts",
    multiple=True,
    help="Server on which `weir serve` runs; of a test with several once for each. None with --link.",
)
@option("--link", shell_complete=completion.links, help="Simulate this link instead, by name or .toml file.")
@option("-l", "--length", metavar="SECONDS", default="60", show_default=True, help="Length of the load.")
@option(
    "-d", "--delay", metavar="SECONDS", default="5", show_default=True, help="Idle time before and after it."
)
@option("-t", "--title-extra", "title", help="TITLE of the file for Flent, and a part of the record's note.")
@option("-n", "--note", "text", help="What to remember of the run, for the record.")
@option(
    "-D", "--data-dir", type=click.Path(path_type=Path), default=Path(), help="Folder for what is written."
)
@option("--test-parameter", "--te", "parameters", multiple=True, metavar="KEY=VALUE", help="As in Flent.")
@option("-4", "--ipv4", "ipv4", is_flag=True, help="IPv4 only.")
@option("-6", "--ipv6", "ipv6", is_flag=True, help="IPv6 only.")
@option(
    "-x",
    "--extended-metadata",
    "extended",
    is_flag=True,
    help="Nothing: a record has no sysctls, addresses, gateways or qdiscs of the machine.",
)
@option("-s", "--step-size", "step", help="Nothing: a record has every sample.")
@option("--socket-stats", is_flag=True, help="Nothing: a record always has the state of TCP senders.")
@option("--dry-run", is_flag=True, help="Only print the translation.")
def command(  # noqa: PLR0913 - one word each on the command line
    test: str,
    more_hosts: tuple[str, ...],
    *,
    hosts: tuple[str, ...],
    link: str | None,
    length: str,
    delay: str,
    title: str | None,
    text: str | None,
    data_dir: Path,
    parameters: tuple[str, ...],
    ipv4: bool,
    ipv6: bool,
    extended: bool,
    step: str | None,
    socket_stats: bool,
    dry_run: bool,
) -> None:
    """Run a test of Flent's, with Flent's options; the translation is printed.

    \b
    weir flent rrul -l 60 -H server.example -t 'fq_codel, 20 Mbit/s' -x
    weir flent tcp_download server.example
    weir flent rtt_fair_up -H a.example -H b.example -H c.example -H d.example
    weir flent tcp_4up --link cable-20-8 -l 30

    The server runs `weir serve`, not netserver. Record and charts go into a folder below -D, a data file for
    Flent beside it. `weir list flent-tests` names the tests.
    """  # noqa: D301 - \b keeps click from folding the examples
    hosts += more_hosts
    words = _run_words(test, hosts, link, length, delay)
    words += _parameter_words(test, parameters, is_simulated=link is not None)
    if ipv4 and ipv6:
        raise UsageError("-4 and -6 exclude each other: write one of them")
    words += ["--ip", "4" if ipv4 else "6"] if ipv4 or ipv6 else []
    _check(words, hosts)
    remembered = ": ".join(filter(None, (title, text)))
    words += ["--note", remembered] if remembered else []
    out = data_dir / f"{test}-{time.strftime('%Y-%m-%dT%H%M%S')}"
    words += ["--out", str(out)]
    note(f"weir {shlex.join(words)}")
    if extended:
        note(f"-x changes nothing: {OF_THE_MACHINE}")
    if step is not None:
        note("-s changes nothing: a record has every sample")
    if socket_stats:
        note("--socket-stats changes nothing: a record always has the state of TCP senders")
    if dry_run:
        return
    _do(words)
    (record,) = find_records(out)
    if record.manifest.scenario["name"] not in computed_series():
        note(f"no file for Flent is written: its test `{test}` has series that a record has not")
        return
    target = data_dir / flent_name(record, title)
    export = ["export", str(out), *([f"--title={title}"] if title is not None else []), "--out", str(target)]
    note(f"weir {shlex.join(export)}")
    _do(export)


def _do(words: Sequence[str]) -> None:
    weir.main(list(words), prog_name="weir", standalone_mode=False)


def _run_words(test: str, hosts: Sequence[str], link: str | None, length: str, delay: str) -> list[str]:
    """The words of `weir run` for a test, where it runs, and how long."""
    if test not in flent_tests() and Path(test).is_file():
        raise UsageError(f"`{test}` is a file and no test of Flent's: {INPUT}")
    found = flent_test(test)
    if found.reason:
        raise UsageError(f"Flent's test `{test}` cannot run here: {found.reason}")
    if hosts and link is not None:
        raise UsageError("-H and --link exclude each other: a test runs to a server or over a simulated link")
    if not hosts and link is None:
        raise UsageError(
            "say where it runs: -H HOST with `weir serve` on it, or --link LINK for the simulator"
        )
    if hosts:
        names = [host.name for host in load_test(found.runs[0]).hosts]
        if found.any_hosts and len(hosts) != len(names):
            given = "one is" if len(hosts) == 1 else f"{len(hosts)} are"
            raise UsageError(
                f"`{test}` has in Flent as many servers as are given, and here {len(names)}; {given} given "
                f"({', '.join(hosts)}): give -H {len(names)} times, or write a test of your own for "
                "`weir run`, with its own `hosts`"
            )
        check_hosts(test, names, hosts, option="-H")
    words = ["run", *found.runs]
    words += ["--link", str(link)] if link is not None else ["--world", "net"]
    words += [word for host in hosts for word in ("--host", host)]
    for name, value in (("-l", length), ("-d", delay)):
        if not value.replace(".", "", 1).isascii() or not value.replace(".", "", 1).isdecimal():
            raise UsageError(f"{name} {value}: write seconds, such as 60")
    return words + _phase_words(found.runs[0], length, delay)


def _phase_words(test: str, length: str, delay: str) -> list[str]:
    """How long each phase that a test has shall last.

    Raises:
        UsageError: if its flows start at times of their own, which other lengths would not fit.
    """
    ours = load_test(test)
    if any(flow.start is not None for flow in ours.flows):
        if (length, delay) != ("60", "5"):
            raise UsageError(
                f"`{test}` starts its flows one after another, at fixed times: leave -l and -d out"
            )
        return []
    phases = ours.phases.model_dump(mode="json", exclude_defaults=True)
    given = {"idle": delay if "load" in phases else length, "load": length, "cooldown": delay}
    return [word for name in given if name in phases for word in (f"--{name}", f"{given[name]}s")]


def _parameter_words(test: str, parameters: Sequence[str], *, is_simulated: bool) -> list[str]:
    """Parameters of Flent's `test` as options of `weir run`; only a server knows its congestion controls.

    Raises:
        UsageError: for one that has no counterpart, or a value that it cannot have.
    """
    runs = flent_test(test).runs
    known = PARAMETERS.get(runs[0], {})
    fixed = dict(word.split("=") for word in runs[1:] if "=" in word)
    found: dict[str, str] = {}
    for parameter in parameters:
        key, equals, value = parameter.partition("=")
        if not equals:
            raise UsageError(f"--test-parameter {parameter}: write KEY=VALUE")
        if key not in {CONTROL, *known}:
            names = ", ".join((CONTROL, *known))
            raise UsageError(f"--test-parameter {parameter}: of `{test}` these are understood: {names}")
        if key in found:
            raise UsageError(
                f"--test-parameter {key} is given twice, as `{found[key]}` and `{value}`: write it once"
            )
        found[key] = value
        if key == CONTROL:
            controls = [str(one["name"]) for one in _native.congestion_controls()]
            if value not in controls and (is_simulated or "," in value):
                raise UsageError(
                    f"--test-parameter {parameter}: write one of {', '.join(controls)}, for all loads"
                )
        elif known[key] in fixed:
            raise UsageError(
                f"--test-parameter {parameter}: `{test}` has {fixed[known[key]]} always, in Flent too; "
                f"`{runs[0]}` takes other numbers"
            )
        elif not value.isascii() or not value.isdecimal() or len(value) > MAX_NUMBER_DIGITS:
            raise UsageError(f"--test-parameter {parameter}: write a number of streams, such as {key}=8")
    return [
        word
        for key, value in found.items()
        for word in (("--cc", value) if key == CONTROL else ("--set", f"{known[key]}={value}"))
    ]


def _check(words: Sequence[str], hosts: Sequence[str]) -> None:
    """Refuses what `weir run` would refuse of `words`, by the options that stand on Flent's line.

    Raises:
        UsageError: what is wrong.
    """
    given = list(zip(words[2::2], words[3::2], strict=True))
    phases = {name: value for name in PHASES for option_, value in given if option_ == f"--{name}"}
    settings = dict(value.split("=") for option_, value in given if option_ == "--set")
    said: dict[str, Any] = {
        "test": words[1],
        "link": path_to(*hosts) if hosts else dict(given)["--link"],
        **({"phases": phases} if phases else {}),
        **({"parameters": {key: int(value) for key, value in settings.items()}} if settings else {}),
    }
    theirs = {ours: key for key, ours in PARAMETERS.get(words[1], {}).items()}
    names = {
        "link": "--link",
        "phases.load": "-l",
        "phases.idle": "-d" if "load" in phases else "-l",
        "phases.cooldown": "-d",
        **{f"parameters.{name}": f"--test-parameter {theirs[name]}" for name in settings},
    }
    told(lambda: _native.read_spec("ScenarioSpec", said, "command line", list(names.items())))
    try:
        resolve(said)
    except UsageError as error:
        key, colon, says = str(error).partition(": ")
        if not colon or key not in names:
            raise
        raise UsageError(f"{names[key]}: {says}") from error


CONTROL = "tcp_cong_control"

PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "tcp_nup": {"upload_streams": "streams"},
    "tcp_ndown": {"download_streams": "streams"},
    "rrul_be_nflows": {"upload_streams": "upload_streams", "download_streams": "download_streams"},
    "rrul_var": {"bidir_streams": "bidir_streams"},
}
"""Flent's parameters of numbers of streams, by test, and what they are called here."""

PHASES = ("idle", "load", "cooldown")
