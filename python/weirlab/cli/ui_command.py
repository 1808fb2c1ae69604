"""`weir ui`: a local web application for records and runs."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weirlab.cli.options import Whole, argument, option
from weirlab.errors import UsageError
from weirlab.ui import console, note

if TYPE_CHECKING:
    import uvicorn


@click.command("ui")
@argument(
    "folder", default=".", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="[DIR]"
)
@option("--port", type=Whole(0, 65535), default=0, help="Port of 127.0.0.1.  [default: a free one]")
def command(folder: Path, *, port: int) -> None:
    """Show the records below DIR in a browser, compare them, and start runs from a form.

    \b
    weir ui out

    Open the link that is printed; Ctrl-C ends it. It is reached from this machine only, by whoever has the
    link. Every page shows the command that does the same. Records of new runs go below DIR.
    """  # noqa: D301 - \b keeps click from folding the example
    import uvicorn  # noqa: PLC0415 - only this command serves

    from weirlab.webapp import application  # noqa: PLC0415

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise UsageError(f"--port {port}: 127.0.0.1:{port} cannot be used: {error.strerror}") from error
        # Who reads the link may open it at once.
        listener.listen()
        chosen = listener.getsockname()[1]
        served = application(folder.resolve(), secrets.token_hex(16), chosen)
        config = uvicorn.Config(
            served.guard,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=MAX_END_S,
        )
        console.print(f"http://127.0.0.1:{chosen}{served.path}", soft_wrap=True)
        note("Ctrl-C ends it.")
        try:
            with suppress(KeyboardInterrupt):
                server_of(config).run(sockets=[listener])
        finally:
            served.runs.end()


def server_of(config: uvicorn.Config) -> uvicorn.Server:
    """A server that lets nobody keep it: whoever has not read his answer when its time is over loses it."""
    from uvicorn import Server  # noqa: PLC0415 - only this command serves

    class Ending(Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await super().shutdown(sockets)
            for connection in list(self.server_state.connections):
                if connection.transport is not None:
                    connection.transport.abort()

    return Ending(config)


MAX_END_S = 3
"""Seconds in which answers that are under way may end: who reads none keeps nobody from ending this."""
