"""`weir ui`: runs are started, wait for each other, are watched, ended, and told."""

from __future__ import annotations

import errno
import json
import re
import shlex
import shutil
import socket
import subprocess
import time
from shutil import ignore_patterns
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from browsing import WAIT_MS, opened
from local_ui import PATIENCE_S, QUICK, begun, ended
from weirlab.errors import UsageError
from weirlab.record import open_record
from weirlab.viewer import as_command
from weirlab.webapp import runs as webapp_runs
from weirlab.webapp.pages import records_page, run_state
from weirlab.webapp.runs import Run, Runs, command_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser


pytestmark = pytest.mark.realtime


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"test": "/etc/passwd.toml"}, "test `/etc/passwd.toml`: choose one of"),
        ({"test": ["rrul"]}, "choose one of"),
        ({"link": "own.toml"}, "link `own.toml`: choose one of"),
        ({"world": "net"}, "world `net`: choose one of sim, lab"),
        ({"queue": ["nonsense"]}, "nonsense"),
        ({"queue": ["--out=/tmp/x"]}, "--out=/tmp/x"),
        ({"load": "soon"}, "soon"),
        ({"repeat": "1e9"}, "Repeat: `1e9`: write a whole number"),
        ({"repeat": "100000"}, "100000 runs are too many to start from here: start 1000 or fewer"),
        ({"repeat": "1000000"}, "1000000 runs are too many to start from here: start 1000 or fewer"),
        ({"repeat": "501", "queue": ["default", "pfifo"]}, "1002 runs are too many to start from here"),
        ({"out": "/elsewhere"}, "no field `out`"),
    ],
)
def test_a_form_that_cannot_be_run_is_refused_in_a_sentence(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        command_of(QUICK | change, None)


def test_the_world_kernel_is_offered_where_there_is_a_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "linux"
    monkeypatch.setenv("WEIR_KERNEL", str(kernel))
    asked = QUICK | {"world": "kernel"}
    with pytest.raises(UsageError, match="world `kernel`: choose one of sim, lab"):
        command_of(asked, None)
    kernel.write_text(
        "#!/bin/sh\necho '# Linux/um 6.12.0 Kernel Configuration'\necho CONFIG_UML_TIME_TRAVEL_SUPPORT=y\n"
    )
    kernel.chmod(0o755)
    command, count = command_of(asked, None)
    assert "--world kernel" in command
    assert count == 1


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    """Runs that last until they are interrupted."""

    def begun(command: str) -> subprocess.Popen[str]:
        del command
        return subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr(webapp_runs, "_begun", begun)
    made = Runs(tmp_path)
    yield made
    made.end()


def started(runs: Runs, *words: str) -> Run:
    return runs.start("rrul", lambda out: (shlex.join(["weir", "run", "rrul", *words, "--out", out]), 1))


def has_begun(run: Run) -> bool:
    return run.process is not None


LAB = ("--world", "lab")


HAS_IT = "a run in real time has this machine for itself"


@pytest.mark.parametrize(("first", "second"), [(LAB, LAB), ((), LAB), (LAB, ())])
def test_a_run_in_real_time_has_the_machine_for_itself(
    runs: Runs, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    one, other = started(runs, *first), started(runs, *second)
    assert (run_state(one), run_state(other)) == ("under way", f"waits until run 1 has ended: {HAS_IT}")
    assert not has_begun(other)
    runs.stop(1)
    assert one.ended.wait(PATIENCE_S)
    assert run_state(one) == "stopped; what was measured is kept"
    end = time.monotonic() + PATIENCE_S
    while not has_begun(other) and time.monotonic() < end:
        time.sleep(0.01)
    assert run_state(other) == "under way"
    third = started(runs, *LAB)
    runs.stop(3)
    assert run_state(third) == "stopped before it began"
    runs.stop(2)
    assert other.ended.wait(PATIENCE_S)
    assert not has_begun(third)


def test_a_run_that_cannot_be_started_is_told_and_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(command: str) -> subprocess.Popen[str]:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable", command)

    monkeypatch.setattr(webapp_runs, "_begun", full)
    made = Runs(tmp_path)
    with pytest.raises(UsageError, match="the run cannot be started: Resource temporarily unavailable"):
        started(made)
    assert made.all() == []


def test_a_folder_without_records_says_what_to_do_in_place_of_filters(runs: Runs, tmp_path: Path) -> None:
    page = records_page("/secret", tmp_path, [], 0, runs)
    assert "There is no record below" in page
    assert as_command(f"weir run rrul --out {tmp_path}/first") in page
    assert '<a href="/secret/new">' in page
    assert not any(part in page for part in ('type="search"', "<select", "<table", "weir show"))


def test_runs_in_virtual_time_do_not_wait_for_each_other(runs: Runs) -> None:
    assert [run_state(started(runs, *words)) for words in ((), ("--world", "kernel"))] == ["under way"] * 2
    with pytest.raises(UsageError, match="2 runs are under way"):
        started(runs)


def test_when_the_application_ends_no_run_begins_that_has_waited(runs: Runs) -> None:
    one, other = started(runs, *LAB), started(runs, *LAB)
    runs.end()
    assert one.ended.wait(PATIENCE_S)
    assert other.ended.wait(PATIENCE_S)
    assert not has_begun(other)


def test_the_command_is_quoted_for_a_shell() -> None:
    command, total = command_of(QUICK | {"queue": ["htb rate 95% fq_codel", "default"], "repeat": "2"}, "out")
    assert total == 4
    assert command == (
        "weir run rrul --link cable-20-8 --queue 'htb rate 95% fq_codel' --queue default --idle 1s --load 1s "
        "--cooldown 0s --repeat 2 --out out --no-charts"
    )


def test_a_run_is_ended_with_what_was_measured_and_so_is_the_application(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(f"open({str(tmp_path / 'harmed')!r}, 'w')")
    one = begun(tmp_path)
    long = QUICK | {"load": "100000s"}
    answers = [json.loads(one.ask("/start", "POST", long)[1]) for _ in range(3)]
    assert [answer.get("number") for answer in answers[:2]] == [1, 2]
    assert "2 runs are under way" in answers[2]["error"]
    one.state_when(1, "record")
    one.ask("/runs/1/stop", "POST", {})
    state = one.state_when(1, "end")
    assert state["code"] == 130
    record = open_record(tmp_path / state["records"][0]["place"])
    record.check()
    assert not record.manifest.complete
    one.state_when(1, "record")
    assert ended(one) == 0
    # The second run ended with the application: its record is whole up to there.
    (second,) = {path.parent for path in tmp_path.rglob("manifest.json")} - {record.path}
    assert open_record(second).manifest.reached_ns is not None
    assert not (tmp_path / "harmed").exists(), "a file beside the records was run"


def test_a_run_is_watched_on_after_an_answer_that_did_not_come(browser: Browser, tmp_path: Path) -> None:
    one = begun(tmp_path)
    try:
        one.ask("/start", "POST", QUICK | {"load": "100000s"})
        with opened(browser, one.link) as shown:
            page = shown.page
            page.goto(f"{one.link}runs/1")
            expect(page.locator("#live-says")).to_contain_text("first", timeout=PATIENCE_S * 1000)
            page.route("**/state", lambda route: route.abort())
            expect(page.locator("#state")).to_contain_text("no answer", timeout=WAIT_MS)
            page.unroute("**/state")
            expect(page.locator("#state")).to_contain_text("under way", timeout=WAIT_MS)
            page.locator("#stop").click()
            shown.errors.clear()
    finally:
        ended(one)


def test_what_a_run_has_measured_is_drawn_while_it_is_under_way(browser: Browser, tmp_path: Path) -> None:
    one = begun(tmp_path)
    try:
        one.ask("/start", "POST", QUICK | {"load": "100000s"})
        with opened(browser, one.link) as shown:
            page = shown.page
            page.goto(f"{one.link}runs/1")
            says = page.locator("#live-says")
            expect(says).to_contain_text("first", timeout=PATIENCE_S * 1000)
            expect(shown.chart("Ping")).to_have_count(1, timeout=WAIT_MS)
            earlier = says.inner_text()
            expect(says).not_to_have_text(earlier, timeout=PATIENCE_S * 1000)
            expect(page.locator("#state")).to_contain_text("under way")
            assert shown.barriers() == []
            page.locator("#stop").click()
            expect(says).to_contain_text("All that was measured", timeout=PATIENCE_S * 1000)
            expect(shown.chart("Ping")).to_have_count(1, timeout=WAIT_MS)
    finally:
        ended(one)


def test_a_run_that_is_under_way_is_not_told_as_cut_short(tmp_path: Path) -> None:
    one = begun(tmp_path)
    try:
        one.ask("/start", "POST", QUICK | {"load": "100000s"})
        (record,) = one.state_when(1, "record")["records"]
        asked = f"/view?record={quote(record['place'])}"
        content = one.ask(asked)[1]
        assert re.search(r"the run is under way: these are its first \d+\.\d s", content)
        assert "cut short" not in content
        listed = one.ask("/")[1]
        assert "(under way: <a" in listed
        assert "cut short" not in listed
        # What somebody else runs may be, for all that the application knows.
        whole = ignore_patterns("*.unfinished")
        shutil.copytree(tmp_path / record["place"], tmp_path / "others", ignore=whole)
        others = one.ask("/view?record=others")[1]
        assert re.search(r"the run was cut short at \d+\.\d s, or is under way", others)
        assert "(cut short, or under way: <a" in one.ask("/")[1]
        one.ask("/runs/1/stop", "POST", {})
        one.state_when(1, "end")
        assert re.search(r"Caution: the run was cut short at \d+\.\d s<", one.ask(asked)[1])
        rows = dict(re.findall(r"<a>([^<]+)</a> \((.*?)\)", one.ask("/")[1]))
        assert rows[record["place"]] == "cut short", "there is nothing to watch"
        assert rows["others"].startswith("cut short, or under way: <a")
    finally:
        ended(one)


def test_whoever_does_not_read_an_answer_keeps_it_from_ending_no_longer_than_others(tmp_path: Path) -> None:
    one = begun(tmp_path)
    with socket.create_connection(("127.0.0.1", one.port), timeout=PATIENCE_S) as client:
        asks = f"GET /{one.token}/viewer.js HTTP/1.1\r\nHost: 127.0.0.1:{one.port}\r\n\r\n"
        # More than sockets hold of answers: one of them is under way for good.
        client.sendall(asks.encode() * 400)
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        assert ended(one) == 0
