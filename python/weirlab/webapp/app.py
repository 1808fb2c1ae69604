"""The application: which address does what."""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from weirlab.errors import RecordError, UsageError, WeirError
from weirlab.record import pack
from weirlab.shape import watching
from weirlab.viewer import Source, asset, first_every, first_page, page_data, report_page
from weirlab.webapp import pages
from weirlab.webapp.guard import Guard
from weirlab.webapp.library import Library
from weirlab.webapp.noting import noting
from weirlab.webapp.runs import Runs, command_of

__all__ = ["Application", "application"]

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request


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
    served = _Served(folder, Library(folder), runs, f"/{token}")
    return Application(Guard(served.app(), token, port), runs, f"/{token}/")


@dataclass(frozen=True)
class _Served:
    """The answers. Those that read records run in threads of their own."""

    folder: Path
    library: Library
    runs: Runs
    prefix: str

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
            Route("/runs", self.all_runs),
            Route("/start", self.start, methods=["POST"]),
            Route("/runs/{number:int}", self.run),
            Route("/runs/{number:int}/state", self.state),
            Route("/runs/{number:int}/stop", self.stop, methods=["POST"]),
            Route("/shapers", self.shapers),
            Route("/shapers/state", self.shaped),
            Route("/shaper/state", self.shaper),
            *(Route(f"/{name}", self.file) for name in FILES),
        ]
        return Starlette(routes=routes, exception_handlers={WeirError: self.failed})

    def failed(self, request: Request, error: Exception) -> Response:
        """An error that a person can mend."""
        if request.method == "POST" or request.url.path.endswith(("/state", "/live")):
            return JSONResponse({"error": str(error)}, status_code=400)
        return HTMLResponse(pages.error_page(self.prefix, str(error)), status_code=400)

    def records(self, request: Request) -> Response:
        del request
        return HTMLResponse(pages.records_page(self.prefix, self.folder, self.library.entries()))

    def view(self, request: Request) -> Response:
        places = [*dict.fromkeys(request.query_params.getlist("record"))]
        chosen = self.library.opened(places)
        command = shlex.join(["weir", "report", *(str(one.path) for one in chosen)])
        urls = [f"{self.prefix}/record?record={quote(place)}" for place in places]
        home = pages.header(self.prefix, command)
        source = Source(urls, f"{self.prefix}/viewer.js", f"{self.prefix}/viewer.css", home)
        if len(chosen) == 1 and "whole" not in request.query_params and (every := first_every(chosen[0])) > 1:
            part = replace(source, records=[f"{urls[0]}&first"])
            whole = f"{self.prefix}/view?record={quote(places[0])}&whole"
            return HTMLResponse(first_page(chosen[0], every, part, whole))
        for one in chosen:
            one.check()
        return HTMLResponse(report_page(chosen, source=source))

    def record(self, request: Request) -> Response:
        # Its tables are read by the browser, and were by `view`: a third time would only take longer.
        (found,) = self.library.opened(request.query_params.getlist("record")[:1])
        content = io.BytesIO()
        # It stays on this machine: to make it smaller would take longer than to send it.
        every = first_every(found) if "first" in request.query_params else 1
        pack(found, content, compressed=False, every=every)
        return Response(content.getvalue(), media_type="application/zip")

    def live(self, request: Request) -> Response:
        """What the viewer draws of a record that is perhaps being made."""
        places = request.query_params.getlist("record")[:1]
        chosen = self.library.records(places)
        urls = [f"{self.prefix}/record?record={quote(place)}" for place in places]
        try:
            return JSONResponse(page_data(chosen, places, urls))
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise RecordError(f"`{places[0]}`: its manifest.json is damaged") from error

    def watch(self, request: Request) -> Response:
        """A record that is watched while whoever makes it writes it."""
        places = request.query_params.getlist("record")[:1]
        (found,) = self.library.opened(places)
        command = shlex.join(["weir", "show", str(found.path)])
        return HTMLResponse(pages.watch_page(self.prefix, places[0], command))

    async def note_check(self, request: Request) -> Response:
        wanted = await run_in_threadpool(noting, await _body(request), self.library)
        return JSONResponse({"command": wanted.command})

    async def note(self, request: Request) -> Response:
        wanted = await run_in_threadpool(noting, await _body(request), self.library)
        await run_in_threadpool(wanted.keep)
        kept = [{"note": one.manifest.note, "tags": one.manifest.tags} for one in wanted.records]
        return JSONResponse({"kept": kept})

    def form(self, request: Request) -> Response:
        del request
        return HTMLResponse(pages.form_page(self.prefix))

    async def check(self, request: Request) -> Response:
        try:
            command, total = await run_in_threadpool(command_of, await _body(request), None)
        except WeirError as error:
            # What is wrong with a form that is being filled in is an answer, no failure.
            return JSONResponse({"error": str(error)})
        return JSONResponse({"command": command, "total": total})

    async def start(self, request: Request) -> Response:
        run = await run_in_threadpool(self.runs.start, await _body(request))
        return JSONResponse({"number": run.number})

    def all_runs(self, request: Request) -> Response:
        del request
        return HTMLResponse(pages.runs_page(self.prefix, self.runs.all()))

    def run(self, request: Request) -> Response:
        return HTMLResponse(pages.run_page(self.prefix, self.runs.numbered(request.path_params["number"])))

    def state(self, request: Request) -> Response:
        run = self.runs.numbered(request.path_params["number"])
        code = run.code
        made = [
            {"place": one.place, "complete": one.complete} for one in run.library.entries() if not one.error
        ]
        return JSONResponse(
            {
                "code": code,
                "lines": list(run.lines),
                "records": [{**one, "place": f"{run.out}/{one['place']}"} for one in made],
            }
        )

    async def stop(self, request: Request) -> Response:
        self.runs.stop(request.path_params["number"])
        return JSONResponse({})

    def shapers(self, request: Request) -> Response:
        del request
        return HTMLResponse(pages.shapers_page(self.prefix))

    def shaped(self, request: Request) -> Response:
        del request
        return JSONResponse({"devices": watching.shaped()})

    def shaper(self, request: Request) -> Response:
        """What a shaper says, and the commands that tell it and end it."""
        device = request.query_params.get("device", "")
        commands = [shlex.join(["weir", "shape", word, device]) for word in ("status", "stop")]
        try:
            return JSONResponse({"commands": commands, "seen": watching.seen(device)})
        except WeirError as error:
            # That a shaper has ended, or does not answer, is what a page that watches it is to tell.
            return JSONResponse({"commands": commands, "error": str(error)})

    def file(self, request: Request) -> Response:
        name = request.url.path.rpartition("/")[2]
        return Response(asset(name), media_type=FILES[name])


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
    except (ValueError, RecursionError) as error:
        raise UsageError("the form is no JSON") from error
    if not isinstance(found, dict):
        raise UsageError("the form is no JSON object")
    return found


FILES = {"viewer.js": "text/javascript", "viewer.css": "text/css", "ui.js": "text/javascript"}
"""Files that pages load, with their media types."""

MAX_BODY_BYTES = 65_536
"""A form has a few hundred bytes."""
