"""Speed tests within a scenario: what is read, what is run, what is told, what is refused."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from weirlab import _native
from weirlab.api import run_all
from weirlab.cli import speed_test, test_command
from weirlab.cli import weir as group
from weirlab.errors import UsageError
from weirlab.net.methods import METHODS, Less, hint
from weirlab.net.quality import warnings_of_method
from weirlab.record import open_record
from weirlab.report.methods import comparison_of_methods, figures_of_methods, method_results, method_table
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.stats import summarise
from weirlab.worlds import world_named

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from weirlab.record import Record


def spec(*methods: dict[str, Any], load: str = "25s", **words: Any) -> ScenarioSpec:
    test = {
        "name": "speed",
        "title": "Speed test",
        "phases": {"idle": "1s", "load": load},
        "hosts": [{"name": "server", "delay": "10ms"}],
        "probes": [{"name": "ping", "kind": "udp"}],
        "methods": list(methods),
    }
    return ScenarioSpec.model_validate(
        {"test": test, "link": "line-50", "queue": ["pfifo limit 1000"], "start_jitter": "0s", **words}
    )


NDT7 = {"name": "test", "kind": "ndt7"}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """An ndt7 test with CUBIC both ways behind a deep FIFO, and beside it one that does not end."""
    asked = spec({**NDT7, "cc": "cubic"}, {"name": "late", "kind": "ndt7", "start": "24s"})
    (done,) = run_all(resolve(asked), world_named("sim"), tmp_path_factory.mktemp("methods"), jobs=1)
    return open_record(done.path)


def test_congestion_controls_are_those_of_the_servers() -> None:
    asked = spec(
        NDT7,
        {"name": "other", "kind": "cloudflare", "start": "3s", "tls": False},
        {"name": "third", "kind": "rpm", "cc": "reno", "client_cc": "bbr"},
        tcp={"congestion_control": "reno", "ecn": True},
    )
    first, second, third = resolve(asked)[0].scenario["methods"]
    # The server of ndt7 asks its sockets for BBR whatever the default is.
    assert first["tcp"]["congestion_control"] == "bbr"
    assert first["client_congestion_control"] == "reno"
    assert first["tcp"]["overrides"]["ecn"] is True
    assert (first["start_ns"], first["tls"]) == (1_000_000_000, True)
    assert second["tcp"]["congestion_control"] == "reno"
    assert (second["start_ns"], second["tls"]) == (3_000_000_000, False)
    assert [third["tcp"]["congestion_control"], third["client_congestion_control"]] == ["reno", "bbr"]


def test_speed_tests_of_scenario_and_test_come_together() -> None:
    asked = spec(NDT7, methods=[{"name": "more", "kind": "rpm"}])
    assert [one["name"] for one in resolve(asked)[0].scenario["methods"]] == ["test", "more"]


def test_a_record_has_result_flows_and_round_trips_of_each(record: Record) -> None:
    ended, cut = record.methods.iter_rows(named=True)
    assert (ended["name"], ended["kind"], ended["began_ns"]) == ("test", "ndt7", 1_000_000_000)
    assert 21e9 < ended["ended_ns"] < 23e9
    assert (cut["ended_ns"], cut["result"]) == (None, None)
    result = json.loads(ended["result"])
    assert result["method"] == "ndt7"
    assert record.flow_names["name"].to_list() == ["test down", "test up", "late down", "late up"]
    assert record.flow_names["stop_ns"].to_list()[::2] == [ended["ended_ns"], 26_000_000_000]
    assert record.probe_names == ["ping", "test in flow", "late in flow"]
    # In flow, over the FIFO that both share, as the ping beside it.
    loaded = (pl.col("t_ns") > 4e9) & (pl.col("t_ns") < 10e9)
    ping, own = (
        record.latency.filter(loaded & (pl.col("probe") == probe))["rtt_ns"].median() for probe in (0, 1)
    )
    assert isinstance(ping, float)
    assert isinstance(own, float)
    assert abs(own / ping - 1) < 0.05
    # The client's own figure is what the record counts, up to headers of TLS and WebSockets.
    down = record.throughput.filter((pl.col("flow") == 0) & (pl.col("t_ns") < 11e9))["bytes"].sum()
    assert 0.97 < float(down) * 8 / 10e6 / result["download_mbps"] < 1.05


def test_what_a_test_saw_of_itself_is_no_ping(record: Record) -> None:
    assert record.pings["probe"].unique().to_list() == [0]
    summary = summarise(record)
    assert summary.latency.sent == record.pings.filter(pl.col("t_ns") >= 1e9).height
    own = summary.probes["test in flow"]
    assert own is not None
    assert own.median > 40


def test_results_are_shown(
    record: Record, weir_here: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    shown = weir_here("show", str(record.path))
    assert "test: ndt7, by m-lab/ndt7-client-go 0.10.1" in shown.stdout
    assert "begun at 24.0 s, not ended when the run did" in shown.stdout
    (told,) = json.loads(weir_here("show", "--json", str(record.path)).stdout)
    assert told["methods"] == method_results(record)
    assert told["methods"][0]["result"]["truncated"] == {"download": False, "upload": False}


def test_results_of_several_tests_are_set_beside_each_other(
    tmp_path: Path, weir_here: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Means over the tests of a configuration; a speed test that does not end has none."""
    asked = spec(
        {**NDT7, "cc": "cubic"}, start_jitter="100ms", queue=["pfifo limit 1000", "fq_codel"], repeat=2
    )
    records = run_all(resolve(asked), world_named("sim"), tmp_path / "runs", jobs=1)
    results = [method_results(record)[0]["result"] for record in records]
    told = json.loads(weir_here("compare", str(tmp_path / "runs"), "--json").stdout)
    for configuration, of in zip(told, (results[:2], results[2:]), strict=True):
        shown = configuration["methods"]["test"]
        assert set(shown) == {"download_mbps", "upload_mbps", "latency_ms"}
        for name, figure in shown.items():
            assert figure["mean"] == pytest.approx((of[0][name] + of[1][name]) / 2)
            assert figure["count"] == 2
    table = weir_here("compare", str(tmp_path / "runs")).stdout
    assert "What the speed tests showed, by their own formulas" in table
    assert "means of 2 tests" in table
    assert f"{told[0]['methods']['test']['download_mbps']['mean']:.2f}" in table


def test_figures_of_different_speed_tests_are_not_averaged(tmp_path: Path) -> None:
    """Each is set beside itself in the other configuration: their formulas are not the same."""
    asked = spec(
        {**NDT7, "cc": "cubic"},
        {"name": "other", "kind": "cloudflare", "start": "22s"},
        load="50s",
        queue=["pfifo limit 1000", "fq_codel"],
    )
    records = run_all(resolve(asked), world_named("sim"), tmp_path / "runs", jobs=1)
    found = figures_of_methods(records)
    assert len(found) == 2
    for record, of in zip(records, found.values(), strict=True):
        results = {row["name"]: row["result"] for row in method_results(record)}
        assert of.keys() == results.keys() == {"test", "other"}
        for test, figures in of.items():
            assert figures["download_mbps"].mean == results[test]["download_mbps"]
            assert figures["download_mbps"].count == 1
    table = comparison_of_methods(records)
    assert table is not None
    assert [column.header for column in table.columns][:2] == ["queue", "test"]
    assert list(table.columns[1].cells) == ["test", "other"] * 2
    assert table.caption is None


def test_a_comparison_without_a_speed_test_that_ended_has_no_table(tmp_path: Path) -> None:
    asked = spec({**NDT7, "cc": "cubic"}, load="2s")
    (cut,) = run_all(resolve(asked), world_named("sim"), tmp_path / "runs", jobs=1)
    assert method_results(cut)[0]["result"] is None
    assert comparison_of_methods([cut]) is None
    assert figures_of_methods([cut]) == {}


def test_a_scenario_file_runs_a_speed_test(
    tmp_path: Path, weir_here: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    (tmp_path / "speed.toml").write_text(
        'test = "ping"\nlink = "fios-25-25"\n[phases]\nidle = "25s"\n'
        '[[methods]]\nname = "speed"\nkind = "ndt7"\nstart = "2s"\n'
    )
    done = weir_here("run", "speed.toml", "--no-charts", "--json", "--out", "out")
    assert done.returncode == 0, done.stderr
    ((test,),) = json.loads(done.stdout)["methods"].values()
    assert test["name"] == "speed"
    assert test["result"]["download_mbps"] > 20


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ({"name": "x", "kind": "ndt5"}, "method `x`: method `ndt5`: there are ndt7, "),
        ({"name": "x", "kind": "rpm", "tls": False}, "method `x`: rpm needs HTTP/2 over TLS"),
        ({"name": "x", "kind": "ndt7", "cc": "vegas"}, "method `x`: unknown congestion control `vegas`"),
    ],
)
def test_what_the_simulator_cannot_drive_is_refused(method: dict[str, Any], sentence: str) -> None:
    (run,) = resolve(spec(method))
    with pytest.raises(UsageError, match=sentence):
        world_named("sim").check(run)


def test_other_worlds_refuse_speed_tests() -> None:
    (run,) = resolve(spec(NDT7))
    with pytest.raises(_native.NativeError, match="method `test`: the world `lab` drives no speed tests"):
        _native.check_lab(json.dumps(run.scenario))
    bare = run.scenario | {"path": {"up": [], "down": []}}
    net = world_named("net", hosts=["192.0.2.1"])
    with pytest.raises(UsageError, match="run `weir test --method ndt7`"):
        net.check(replace(run, scenario=bare))


def test_two_of_a_name_and_a_late_start_are_refused() -> None:
    with pytest.raises(UsageError, match="two are called method `test`"):
        resolve(spec(NDT7, NDT7))
    with pytest.raises(UsageError, match="it starts at 30s and stops before, at 26s"):
        resolve(spec({**NDT7, "start": "30s"}))
    with pytest.raises(ValueError, match="write `cc` and `client_cc`"):
        spec({**NDT7, "tcp": {"congestion_control": "cubic"}})


HTTP: Any = {
    "method": "http",
    "formula": "plain HTTP",
    "server_kind": "Cloudflare",
    "latency_ms": 5.0,
    "latency_definition": "the lowest",
    "download_mbps": 90.0,
    "upload_mbps": None,
    "download": None,
    "upload": None,
    "download_loaded_latency_ms": 50.0,
    "failures": [],
    "missing": [],
}


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_why_a_foreign_server_is_measured_over_http_is_said_once(
    form: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    why = "server `h` does not speak Weir's protocol (404): start `weir serve` there"
    monkeypatch.setattr(test_command, "offered", lambda *_: Less(why, "http://h/"))
    monkeypatch.setattr(speed_test, "run_method", lambda *_, **__: dict(HTTP))
    group.main(["test", "h", "--out", str(tmp_path / "o"), *form], standalone_mode=False)
    said, told = capsys.readouterr()
    assert (said + told).count("does not speak Weir's protocol") == 1
    assert (said + told).count("it speaks Cloudflare's test too: --method cloudflare") == 1
    if form:
        assert json.loads(said)["instead_of"].startswith(why)
    else:
        assert told.startswith(f"{why}; what HTTP shows of the path follows")


def test_methods_by_name_are_those_of_the_command_line() -> None:
    assert list(METHODS) == [known["name"] for known in _native.methods()]
    assert {"ndt7", "cloudflare", "rpm"} <= set(METHODS)


ANSWERS = {
    "ndt7": {"/ndt/v7/download": (426, b"")},
    "rpm": {"/.well-known/nq": (200, b'{"version": 1, "urls": {}}')},
    "": {"/.well-known/nq": (200, b"[]"), "/ndt/v7/download": (200, b"a page")},
}
"""What a server answers by path, and the test that it speaks by that."""


@pytest.mark.parametrize("speaks", ANSWERS)
def test_a_server_of_another_test_is_known_by_its_answer(speaks: str) -> None:
    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, words = ANSWERS[speaks].get(self.path, (404, b""))
            self.send_response(status)
            self.send_header("Content-Length", str(len(words)))
            self.end_headers()
            self.wfile.write(words)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/"
            result: Any = {"method": "http", "server_kind": None}
            said = hint(url, result, verify=True)
        finally:
            server.shutdown()
            thread.join()
    if speaks:
        assert said == f"; the server speaks {speaks}: write --method {speaks}"
    else:
        assert said.startswith("; if it speaks one of the other tests, name it: --method ndt7, cloudflare, ")


def test_facts_of_speed_tests_are_those_of_the_registry() -> None:
    known = {one["name"]: one for one in _native.methods()}
    asked = {name: one["congestion_control"] for name, one in known.items()}
    assert {name for name, cc in asked.items() if cc is not None} == {"ndt7"}
    runs = resolve(
        spec(*({"name": name, "kind": name} for name in known), tcp={"congestion_control": "reno"})
    )
    resolved = {one["name"]: one["tcp"]["congestion_control"] for one in runs[0].scenario["methods"]}
    assert resolved == {name: cc or "reno" for name, cc in asked.items()}


def test_cautions_name_the_figures_that_are_missing() -> None:
    line = {"connections": 16, "saturated": True}
    result: Any = {**HTTP, "download": line, "upload": {**line, "saturated": False}}
    (said,) = warnings_of_method(result)
    assert said.startswith("16 connections did not fill the line in the upload: its throughput is a lower")
    assert warnings_of_method(HTTP) == []


@pytest.mark.parametrize(("kind", "own"), [("rpm", "goodput mbps: of the last 4 s"), ("ookla", "by its own")])
def test_of_two_figures_of_a_rate_it_is_told_what_each_is(kind: str, own: str) -> None:
    """The method's own may be more than a line has: it stands beside the mean."""
    result: Any = {"method": kind, "formula": "x", "download": {"mean_mbps": 18.2}, "failures": []}
    table = method_table(result, None)
    told = " ".join(str(table.caption).split())
    assert own in told
    assert "mean mbps: all bytes over the whole" in told
    result["method"] = "ndt7"
    assert method_table(result, None).caption is None
