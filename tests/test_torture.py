"""The torture's own attack on servers: a server withstands it, and what does not is found out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from torture.call import Call, prepare
from torture.hostile import BrokenError, assault

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.realtime

FAKE = """
import http.server, json, os, signal, socket, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"status":"%s"}' % HEALTH)
    def log_message(self, *_):
        pass
HEALTH = b"ok"
def on_end(*_):
    os._exit(0)
CHANGE
signal.signal(signal.SIGTERM, on_end)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.handle_error = lambda *_: None
print(json.dumps({"address": "127.0.0.1:%d" % server.server_port, "irtt": "127.0.0.1:9"}), file=sys.stderr)
server.serve_forever()
"""


def test_a_setting_writes_files_of_any_length(tmp_path: Path) -> None:
    lines = "\n".join(["x" * 99] * 3000)
    prepare(Call(words=(), setting=("mkdir deep", f"cat >deep/file <<'END'\n{lines}\nEND")), tmp_path)
    assert (tmp_path / "deep" / "file").read_text() == f"{lines}\n"


def test_a_server_withstands_hostile_bytes() -> None:
    assert assault([sys.executable, "-m", "weirlab", "serve"], seed=1, seconds=2) >= 1


@pytest.mark.parametrize(
    ("change", "said", "seconds"),
    [
        ("pass", None, 0.5),
        ("def on_end(*_): os._exit(7)", "it ended with 7 after SIGTERM", 0.5),
        ("print('thread panicked at x.rs:1', file=sys.stderr)", "a panic: thread panicked at", 0.5),
        # Until it gets a message that is a whole POST.
        ("Handler.do_POST = lambda *_: os._exit(5)", "it ended with 5 at message", 60),
    ],
)
def test_what_does_not_withstand_is_told(change: str, said: str | None, seconds: float) -> None:
    # The first line is the address: what is told before it is not of the log.
    text = FAKE.replace("CHANGE", "pass") if "panicked" in change else FAKE.replace("CHANGE", change)
    if "panicked" in change:
        text = text.replace("server.serve_forever()", f"{change}\nserver.serve_forever()")
    if said is None:
        assert assault([sys.executable, "-c", text], seed=1, seconds=seconds) >= 1
        return
    with pytest.raises(BrokenError, match=said):
        assault([sys.executable, "-c", text], seed=1, seconds=seconds)
