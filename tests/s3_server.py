"""A server that speaks S3's protocol on the loopback, and a proxy that fails as object stores do."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import urllib.request
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BUCKET = "bucket"

VARIABLES = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


class Faults:
    """What the proxy does to requests.

    Attributes:
        slow: of how many requests more the answer is `503 SlowDown`.
        cut: of how many writes more the connection ends in the middle.
        hides: whether a list leaves out an object of that name.
        frozen: to how many lists more the answer is what it was to the same request before.
        asked: methods of the requests that came.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        self.slow = self.cut = self.frozen = 0
        self.hides: Callable[[str], bool] = lambda _: False
        self.asked: list[str] = []
        self.lists: dict[str, bytes] = {}

    def takes(self, kind: str) -> bool:
        """Whether one more request fails that way."""
        with self.lock:
            left = getattr(self, kind)
            setattr(self, kind, max(0, left - 1))
            return bool(left)


@contextmanager
def s3_server() -> Iterator[tuple[str, Faults]]:
    """The address of the proxy, such as `http://127.0.0.1:4000`, and what it does."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert server.stdout is not None
    assert server.stdin is not None
    port = int(server.stdout.readline())
    faults = Faults()
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), _handler(port, faults))
    proxy.daemon_threads = True
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{proxy.server_port}"
        bucket = urllib.request.Request(f"{address}/{BUCKET}", method="PUT")  # noqa: S310 - the loopback
        urllib.request.urlopen(bucket, timeout=30).close()  # noqa: S310 - the loopback
        yield address, faults
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
        server.stdin.close()
        server.wait(30)
        server.stdout.close()


def _handler(port: int, faults: Faults) -> type[BaseHTTPRequestHandler]:  # noqa: C901 - its methods count
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            faults.asked.append(self.command)
            length = int(self.headers.get("Content-Length") or 0)
            if self.command == "PUT" and faults.takes("cut"):
                self.rfile.read(length // 2)
                self.close_connection = True
                return
            body = self.rfile.read(length)
            if faults.takes("slow"):
                self.say(503, {"Content-Type": "application/xml"}, SLOW_DOWN)
                return
            with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as upstream:
                upstream.request(self.command, self.path, body, dict(self.headers))
                said = upstream.getresponse()
                content = said.read()
            headers = {name: value for name, value in said.getheaders() if name.lower() not in HOP_BY_HOP}
            if self.command == "HEAD":
                headers["Content-Length"] = said.getheader("Content-Length") or "0"
            if "list-type=2" in self.path:
                content = self.listed(content)
            self.say(said.status, headers, content)

        def listed(self, content: bytes) -> bytes:
            """What a list says: what it did before if it is frozen, and without what is hidden."""
            if self.path in faults.lists and faults.takes("frozen"):
                return faults.lists[self.path]

            def shown(entry: re.Match[str]) -> str:
                return "" if faults.hides(unquote(entry[1])) else entry[0]

            found = re.sub(
                r"<Contents>\s*<Key>(.*?)</Key>.*?</Contents>", shown, content.decode(), flags=re.DOTALL
            )
            faults.lists[self.path] = found.encode()
            return found.encode()

        def say(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response_only(status)
            for name, value in ({"Content-Length": str(len(content))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815 - http.server's names

    return Handler


SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"

HOP_BY_HOP = {"connection", "content-length", "transfer-encoding", "keep-alive"}

SERVER = """\
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""
"""The server: it ends when its input does, so with the test."""
