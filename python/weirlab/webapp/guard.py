"""Who may use the local web application: whoever has its link, on this machine, and no other site."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

__all__ = ["Guard"]

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True)
class Guard:
    """Lets requests through to `app` that come from its own pages, or by its link.

    Attributes:
        app: what is guarded.
        token: the first part of every path, which nobody can guess.
        port: the port that it listens on.
    """

    app: ASGIApp
    token: str
    port: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or refuses it."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        if refusal is not None:
            await PlainTextResponse(f"weir: {refusal}\n", status_code=403)(scope, receive, with_headers)
            return
        inner = dict(scope)
        inner["path"] = scope["path"].removeprefix(f"/{self.token}") or "/"
        inner["raw_path"] = inner["path"].encode()
        await self.app(inner, receive, with_headers)

    def _refusal(self, scope: Scope) -> str | None:
        """Why a request is refused; None if it is not."""
        headers = Headers(scope=scope)
        hosts = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        host = headers.get("host", "")
        if headers.getlist("host") != [host] or host not in hosts:
            # Another name that leads to this address: a site that rebinds its name (DNS rebinding).
            return "this application answers to 127.0.0.1 and localhost only"
        if headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
            return "another site asked for this page: open the link that `weir ui` printed"
        origin = headers.get("origin")
        if (scope["method"] not in {"GET", "HEAD"} or origin is not None) and origin != f"http://{host}":
            return "another site sent this request"
        first = scope["path"].split("/")[1] if scope["path"].count("/") > 1 else ""
        if not hmac.compare_digest(first.encode("utf-8", "replace"), self.token.encode()):
            return "the address has not the token of this application: open the link that `weir ui` printed"
        return None


HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    # The token stands in the address, which must not travel.
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every answer: no other site may load, frame or read it, and nothing of a record can run."""
