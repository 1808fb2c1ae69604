"""Foreign speed tests, and beside them what truly happened."""

from __future__ import annotations

import json
import ssl
import threading
import time
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from weirlab import _native
from weirlab._native import SpeedTest
from weirlab.errors import NetError, UsageError
from weirlab.net.plan import Limits, TestPlan, plan_test
from weirlab.record import new_manifest, open_record
from weirlab.record.store import MANIFEST
from weirlab.scores import truth_of
from weirlab.worlds.net import CLOCK, OFFLOADS, NetWorld
from weirlab.writing import replaced

__all__ = ["IDLE_S", "METHODS", "host_of", "kept_run", "run_alone", "run_beside", "run_method", "url_of"]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from weirlab._native import KnownBy
    from weirlab.record import MethodResult
    from weirlab.scenario import ResolvedRun
    from weirlab.scores import Truth

KNOWN = {known["name"]: known for known in _native.methods()}
"""Entries of the registry of speed tests, by name."""

METHODS = tuple(KNOWN)
"""Methods of `weir test --method`."""


def url_of(method: str, words: str, *, tls: bool = False) -> str:
    """`words` as the URL of a server: what `weir serve` listens on where nothing is said.

    `tls`: that is to be spoken, where nothing is said.
    """
    if "://" in words:
        return words
    # An IPv6 address alone has colons and no port.
    host = f"[{words}]" if words.count(":") > 1 and "]" not in words else words
    port = "" if ":" in host.rpartition("]")[2] else ":8080"
    return f"{'https' if tls or KNOWN[method]['needs_tls'] else 'http'}://{host}{port}"


@dataclass(frozen=True)
class Less:
    """A server against which Weir's own test cannot run.

    Attributes:
        why: in one sentence.
        url: where the method `http` measures instead.
    """

    why: str
    url: str


def offered(host: str, secret: str | None) -> Less | Limits:
    """The limits of Weir's own test against `host`, or why it cannot run there.

    Raises:
        NetError: if nothing answers there, or a session is refused.
        UsageError: if `host` is no server's name.
    """
    url = _server(host)
    if url.scheme == "https":
        return Less(f"server `{host}`: Weir's own protocol is spoken without TLS", host)
    if url.path not in {"", "/"}:
        return Less(
            f"`{host}` is a file: Weir's own protocol has none", url_of("http", host, tls=secret is not None)
        )
    try:
        why, limits = _native.offer(_native.find_server(host), secret)
    except _native.NativeError as error:
        # A URL without a port means port 80, where servers of others listen.
        if "://" in host and url.port is None:
            return Less(str(error), host)
        raise NetError(str(error)) from error
    if limits is not None:
        return Limits(*limits)
    return Less(str(why), url_of("http", host.removeprefix("http://").rstrip("/"), tls=secret is not None))


def _server(written: str) -> SplitResult:
    """The parts of a server's name or URL."""
    # An IPv6 address alone has colons and no port.
    bare = "://" not in written and written.count(":") > 1 and "]" not in written
    url = None
    try:
        url = urlsplit(written if "://" in written else f"//[{written}]" if bare else f"//{written}")
        known = url.scheme in {"", "http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        known = False
    if url is None or not known:
        raise UsageError(
            f"server `{written}`: write HOST, HOST:PORT or [IPV6]:PORT with a port from 1 to 65535, or a URL "
            "that begins with http:// or https://"
        )
    return url


def hint(url: str, result: MethodResult, *, verify: bool) -> str:
    """Words that name a speed test for a server that was measured over plain HTTP, or could not be.

    The words go behind a sentence; empty if nothing is known better than what was measured.
    """
    if has_figures(result):
        if "server_kind" not in result:
            return ""
        kind = result["server_kind"]
        known = CLIENTS_OF.get(kind or "")
        return f"; it speaks {kind}'s test too: --method {known}" if known else ""
    for name in METHODS:
        sign = KNOWN[name]["known_by"]
        if sign is not None and _gives(sign, url, verify=verify):
            return f"; the server speaks {name}: write --method {name}"
    return (
        f"; if it speaks one of the other tests, name it: --method {', '.join(METHODS[:-1])} or {METHODS[-1]}"
    )


def _gives(sign: KnownBy, url: str, *, verify: bool) -> bool:
    """Whether a server gives the answer by which those of a speed test are known."""
    parts = urlsplit(url)
    context = None if verify else ssl._create_unverified_context()  # noqa: S323, SLF001 - as the user asked
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    connection = (
        HTTPSConnection(host, port, timeout=ANSWER_S, context=context)
        if secure
        else HTTPConnection(host, port, timeout=ANSWER_S)
    )
    try:
        connection.request("GET", sign["path"])
        answer = connection.getresponse()
        if answer.status not in sign["statuses"]:
            return False
        if sign["key"] is None:
            return True
        said = json.loads(answer.read(MAX_CONFIG_BYTES))
        return isinstance(said, dict) and sign["key"] in said
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()


def has_figures(result: MethodResult) -> bool:
    """Whether a test that failed measured something before it did."""
    shown: Mapping[str, object] = result
    figures = ("latency_ms", "download_mbps", "upload_mbps", "download")
    return any(shown.get(name) is not None for name in figures)


def host_of(url: str) -> str:
    """The host and port of a URL."""
    return urlsplit(url).netloc


def run_method(
    method: str, url: str, secret: str | None, *, verify: bool, progress: Callable[[int], bool] | None
) -> MethodResult:
    """Runs it as its official client would, and returns what that would show.

    `secret` goes with every request.

    Raises:
        NetError: if it cannot be run to its end.
        UsageError: if it cannot be run so.
    """
    try:
        result: MethodResult = json.loads(
            _native.run_method(method, url, secret=secret, verify=verify, progress=progress)
        )
    except _native.InputError as error:
        raise UsageError(str(error)) from error
    except _native.NativeError as error:
        raise NetError(str(error)) from error
    return result


def kept_run(host: str) -> ResolvedRun:
    """Scenario in the record of a foreign test of `host`; UDP pings go beside it if at all."""
    return plan_test(host, ALONE).run


def run_beside(
    world: NetWorld, plan: ResolvedRun, folder: Path, work: Callable[[], MethodResult]
) -> tuple[MethodResult, Truth | None]:
    """Does `work` while UDP pings go to the server of `world`; the record of `plan` goes into `folder`.

    The first `IDLE_S` seconds the pings go alone. The record has the test's result too, if it has one, and
    ends when the test did.
    """
    scenario = plan.scenario
    phases = scenario["phases"][:2]
    phases[1]["name"] = "load"
    scenario |= {"phases": phases, "duration_ns": phases[1]["end_ns"]}
    scenario["probes"][0]["stop_ns"] = phases[1]["end_ns"]
    idle_over, over = threading.Event(), threading.Event()
    failure: list[NetError] = []
    ran: list[SpeedTest] = []
    zero_ns = 0

    def ping() -> None:
        def progress(reached_ns: int) -> bool:
            nonlocal zero_ns
            zero_ns = time.monotonic_ns() - reached_ns
            if reached_ns >= phases[0]["end_ns"]:
                idle_over.set()
            return not over.is_set()

        try:
            world.measure(plan, folder, progress, ramp=None, speed_test=lambda: ran[0] if ran else None)
        except NetError as error:
            failure.append(error)
        finally:
            idle_over.set()

    thread = threading.Thread(target=ping, name="truth")
    thread.start()
    try:
        idle_over.wait()
        if failure:
            raise failure[0]
        began_ns = time.monotonic_ns() - zero_ns
        result = work()
        ended_ns = time.monotonic_ns() - zero_ns
        if has_figures(result):
            ran.append(_row(result, began_ns, ended_ns))
    finally:
        over.set()
        thread.join()
    if failure:
        raise failure[0]
    _end(folder, ended_ns, complete=not result["failures"])
    return result, truth_of(open_record(folder))


def _end(folder: Path, ended_ns: int, *, complete: bool) -> None:
    """Lets the record of pings beside a speed test end with it: how long that takes nobody knows before."""
    file = folder / MANIFEST
    manifest = json.loads(file.read_bytes())
    scenario, reached_ns = manifest["scenario"], manifest["reached_ns"]
    scenario["phases"][-1]["end_ns"] = min(ended_ns, reached_ns)
    scenario["duration_ns"] = scenario["probes"][0]["stop_ns"] = reached_ns
    text = json.dumps(manifest | {"complete": complete}, indent=2)
    replaced(file, lambda part: part.write_text(text, encoding="utf-8"))


def run_alone(run: ResolvedRun, folder: Path, work: Callable[[], MethodResult]) -> MethodResult:
    """Does `work`, and keeps its result as the record of `run` in `folder` if there is something to keep."""
    began_ns = time.monotonic_ns()
    result = work()
    length_ns = time.monotonic_ns() - began_ns
    if has_figures(result):
        phase = {"name": "load", "start_ns": 0, "end_ns": length_ns}
        run.scenario.update({"phases": [phase], "duration_ns": length_ns, "probes": []})
        manifest = new_manifest(run, world=NetWorld.name, clock=CLOCK, offloads=OFFLOADS)
        manifest |= {"configuration": run.link.title, "title": f"Speed test {result['method']}"}
        _native.record_method(json.dumps(manifest), folder, _row(result, 0, length_ns))
    return result


def _row(result: MethodResult, began_ns: int, ended_ns: int) -> SpeedTest:
    """A speed test as the record keeps it."""
    kind = result["method"]
    return SpeedTest(name=kind, kind=kind, began_ns=began_ns, ended_ns=ended_ns, result=json.dumps(result))


IDLE_S = 3
MAX_METHOD_S = 200
"""Longer than any method may take."""
ALONE = TestPlan(idle=f"{IDLE_S}s", load=f"{MAX_METHOD_S}s", ping="10ms", max_flows=1, cc="default", seed=1)
"""Pings beside a foreign test."""
CLIENTS_OF = {known["server_kind"]: name for name, known in KNOWN.items() if known["server_kind"]}
"""The method whose official client a kind of server is made for."""
ANSWER_S = 5
MAX_CONFIG_BYTES = 65_536
