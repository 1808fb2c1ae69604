"""A running `weir ui`, and how its tests speak to it."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 120
"""How long anything here may take: far longer than it does on a busy machine."""

QUICK = {
    "test": "rrul",
    "link": "cable-20-8",
    "queue": ["fq_codel"],
    "idle": "1s",
    "load": "1s",
    "cooldown": "0s",
}
"""A form whose run is over at once."""


@dataclass
class Served:
    """A running `weir ui`."""

    process: subprocess.Popen[str]
    folder: Path
    link: str

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.link.split(":")[2].split("/")[0])

    @property
    def token(self) -> str:
        """The secret part of its link."""
        return self.link.split("/")[3]

    def ask(
        self, path: str, method: str = "GET", body: object = None, token: str | None = None, **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        """Status, content and headers of an answer; `headers` replace those of its own pages."""
        own = f"127.0.0.1:{self.port}"
        sent = {"Host": own} | ({"Origin": f"http://{own}"} if method == "POST" else {})
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            content = body if isinstance(body, str) else json.dumps(body)
            connection.putrequest(method, f"/{self.token if token is None else token}{path}", skip_host=True)
            for name, value in sent.items():
                if value:
                    connection.putheader(name, value)
            if method == "POST":
                connection.putheader("Content-Length", str(len(content)))
            connection.endheaders(content.encode() if method == "POST" else None)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace"), dict(answer.getheaders())
        finally:
            connection.close()

    def bytes(self, path: str) -> bytes:
        """The content of an answer, as it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", f"/{self.token}{path}")
            return connection.getresponse().read()
        finally:
            connection.close()

    def state_when(self, number: int, wanted: str) -> dict[str, Any]:
        """The state of a run as soon as it has a record, or has ended."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            state: dict[str, Any] = json.loads(self.ask(f"/runs/{number}/state")[1])
            if state["code"] is not None or (wanted == "record" and state["records"]):
                return state
            time.sleep(0.2)
        raise TimeoutError(f"run {number} has not come to `{wanted}` in {PATIENCE_S} s")


def begun(folder: Path, device: str | None = None) -> Served:
    """Starts `weir ui`; `device` is an interface that it takes this machine to have."""
    program = ["-m", "weirlab"] if device is None else ["-c", WITH_DEVICE, device]
    process = subprocess.Popen(
        [sys.executable, *program, "ui", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    return Served(process, folder, process.stdout.readline().strip())


def ended(one: Served) -> int:
    one.process.send_signal(signal.SIGINT)
    try:
        return one.process.wait(timeout=PATIENCE_S)
    finally:
        one.process.kill()
        if one.process.stdout is not None:
            one.process.stdout.close()


WITH_DEVICE = """
import socket, sys
device = sys.argv.pop(1)
there = socket.if_nameindex
socket.if_nameindex = lambda: [*there(), (0, device)]
from weirlab.__main__ import main
main()
"""
"""`weir` on a machine with one more interface, of which nobody but a test knows."""
