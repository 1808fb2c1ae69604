"""The pages of the application, as HTML: what a record or a run says is escaped in every place."""

from __future__ import annotations

import json
import shlex
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from weirlab.errors import counted, written_out
from weirlab.scenario import (
    congestion_controls,
    load_link,
    load_test,
    queue_names,
    queue_words,
    shipped_links,
    shipped_tests,
)
from weirlab.sweeps.charts import KINDS
from weirlab.sweeps.charts.data import plain, words
from weirlab.viewer import as_command, prose, shell, shown
from weirlab.webapp.keys import scenario_keys
from weirlab.webapp.library import MAX_SHOWN, NO_TEXT, as_text, is_text
from weirlab.webapp.runs import PHASES, worlds
from weirlab.webapp.sweeps import MAX_ROWS

__all__ = [
    "error_page",
    "form_page",
    "header",
    "records_page",
    "run_page",
    "run_state",
    "runs_page",
    "scenario_page",
    "scenarios_page",
    "shapers_page",
    "sweep_page",
    "sweeps_page",
    "waiting_page",
    "watch_page",
]

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import polars as pl

    from weirlab.sweeps.charts.told import Told
    from weirlab.webapp.library import Entry
    from weirlab.webapp.runs import Run, Runs
    from weirlab.webapp.sweeps import Seen


def navigation(prefix: str, here: str | None = None) -> str:
    """The links at the head of every page.

    Args:
        prefix: the first part of every address.
        here: the place of the page itself, which is marked; None of one that none of the links leads to.
    """
    links = (
        ("", "Records"),
        ("new", "New run"),
        ("scenarios", "Scenarios"),
        ("runs", "Runs"),
        ("sweeps", "Sweeps"),
        ("shapers", "Shapers"),
    )
    current = ' aria-current="page"'
    items = " ".join(
        f'<a href="{prefix}/{place}"{current if place == here else ""}>{name}</a>' for place, name in links
    )
    return f'<nav class="noprint" aria-label="Weir">{items}</nav>\n'


def header(prefix: str, command: str) -> str:
    """The head of a page of records: the links, and the command that does what it shows."""
    told = f'<p class="noprint quiet">The same on the command line: <code>{as_command(command)}</code></p>\n'
    return f"<header>{navigation(prefix)}{told}</header>\n"


def records_page(prefix: str, folder: Path, entries: Sequence[Entry], total: int, runs: Runs) -> str:
    """The list of records, with its filters; of `total` records below the folder it may have the latest.

    `runs` are those of the application, of which it knows whether they are under way.
    """
    if not entries:
        return _page(prefix, "empty", "Records", _none_yet(prefix, folder))
    rows = "".join(_row(one, folder, prefix, _state(one, runs)) for one in entries)
    command = shown(shlex.join(["weir", "show", str(folder)]))
    worlds = _options(sorted({one.world for one in entries if one.world}), "any")
    tests = _options(sorted({one.test for one in entries if one.test}), "any")
    links = _options(sorted({one.link for one in entries if one.link}), "any")
    queues = _options(sorted({one.queue for one in entries if one.queue}), "any")
    # A style sheet makes paragraphs of rows; the roles say what they are all the same.
    head = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in COLUMNS)
    return _page(
        prefix,
        "records",
        "Records",
        f"""<h1>Records</h1>
<p class="quiet">{_counted(entries, total)} below <code>{shown(str(folder))}</code></p>
<div class="bar" role="search">
<label>Search <input id="search" type="search" autocomplete="off"></label>
<label>Test <select id="test">{tests}</select></label>
<label>Link <select id="link">{links}</select></label>
<label>Queue <select id="queue">{queues}</select></label>
<label>World <select id="world">{worlds}</select></label>
<label>Since <input id="since" type="date"></label>
<button type="button" id="open" disabled>Open</button>
<span id="count" class="quiet" role="status"></span>
</div>
<p>The same on the command line:</p>
<pre id="command" role="region" tabindex="0" aria-label="The command that does it">{command}</pre>
<details id="noting"><summary>Note and tags of the chosen records</summary>
<form id="note-form" class="form" autocomplete="off">
<p class="quiet" id="note-of"></p>
<label>Note <textarea name="note" rows="2" cols="60" maxlength="10000"></textarea></label>
<label>Tags, with spaces between them <input name="tags" size="40"></label>
<p id="note-error" class="error" role="alert" hidden></p>
<button type="submit" disabled>Keep</button> <span id="note-kept" class="quiet" role="status"></span>
</form></details>
<div class="scroll stacks" tabindex="0" role="group" aria-label="Records"><table class="list" role="table">
<thead role="rowgroup"><tr role="row"><td role="cell"></td>{head}</tr></thead>
<tbody id="rows" role="rowgroup">{rows}</tbody></table></div>
""",
        {"most": MAX_SHOWN},
    )


def form_page(prefix: str) -> str:
    """The form that starts a run."""
    queues = "".join(
        f'<label>Queue {number} <input name="queue" list="queues" size="40" '
        f'placeholder="{escape(text)}"></label>\n'
        for number, text in enumerate(QUEUES, start=1)
    )
    names = "".join(f'<option value="{escape(name)}"></option>' for name in ("default", *queue_names()))
    tests = _titled({one: load_test(one).title for one in shipped_tests()}, "rrul")
    links = _titled({one: load_link(one).title for one in shipped_links()}, "cable-20-8")
    phases = "".join(
        f"<label>Length of {name}, such as 10s "
        f'<input name="{name}" size="9" placeholder="as the test"></label>\n'
        for name in PHASES
    )
    return _page(
        prefix,
        "new",
        "New run",
        f"""<h1>New run</h1>
<form id="form" class="form">
<label>Test <select name="test">{tests}</select></label>
<label>Link <select name="link">{links}</select></label>
<fieldset><legend>Queues to compare, in the syntax of tc; the first is the baseline</legend>
{queues}<datalist id="queues">{names}</datalist></fieldset>
<label>Congestion control <select name="cc">{_options(congestion_controls(), "as the test")}</select></label>
{phases}<label>Seed <input name="seed" size="8" inputmode="numeric" placeholder="1"></label>
<label>Repeat <input name="repeat" size="8" inputmode="numeric" placeholder="1"></label>
<label>World <select name="world">{_worlds()}</select></label>
<p>The command that does it:</p>
<pre id="command" tabindex="0"></pre>
<p id="error" class="error" role="alert" hidden></p>
<button type="submit" id="start">Start</button>
</form>
""",
        {"queues": queue_words()},
    )


def runs_page(prefix: str, runs: Sequence[Run]) -> str:
    """The runs that were started here."""
    items = "".join(
        f'<li><a href="{prefix}/runs/{one.number}"><code>{shown(one.command)}</code></a> '
        f"{run_state(one)}</li>\n"
        for one in runs
    )
    return _page(
        prefix,
        "runs",
        "Runs",
        f"<h1>Runs</h1>\n<ul>{items}</ul>\n"
        + ("" if runs else f'<p>None yet: <a href="{prefix}/new">start one</a>.</p>\n'),
    )


def run_page(prefix: str, run: Run) -> str:
    """A run that is watched."""
    return _page(
        prefix,
        "run",
        f"Run {run.number}",
        f"""<h1>Run {run.number}</h1>
<pre role="region" tabindex="0" aria-label="The command">{as_command(run.command)}</pre>
<p id="state" role="status">{run_state(run)}</p>
<p><progress id="progress" max="{run.total}" value="0" aria-label="Records that are complete"></progress></p>
<p><button type="button" id="stop">Stop</button> <span id="made"></span></p>
<h2>Charts</h2>
{LIVE}<h2>Output</h2>
<pre id="output" role="region" tabindex="0" aria-label="Output"></pre>
""",
        {"number": run.number, "most": MAX_SHOWN},
    )


def watch_page(prefix: str, place: str, command: str) -> str:
    """A record that is watched while it is made, by whatever command."""
    return _page(
        prefix,
        "watch",
        f"Watching {place}",
        f"""<h1>{shown(place)}</h1>
<p class="quiet">What its run, such as one of <code>weir run</code> or <code>weir lab exec --out</code>, has
written so far; also of a run that was cut short.</p>
<pre role="region" tabindex="0" aria-label="The command">{as_command(command)}</pre>
<p id="state" role="status"></p>
<h2>Charts</h2>
{LIVE}""",
        {"record": place},
    )


def shapers_page(prefix: str) -> str:
    """The shapers of this machine, which are watched."""
    return _page(
        prefix,
        "shapers",
        "Shapers",
        """<h1>Shapers</h1>
<p class="quiet">Those that shape an interface of this machine now, in the network namespace of this
application. They are looked at and not changed: the commands begin and end them.</p>
<p id="count" role="status"></p>
<pre role="region" tabindex="0" aria-label="The command that starts one">weir shape IFACE</pre>
<div id="shapers"></div>
""",
    )


def sweeps_page(prefix: str, folder: Path, places: Sequence[str]) -> str:
    """The stores of sweeps below the folder."""
    return _page(
        prefix,
        "sweeps",
        "Sweeps",
        f"""<h1>Sweeps</h1>
<p>A sweep runs one scenario at many points, and its store has a row for each run. These lie below
<code>{shown(str(folder))}</code>:</p>
{_links(f"{prefix}/sweep?store=", places)}<p class="quiet">A plan is a scenario with a table
<code>sweep</code>; this does what its store does not have yet:</p>
<pre role="region" tabindex="0" aria-label="The command that runs one">weir sweep PLAN.toml</pre>
""",
    )


def sweep_page(prefix: str, seen: Seen, query: str, chart: Told | str) -> str:
    """A store: one chart of it, and the figures that it shows.

    Args:
        prefix: the first part of every address.
        seen: what there is to see.
        query: how the page was asked for.
        chart: the figures of the chart, or why there is no such chart.
    """
    asked, place = seen.asked, escape(seen.place)
    figures = {name: words(name) for name in seen.figures}
    choices = [
        ("figure", "Figure", _entitled(figures, asked.figure), " ".join(KINDS)),
        ("against", "Against", _entitled(figures, asked.against), "pareto"),
        ("x", "Left to right", _options(seen.axes, "as it fits", asked.x), "heat lines"),
        ("by", "Rows, lines or colours", _options(seen.axes, "as it fits", asked.by), "heat lines pareto"),
        ("panels", "A panel for each", _options(seen.axes, "none", asked.panels), " ".join(KINDS)),
    ]
    selects = "".join(
        f'<label data-for="{kinds}">{what} <select name="{name}">{among}</select></label>\n'
        for name, what, among, kinds in choices
    )
    if isinstance(chart, str):
        picture = f'<p class="error" role="alert">{prose(chart)}</p>\n'
        figures_of, table = "Means over the runs of each row.", seen.table
    else:
        says = shown(f"Chart: {chart.heading}. {chart.summary} The table below has all of its figures.")
        picture = f'<img class="sweep" src="{prefix}/sweep/chart?{escape(query)}" alt="{says}">\n'
        figures_of, table = chart.figures, chart.table.head(MAX_ROWS)
        if chart.table.height > MAX_ROWS:
            figures_of += f" The first {MAX_ROWS} of {chart.table.height} rows."
    failed = f", {seen.failed} of them failed" if seen.failed else ""
    over = f", over {shown(', '.join(map(plain, seen.axes)))}" if seen.axes else ""
    return _page(
        prefix,
        "sweep",
        seen.place,
        f"""<h1>{shown(seen.place)}</h1>
<p class="quiet">{counted(seen.runs, "run")}{failed}{over}</p>
<form id="form" class="choices" autocomplete="off"><input type="hidden" name="store" value="{place}">
<label>Chart <select name="kind">{_titled(dict(KINDS), seen.kind)}</select></label>
{selects}<button type="submit">Draw</button></form>
{picture}<p>The same on the command line:</p>
<pre role="region" tabindex="0" aria-label="The command that does it">{as_command(seen.command)}</pre>
<h2>Figures</h2>
<p class="quiet">{shown(figures_of)}</p>
{_table(table)}""",
    )


def _links(address: str, places: Sequence[str]) -> str:
    """A list of what lies below the folder; a place at the end of `address` leads to its page."""
    items = "".join(
        f'<li><a href="{address}{escape(quote(one))}">{shown(one)}</a></li>\n'
        if is_text(one)
        else f"<li>{shown(as_text(one))}: {NO_TEXT}</li>\n"
        for one in places
    )
    return f"<ul>{items}</ul>\n" if places else "<p>There is none yet.</p>\n"


def _table(rows: pl.DataFrame) -> str:
    """A table of values and figures, those to four digits."""
    head = "".join(f'<th scope="col">{shown(words(name))}</th>' for name in rows.columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{shown(_value(one))}</td>' for one in row)}</tr>\n" for row in rows.iter_rows()
    )
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="Figures"><table class="list">\n'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n"
    )


def _value(one: object) -> str:
    return "" if one is None else f"{one:.4g}" if isinstance(one, float) else str(one)


def scenarios_page(prefix: str, folder: Path, files: Sequence[str]) -> str:
    """The scenario files below the folder."""
    return _page(
        prefix,
        "scenarios",
        "Scenarios",
        f"""<h1>Scenarios</h1>
<p>A scenario is a file that says what is run: a test, a link, and the queues to compare. These lie below
<code>{shown(str(folder))}</code>:</p>
{_links(f"{prefix}/scenario?file=", files)}<p><a href="{prefix}/scenario">Write a new one</a></p>
<p class="quiet">On the command line any editor writes one, and this runs it:</p>
<pre role="region" tabindex="0" aria-label="The command that runs one">weir run FILE.toml</pre>
""",
    )


def scenario_page(prefix: str, place: str, text: str, mark: str) -> str:
    """The editor of the scenario file at `place`; of a new one if that is empty."""
    rows = "".join(
        f'<tr data-key="{escape(one.place)}"><th scope="row"><code>{escape(one.place)}</code></th>'
        f"<td>{escape(one.kind)}</td><td>{prose(one.meaning)}</td></tr>\n"
        for one in scenario_keys()
    )
    fixed = " readonly" if place else ' placeholder="my-line.toml" required'
    return _page(
        prefix,
        "scenario",
        place or "New scenario",
        f"""<h1>{shown(place or "New scenario")}</h1>
<form id="form" class="form" autocomplete="off">
<label>File <input name="file" size="40" value="{escape(place)}"{fixed}></label>
<label>Scenario, in TOML
<textarea name="text" rows="18" cols="80" spellcheck="false" autocapitalize="off" aria-describedby="key"
>\n{escape(text)}</textarea></label>
<p id="key" class="quiet" role="status">Move to a line: what its key means stands here.</p>
<label>World <select name="world">{_worlds()}</select></label>
<p>The command that runs it, once it is kept:</p>
<pre id="command" tabindex="0"></pre>
<p id="error" class="error" role="alert" hidden></p>
<button type="button" id="keep">Keep</button>
<button type="submit" id="start">Keep and run</button>
<span id="kept" class="quiet" role="status"></span>
</form>
<h2>Keys</h2>
<div class="bar" role="search"><label>Search <input id="search" type="search" autocomplete="off"></label>
<span id="count" class="quiet" role="status"></span></div>
<div class="scroll" tabindex="0" role="group" aria-label="Keys of a scenario"><table class="list">
<thead><tr><th scope="col">Key</th><th scope="col">Value</th><th scope="col">Meaning</th></tr></thead>
<tbody id="keys">{rows}</tbody></table></div>
""",
        {"mark": mark},
    )


def waiting_page(prefix: str, rows: int, place: str) -> str:
    """A page that is there until that at `place` is."""
    content = (
        f'<h1>One moment</h1>\n<p role="status">The figures of {rows:,} pings are being computed. '
        "The page with them follows by itself.</p>\n"
    )
    follow = f'<meta http-equiv="refresh" content="0; url={escape(place)}">\n'
    return shell(
        "One moment · Weir", f"{navigation(prefix)}<main>\n{content}</main>\n", head=_style(prefix) + follow
    )


def error_page(prefix: str, message: str) -> str:
    """A page that says in a sentence what went wrong."""
    content = f'<h1>That did not work</h1>\n<p class="error" role="alert">{prose(message)}</p>\n'
    return _page(prefix, "error", "Error", content)


def _page(prefix: str, kind: str, title: str, content: str, data: dict[str, Any] | None = None) -> str:
    told = json.dumps({"page": kind, "prefix": prefix} | (data or {})).replace("<", "\\u003c")
    body = (
        f"{navigation(prefix, PLACES.get(kind))}<main>\n"
        '<noscript><p class="warning">This page needs JavaScript.</p></noscript>\n'
        f"{content}</main>\n"
        f'<script type="application/json" id="weir-page">{told}</script>\n'
        f'<script src="{prefix}/ui.js"></script>\n'
    )
    return shell(f"{title} · Weir", body, head=_style(prefix))


def _style(prefix: str) -> str:
    return f'<link rel="stylesheet" href="{prefix}/viewer.css">\n'


def _state(one: Entry, runs: Runs) -> str:
    """What the run of a record is that has not come to its end, as far as that can be told."""
    if one.has_ended or runs.is_over(one.place):
        return "cut short"
    return "under way" if runs.is_under_way(one.place) else "cut short, or under way"


def _row(one: Entry, folder: Path, prefix: str, state: str) -> str:
    """A row of the list; `state` is what its run is that has not come to its end."""
    place, told = escape(one.place), shown(one.place)
    word = escape(shlex.quote(str(folder / one.place)))
    if one.error:
        wide = f'<td role="cell" colspan="{len(COLUMNS)}">{told}: {shown(one.error)}</td>'
        return f'<tr role="row" data-place="{place}"><td role="cell"></td>{wide}</tr>\n'
    cells = [
        one.test,
        one.link,
        one.queue,
        one.world,
        "" if one.seed is None else str(one.seed),
        one.started_at[:19].replace("T", " "),
        " ".join(one.tags),
        one.note,
    ]
    columns = "".join(
        f'<td role="cell" data-column="{name}"{_as_it_is(text)}>{shown(text)}</td>'
        for name, text in zip(COLUMNS[1:], cells, strict=True)
    )
    choice = f'<input type="checkbox" aria-label="Choose {told}">'
    watched = f"{prefix}/watch?record={escape(quote(one.place))}"
    # What has ended grows no more.
    watch = f': <a href="{watched}">watch</a>' if "under way" in state else ""
    mark = "" if one.complete else f" ({state}{watch})"
    return (
        f'<tr role="row" data-place="{place}" data-word="{word}" data-test="{escape(one.test)}" '
        f'data-link="{escape(one.link)}" data-queue="{escape(one.queue)}" data-world="{escape(one.world)}" '
        f'data-date="{escape(one.started_at[:10])}">'
        f'<td role="cell">{choice}</td><td role="cell" data-column="{COLUMNS[0]}"><a>{told}</a>{mark}</td>'
        f"{columns}</tr>\n"
    )


def _as_it_is(text: str) -> str:
    """An attribute with a text that is not shown as it is: what a reader edits is the text itself."""
    return "" if written_out(text) == text else f' data-text="{escape(text)}"'


def _options(names: Sequence[str], empty: str | None, chosen: str | None = None) -> str:
    first = "" if empty is None else f'<option value="">{empty}</option>'
    return first + "".join(
        f'<option value="{escape(name)}"{" selected" if name == chosen else ""}>{shown(name)}</option>'
        for name in names
    )


def _titled(titles: dict[str, str], chosen: str) -> str:
    """Names to choose from, each with its title."""
    return _entitled({name: f"{name}: {title}" for name, title in titles.items()}, chosen)


def _entitled(titles: dict[str, str], chosen: str) -> str:
    """Names to choose from, by their titles."""
    return "".join(
        f'<option value="{escape(name)}"{" selected" if name == chosen else ""}>{shown(title)}</option>'
        for name, title in titles.items()
    )


def _counted(entries: Sequence[Entry], total: int) -> str:
    latest = f"The latest {len(entries)} of " if len(entries) < total else ""
    broken = sum(1 for one in entries if one.error)
    those = f", of which {broken} cannot be read," if broken else ""
    return f"{latest}{counted(total, 'record')}{those}"


def _none_yet(prefix: str, folder: Path) -> str:
    """What a folder without records says: there is nothing to search, and what to do instead."""
    run = as_command(shlex.join(["weir", "run", "rrul", "--out", str(folder / "first")]))
    return (
        f"<h1>Records</h1>\n<p>There is no record below <code>{shown(str(folder))}</code> yet: "
        f'<a href="{prefix}/new">start a run</a> here, or write one on the command line and load this page '
        "anew. Where records lie elsewhere, name that folder: <code>weir ui FOLDER</code>.</p>\n"
        f'<pre role="region" tabindex="0" aria-label="The command that writes a record">{run}</pre>\n'
    )


def _worlds() -> str:
    return "".join(f'<option value="{name}">{name}: {WORDS_OF[name]}</option>' for name in worlds())


def run_state(run: Run) -> str:
    """Whether a run waits or is under way, or how it ended."""
    if waits := run.waits_for:
        them = f"run {waits[0]} has" if len(waits) == 1 else f"runs {', '.join(map(str, waits))} have"
        return f"waits until {them} ended: a run in real time has this machine for itself"
    if run.code is None:
        return "under way"
    if run.code == 0:
        return "done"
    if run.process is None and run.is_stopped:
        return "stopped before it began"
    return "stopped; what was measured is kept" if run.is_stopped else f"ended with exit code {run.code}"


LIVE = """<p id="live-says">Nothing has been measured yet.</p>
<div id="live"></div>
"""
"""Where charts of what is under way are drawn."""

PLACES = {
    "records": "",
    "empty": "",
    "new": "new",
    "scenarios": "scenarios",
    "runs": "runs",
    "sweeps": "sweeps",
    "sweep": "sweeps",
    "shapers": "shapers",
}
"""Of the kinds of page that the links at the head lead to, where they are."""

WORDS_OF = {
    "sim": "simulated, in seconds",
    "lab": "this machine's own TCP, in real time",
    "kernel": "a Linux of its own, in virtual time",
}
"""What each world is, beside its name."""

COLUMNS = (
    "Record",
    "Test",
    "Link",
    "Queue",
    "World",
    "Seed",
    "Started (UTC)",
    "Tags",
    "Note",
)
"""Headings of the list of records."""

QUEUES = ("default", "such as: htb rate 95% fq_codel", "such as: cake bandwidth 95%", "")
"""Examples beside the fields for queues."""
