"""`weir list`: the tests, links, queues, markers, congestion controls and schemas of files that there are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from weirlab import _native
from weirlab.cli import completion
from weirlab.cli.options import OneOf, argument, option
from weirlab.cli.schemas import described_schemas
from weirlab.errors import UsageError
from weirlab.flent.plots import flent_plots
from weirlab.flent.tests import flent_tests
from weirlab.scenario import line_rate, load_link, load_test, shipped_links, shipped_tests
from weirlab.scenario.files import told
from weirlab.ui import console
from weirlab.ui.table import Table
from weirlab.worlds import world_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weirlab.scenario import TestSpec


@click.command("list")
@argument(
    "what",
    type=OneOf(
        [
            "tests",
            "links",
            "queues",
            "markers",
            "congestion-controls",
            "flent-tests",
            "flent-plots",
            "schemas",
        ]
    ),
)
@argument("name", required=False, shell_complete=completion.listed)
@option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def command(what: str, name: str | None, *, as_json: bool) -> None:
    """List what there is, by name; with a NAME, everything about one of them.

    \b
    weir list tests
    weir list queues fq_codel

    Queues are classful (others sit in their classes), classless, or presets, which stand for tc commands.

    The NAME of a preset may carry its parameters, as in `weir list queues 'simple rate 8mbit'`: the tc
    commands for which it stands are shown.

    A schema is the JSON Schema of a kind of TOML file, by which editors complete and check it.
    """  # noqa: D301 - \b keeps click from folding the examples
    kind = _kinds()[what]
    if name is None:
        entries = kind.entries()
    elif what == "queues":
        entries = [_with_expansion(name)]
    else:
        entries = [_named(name, what, kind.entries())]
    if as_json:
        click.echo(json.dumps(entries, indent=2))
    elif name is None:
        kind.show_all(entries)
    else:
        kind.show_one(entries[0])


@dataclass(frozen=True)
class _Kind:
    """A kind of things that can be listed.

    Attributes:
        entries: all of them, each with its name.
        show_all: prints a table of them.
        show_one: prints all about one.
    """

    entries: Callable[[], list[dict[str, Any]]]
    show_all: Callable[[list[dict[str, Any]]], None]
    show_one: Callable[[dict[str, Any]], None]


def _kinds() -> dict[str, _Kind]:
    return {
        "tests": _Kind(_tests, _show_tests, _show_one),
        "links": _Kind(_links, partial(_show_many, "links"), _show_one),
        "queues": _Kind(_queues, partial(_show_many, "queues"), _show_parameters),
        "markers": _Kind(_markers, partial(_show_many, "markers"), _show_parameters),
        "congestion-controls": _Kind(
            _congestion_controls, partial(_show_many, "congestion-controls"), _show_parameters
        ),
        "flent-tests": _Kind(_flent_tests, _show_flent_tests, lambda one: _show_flent_tests([one])),
        "flent-plots": _Kind(_flent_plots, _show_flent_plots, lambda one: _show_flent_plots([one])),
        "schemas": _Kind(
            described_schemas,
            partial(_show_many, "schemas"),
            lambda one: click.echo(json.dumps(one["schema"], indent=2)),
        ),
    }


def _named(name: str, what: str, entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The entry of that name.

    Raises:
        UsageError: if there is none.
    """
    for entry in entries:
        if entry["name"] == name:
            return entry
    near = _native.nearest(name, [entry["name"] for entry in entries])
    rest = f"did you mean `{near}`?" if near else f"`weir list {what}` names all"
    raise UsageError(f"there is no {what.removesuffix('s').replace('-', ' ')} `{name}`: {rest}")


def _tests() -> list[dict[str, Any]]:
    return [load_test(name).model_dump(mode="json") for name in shipped_tests()]


def _show_tests(entries: Sequence[Mapping[str, Any]]) -> None:
    """Our own tests, and those of Flent that they stand for."""
    _show_many("tests", entries)
    _show_flent_tests(_flent_tests())


def _flent_tests() -> list[dict[str, Any]]:
    """The tests of Flent, what is run in place of each, where, and what that needs."""
    found = []
    for test in flent_tests().values():
        worlds = dict.fromkeys(world_names(), bool(test.runs))
        ours = load_test(test.runs[0]) if test.runs else None
        hosts = [host.name for host in ours.hosts] if ours is not None else []
        runs = " ".join(test.runs)
        found.append(
            {
                "name": test.name,
                "title": test.title,
                "runs": runs,
                "worlds": worlds,
                "hosts": hosts,
                "kernel": sorted(_needed_of_kernel(ours)) if ours is not None else [],
                "reason": test.reason,
            }
        )
    return found


def _needed_of_kernel(test: TestSpec) -> set[str]:
    """The congestion controls that lab and net need, beside those that every Linux has."""
    named = {flow.tcp.congestion_control for flow in test.flows}
    return {name for name in named if name is not None} - {"cubic", "reno"}


def _show_flent_tests(entries: Sequence[Mapping[str, Any]]) -> None:
    there = sum(bool(one["runs"]) for one in entries)
    of = f"{there} of Flent's {len(entries)} tests run here" if len(entries) > 1 else "A test of Flent's"
    table = Table(title=f"{of} (`weir flent NAME -H HOST`)")
    table.add_column("name", no_wrap=True)
    table.add_column("worlds", no_wrap=True)
    table.add_column("what it is; what runs in place of it, or why none can")
    for one in entries:
        worlds = " ".join(name for name, can in one["worlds"].items() if can) or "-"
        run = f"`weir run {one['runs']}`" if one["runs"] else ""
        to = f"-H {len(one['hosts'])} times, for {', '.join(one['hosts'])}" if len(one["hosts"]) > 1 else ""
        needs = f"lab and net need a kernel with {', '.join(one['kernel'])}" if one["kernel"] else ""
        words = f"{one['title']}: {'; '.join(filter(None, (run, to, needs, one['reason'])))}"
        table.add_row(one["name"], worlds, words)
    console.print(table)


def _flent_plots() -> list[dict[str, Any]]:
    """The plots of Flent, and the charts that show the same."""
    return [asdict(plot) for plot in flent_plots().values()]


def _show_flent_plots(entries: Sequence[Mapping[str, Any]]) -> None:
    drawn = sum(bool(one["charts"]) for one in entries)
    of = f"{drawn} of Flent's {len(entries)} plots" if len(entries) > 1 else "A plot of Flent's"
    table = Table(title=f"{of} as charts of Weir (`weir plot --kind CHART`)")
    table.add_column("name", no_wrap=True)
    table.add_column("charts", no_wrap=True)
    table.add_column("what they show, or why there is none")
    for one in entries:
        table.add_row(one["name"], " ".join(one["charts"]) or "-", one["note"])
    console.print(table)


def _links() -> list[dict[str, Any]]:
    links = []
    for name in shipped_links():
        link = load_link(name)
        rates = {"down_bps": line_rate(link, "down"), "up_bps": line_rate(link, "up")}
        links.append(link.model_dump(mode="json") | rates)
    return links


def _queues() -> list[dict[str, Any]]:
    return [dict(discipline) for discipline in _native.disciplines()]


def _with_expansion(spec: str) -> dict[str, Any]:
    """Description of the discipline or preset that `spec` names first.

    Raises:
        UsageError: if there is none of that name, or its words are wrong.
    """
    name, _, words = spec.strip().partition(" ")
    found = _named(name, "queues", _queues())
    if not found["preset"]:
        if words:
            raise UsageError(f"`{name}` is no preset: write its name only")
        return found
    text = spec if words else f"{name} {PRESET_EXAMPLE}"
    return found | {"expands": text, "expansion": told(lambda: _native.expand_queue(text, None))}


def _markers() -> list[dict[str, Any]]:
    return [dict(marker) for marker in _native.markers()]


def _congestion_controls() -> list[dict[str, Any]]:
    return [dict(known) for known in _native.congestion_controls()]


def _show_many(what: str, entries: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title=f"{what.replace('-', ' ').capitalize()} (`weir list {what} NAME` shows all of one)")
    table.add_column("name", no_wrap=True)
    if what == "queues":
        table.add_column("kind", no_wrap=True)
    table.add_column("what it is")
    for entry in entries:
        title = f"{entry['title']}: " if "title" in entry else ""
        words = f"{title}{entry['summary'].removeprefix('preset: ')}"
        cells = [_kind(entry), words] if what == "queues" else [words]
        table.add_row(entry["name"], *cells)
    console.print(table)


def _kind(queue: Mapping[str, Any]) -> str:
    """Whether a queue is a preset, or has classes in which other queues sit (tc(8))."""
    if queue["preset"]:
        return "preset"
    return "classful" if queue["classful"] else "classless"


def _headed(name: str, words: str) -> Text:
    return Text.assemble((name, "bold"), f": {words}")


def _show_one(entry: Mapping[str, Any]) -> None:
    """A test or link with its parts."""
    console.print(_headed(entry["name"], entry["title"]))
    console.print(entry["summary"])
    console.print(f"Source: {' '.join(entry['source'].split())}", style="dim")
    for key in ("flows", "probes", "methods", "hosts", "up", "down"):
        rows = entry.get(key) or []
        if not rows:
            continue
        columns = [column for column in rows[0] if any(_says(row[column]) for row in rows)]
        table = Table(title=key)
        for column in columns:
            table.add_column(column)
        for row in rows:
            table.add_row(*(_cell(row[column]) for column in columns))
        console.print(table)


def _says(value: object) -> bool:
    """Whether a value says anything: no jitter, no loss and no change say nothing."""
    return value not in (None, {}, "", [], 0, "0s")


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {one}" for key, one in value.items() if one is not None)
    return "" if value is None else str(value)


def _show_parameters(entry: Mapping[str, Any]) -> None:
    """A discipline, marker or congestion control with its parameters."""
    console.print(_headed(entry["name"], entry["summary"]))
    console.print(f"  Source: {entry['source']}", style="dim")
    for heading, key in (("parameter", "params"), ("class parameter", "class_params")):
        if not entry.get(key):
            continue
        table = Table(box=None, padding=(0, 2, 0, 2))
        for column in (heading, "default", "unit", "meaning"):
            table.add_column(column)
        for param in entry[key]:
            name = ", ".join([param["name"], *param["aliases"]])
            cells = (name, param["default"], param["unit"], param["meaning"])
            table.add_row(*cells)
        console.print(table)
    if "expansion" in entry:
        console.print(f"  `{entry['expands']}` stands for:")
        console.print(entry["expansion"].rstrip(), soft_wrap=True)
    console.print()


PRESET_EXAMPLE = "rate 20mbit"
"""Rate with which a preset is shown where none is given."""
