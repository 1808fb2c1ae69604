"""The application: which address does what."""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from weirlab.errors import RecordError, UsageError, WeirError
from weirlab.reading import whole
from weirlab.record import pack
from weirlab.record.tables import TABLES
from weirlab.shape import watching
from weirlab.viewer import Source, asset, page_data, report_page
from weirlab.webapp import pages
from weirlab.webapp.guard import Guard
from weirlab.webapp.library import MAX_ENTRIES, Library
from weirlab.webapp.made import Made
from weirlab.webapp.noting import noting
from weirlab.webapp.overviews import Overviews
from weirlab.webapp.runs import FormError, Runs, command_of
from weirlab.webapp.scenarios import FIRST, Scenarios, mark_of
from weirlab.webapp.sweeps import Sweeps

__all__ = ["Application", "application"]

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request

    from weirlab.record import Record
    from weirlab.sweeps.charts.told import Told


@dataclass(frozen=True)
class Application:
    """The application, and the runs that it must end.

    Attributes:
        guard: what serves requests (ASGI).
        runs: the runs that were started.
        path: where it begins, with the token.
    """

    guard: Guard
    runs: Runs
    path: str


def application(folder: Path, token: str, port: int) -> Application:
    """The application for the records below `folder`.

    Args:
        folder: where records lie, and where those of new runs go.
        token: the first part of every address, of letters and digits that nobody can guess.
        port: the port of 127.0.0.1 that it is reached by.
    """
    runs = Runs(folder)
    served = _Served(folder, Library(folder), runs, f"/{token}", Scenarios(folder), Sweeps(folder))
    return Application(Guard(served.app(), token, port), runs, f"/{token}/")


@dataclass(frozen=True)
class _Served:
    """The answers. Those that read records run in threads of their own."""

    folder: Path
    library: Library
    runs: Runs
    prefix: str
    scenarios: Scenarios
    sweeps: Sweeps
    overviews: Overviews = field(default_factory=Overviews)
    made: Made = field(default_factory=Made)

    def app(self) -> Starlette:
        routes = [
            Route("/", self.records),
            Route("/view", self.view),
            Route("/record", self.record),
            Route("/live", self.live),
            Route("/watch", self.watch),
            Route("/note", self.note, methods=["POST"]),
            Route("/note/check", self.note_check, methods=["POST"]),
            Route("/new", self.form),
            Route("/check", self.check, methods=["POST"]),
            Route("/scenarios", self.scenario_files),
            Route("/scenario", self.scenario),
            Route("/scenario/check", self.scenario_check, methods=["POST"]),
            Route("/scenario/keep", self.scenario_keep, methods=["POST"]),
            Route("/scenario/start", self.scenario_start, methods=["POST"]),
            Route("/runs", self.all_runs),
            Route("/start", self.start, methods=["POST"]),
            Route("/runs/{number:int}", self.run),
            Route("/runs/{number:int}/state", self.state),
            Route("/runs/{number:int}/stop", self.stop, methods=["POST"]),
            Route("/sweeps", self.stores),
            Route("/sweep", self.sweep),
            Route("/sweep/chart", self.chart),
            Route("/shapers", self.shapers),
            Route("/shapers/state", self.shaped),
            Route("/shaper/state", self.shaper),
            *(Route(f"/{name}", self.file) for name in FILES),
        ]
        return Starlette(
            routes=routes, exception_handlers={WeirError: self.failed, HTTPException: self.absent}
        )

    def failed(self, request: Request, error: Exception) -> Response:
        """An error that a person can mend."""
        # What scripts ask for, and show in a page of theirs.
        if request.method == "POST" or request.url.path.endswith(("/state", "/live", "/record")):
            return _Json({"error": str(error)}, status_code=400)
        return _Page(pages.error_page(self.prefix, str(error)), status_code=400)

    def absent(self, request: Request, error: Exception) -> Response:
        """An address that leads nowhere, or takes no such request."""
        status, headers = 404, None
        if isinstance(error, HTTPException):
            status, headers = error.status_code, error.headers
        place = f"`{request.url.path}`"
        said = f"{place} takes no {request.method}" if status == 405 else f"there is no page {place} here"
        if request.method == "GET":
            return _Page(pages.error_page(self.prefix, said), status_code=status, headers=headers)
        return _Json({"error": said}, status_code=status, headers=headers)

    def records(self, request: Request) -> Response:
        del request
        entries = self.library.entries()
        total = self.library.count() if len(entries) >= MAX_ENTRIES else len(entries)
        return _Page(pages.records_page(self.prefix, self.folder, entries, total, self.runs))

    def view(self, request: Request) -> Response:
        places = [*dict.fromkeys(request.query_params.getlist("record"))]
        chosen = self.library.opened(places)
        command = shlex.join(["weir", "report", *(str(one.path) for one in chosen)])
        urls = [f"{self.prefix}/record?record={quote(place)}" for place in places]
        home = pages.header(self.prefix, command)
        paths = [one.path for one in chosen]
        under_way, over = (
            [one.path for one, place in zip(chosen, places, strict=True) if is_so(place)]
            for is_so in (self.runs.is_under_way, self.runs.is_over)
        )
        rows = sum(map(_pings, chosen))
        if "whole" not in request.query_params and rows > SOON_ROWS and not self.made.has(paths):
            whole = f"{self.prefix}/view?{request.url.query}&whole"
            return _Page(pages.waiting_page(self.prefix, rows, whole))

        def made() -> str:
            overviews = [self.overviews.read(one) for one in chosen]
            script, style = f"{self.prefix}/viewer.js", f"{self.prefix}/viewer.css"
            return report_page(chosen, source=Source(urls, script, style, overviews, under_way, over, home))

        # What ends a run does not always change a file.
        return _Page(made() if under_way else self.made.page(paths, made))

    def record(self, request: Request) -> Response:
        """A record as a `.weir` file: all of it, or what a page draws of a large one.

        Its tables are read by the browser, and were by `view`: a third time would only take longer.
        """
        (found,) = self.library.opened(request.query_params.getlist("record")[:1])
        overview = self.overviews.found(found) if "overview" in request.query_params else None
        if overview is not None:
            return Response(overview.archive(found, compressed=False), media_type=ZIP)
        content = io.BytesIO()
        # It stays on this machine: to make it smaller would take longer than to send it.
        pack(found, content, compressed=False, without=_left_out(found, request.query_params.get("parts")))
        return Response(content.getvalue(), media_type=ZIP)

    def live(self, request: Request) -> Response:
        """What the viewer draws of a record that is perhaps being made."""
        places = request.query_params.getlist("record")[:1]
        chosen = self.library.records(places)
        urls = [f"{self.prefix}/record?record={quote(place)}" for place in places]
        try:
            return _Json(page_data(chosen, places, urls, [None] * len(chosen)))
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise RecordError(f"`{places[0]}`: its manifest.json is damaged") from error

    def watch(self, request: Request) -> Response:
        """A record that is watched while whoever makes it writes it."""
        places = request.query_params.getlist("record")[:1]
        (found,) = self.library.opened(places)
        command = shlex.join(["weir", "show", str(found.path)])
        return _Page(pages.watch_page(self.prefix, places[0], command))

    async def note_check(self, request: Request) -> Response:
        wanted = await run_in_threadpool(noting, await _body(request), self.library)
        return _Json({"command": wanted.command})

    async def note(self, request: Request) -> Response:
        wanted = await run_in_threadpool(noting, await _body(request), self.library)
        await run_in_threadpool(wanted.keep)
        kept = [{"note": one.manifest.note, "tags": one.manifest.tags} for one in wanted.records]
        return _Json({"kept": kept})

    def form(self, request: Request) -> Response:
        del request
        return _Page(pages.form_page(self.prefix))

    async def check(self, request: Request) -> Response:
        try:
            command, total = await run_in_threadpool(command_of, await _body(request), None)
        except WeirError as error:
            # What is wrong with a form that is being filled in is an answer, no failure.
            fields = error.fields if isinstance(error, FormError) else []
            return _Json({"error": str(error), "fields": fields})
        return _Json({"command": command, "total": total})

    async def start(self, request: Request) -> Response:
        form = await _body(request)
        run = await run_in_threadpool(
            self.runs.start, str(form.get("test", "")), lambda out: command_of(form, out)
        )
        return _Json({"number": run.number})

    def scenario_files(self, request: Request) -> Response:
        del request
        return _Page(pages.scenarios_page(self.prefix, self.folder, self.scenarios.files()))

    def scenario(self, request: Request) -> Response:
        """The editor of a scenario file, or of a new one."""
        place = request.query_params.get("file")
        if place is None:
            return _Page(pages.scenario_page(self.prefix, "", FIRST, ""))
        text = self.scenarios.text(place)
        return _Page(pages.scenario_page(self.prefix, place, text, mark_of(text)))

    async def scenario_check(self, request: Request) -> Response:
        try:
            command, total = await run_in_threadpool(self.scenarios.command, await _body(request), None)
        except WeirError as error:
            # What is wrong with a file that is being edited is an answer, no failure.
            return _Json({"error": str(error)})
        return _Json({"command": command, "total": total})

    async def scenario_keep(self, request: Request) -> Response:
        return _Json({"mark": await run_in_threadpool(self.scenarios.keep, await _body(request))})

    async def scenario_start(self, request: Request) -> Response:
        """Keeps what is written, and runs it; of what is kept and cannot be run both are told."""
        form = await _body(request)

        def started() -> Response:
            self.scenarios.command(form, None)
            mark = self.scenarios.keep(form)
            name = PurePosixPath(str(form["file"])).stem
            try:
                run = self.runs.start(name, lambda out: self.scenarios.command(form, out))
            except UsageError as error:
                return _Json({"mark": mark, "error": f"It is kept, but not run: {error}"}, status_code=400)
            return _Json({"mark": mark, "number": run.number})

        return await run_in_threadpool(started)

    def all_runs(self, request: Request) -> Response:
        del request
        return _Page(pages.runs_page(self.prefix, self.runs.all()))

    def run(self, request: Request) -> Response:
        return _Page(pages.run_page(self.prefix, self.runs.numbered(request.path_params["number"])))

    def state(self, request: Request) -> Response:
        run = self.runs.numbered(request.path_params["number"])
        code = run.code
        made = [
            {"place": one.place, "complete": one.complete} for one in run.library.entries() if not one.error
        ]
        return _Json(
            {
                "code": code,
                "ended": None if code is None else pages.run_state(run),
                "waits": pages.run_state(run) if run.waits_for else None,
                "lines": list(run.lines),
                "records": [{**one, "place": f"{run.out}/{one['place']}"} for one in made],
            }
        )

    async def stop(self, request: Request) -> Response:
        self.runs.stop(request.path_params["number"])
        return _Json({})

    def stores(self, request: Request) -> Response:
        del request
        return _Page(pages.sweeps_page(self.prefix, self.folder, self.sweeps.places()))

    def sweep(self, request: Request) -> Response:
        seen = self.sweeps.seen(request.query_params)
        chart: Told | str
        try:
            # Kept for the request that brings it into the page.
            self.sweeps.chart(request.query_params)
            chart = self.sweeps.told(request.query_params)
        except UsageError as error:
            chart = str(error)
        return _Page(pages.sweep_page(self.prefix, seen, request.url.query, chart))

    def chart(self, request: Request) -> Response:
        """The chart of a store, as a picture."""
        return Response(self.sweeps.chart(request.query_params), media_type="image/svg+xml")

    def shapers(self, request: Request) -> Response:
        del request
        return _Page(pages.shapers_page(self.prefix))

    def shaped(self, request: Request) -> Response:
        del request
        return _Json({"devices": watching.shaped()})

    def shaper(self, request: Request) -> Response:
        """What a shaper says, and the commands that tell it and end it."""
        device = request.query_params.get("device", "")
        commands = [shlex.join(["weir", "shape", word, device]) for word in ("status", "stop")]
        try:
            return _Json({"commands": commands, "seen": watching.seen(device)})
        except WeirError as error:
            # That a shaper has ended, or does not answer, is what a page that watches it is to tell.
            return _Json({"commands": commands, "error": str(error)})

    def file(self, request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        return Response(asset(name), media_type=FILES[name])


class _Page(HTMLResponse):
    """A page; half of a character, which a manifest may have, is a question mark."""

    def render(self, content: str) -> bytes:
        return content.encode("utf-8", "replace")


class _Json(JSONResponse):
    """Values as JSON in ASCII, which has half of a character too."""

    def render(self, content: object) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def _pings(record: Record) -> int:
    """How many pings a record has, as far as its manifest tells."""
    written = (record.manifest.tables or {}).get("latency")
    return written.rows if written else 0


def _left_out(record: Record, parts: str | None) -> list[str]:
    """The part files that are not sent: all but the parts `FIRST-LAST` of the pings, if these are asked for.

    Raises:
        UsageError: if that is no range of parts.
    """
    if parts is None:
        return []
    pings = record.parts("latency")
    first, _, last = parts.partition("-")
    low, high = whole(first, MAX_DIGITS), whole(last, MAX_DIGITS)
    if low is None or high is None or not low <= high < len(pings):
        raise UsageError(f"parts `{parts[:40]}`: write FIRST-LAST, from 0 to {len(pings) - 1}")
    sent = {*pings[low : high + 1]}
    return [part for table in TABLES for part in record.parts(table) if part not in sent]


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object that a request brings.

    Raises:
        UsageError: if it is none, or too long.
    """
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MAX_BODY_BYTES:
            raise UsageError(f"the form has more than {MAX_BODY_BYTES} bytes")
    try:
        found = json.loads(content)
        # Half of a character, which JSON may have and no file or command.
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise UsageError("the form has half of a character, which is no text") from error
    except (ValueError, RecursionError) as error:
        raise UsageError("the form is no JSON") from error
    if not isinstance(found, dict):
        raise UsageError("the form is no JSON object")
    return found


ZIP = "application/zip"

SOON_ROWS = 20_000_000
"""Pings whose figures are there within about three seconds; while more are read, a page says so."""

MAX_DIGITS = 9
"""Of the number of a part file."""

FILES = {"viewer.js": "text/javascript", "viewer.css": "text/css", "ui.js": "text/javascript"}
"""Files that pages load, with their media types."""

MAX_BODY_BYTES = 65_536
"""A form has a few hundred bytes."""
