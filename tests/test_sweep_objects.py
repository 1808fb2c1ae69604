"""Stores of sweeps in an object store: a server of S3's protocol, which throttles, breaks off and lags."""

from __future__ import annotations

import json
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import weirlab
from s3_server import BUCKET, VARIABLES, Faults, s3_server
from weirlab.errors import RecordError, UsageError, WriteError
from weirlab.sweeps import places, sweeping
from weirlab.sweeps.columns import ORIGIN
from weirlab.sweeps.plan import plan_of
from weirlab.sweeps.runs import sweep_of
from weirlab.sweeps.store import Store

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from weirlab.sweeps.sweeping import Outcome

    Weir = Callable[..., subprocess.CompletedProcess[str]]

pytest.importorskip("obstore")
pytestmark = [
    # It starts a server, and waits for pauses between tries.
    pytest.mark.realtime,
    # Looked for, not loaded: every process that collects would wait for it.
    pytest.mark.skipif(find_spec("moto") is None, reason="moto is not there"),
]

SCENARIO = {
    "test": "tcp_upload",
    "link": "cable-20-8",
    "phases": {"idle": "500ms", "load": "1s", "cooldown": "0s"},
}
QUEUES = ["pfifo_fast", "fq_codel"]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Faults]]:
    with s3_server() as found:
        yield found


@pytest.fixture
def faults(server: tuple[str, Faults], monkeypatch: pytest.MonkeyPatch) -> Faults:
    """What the object store does wrong: nothing yet."""
    address, found = server
    found.reset()
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    return found


@pytest.fixture
def url(faults: Faults, request: pytest.FixtureRequest) -> str:
    """A place for a store."""
    assert not faults.slow
    return f"s3://{BUCKET}/{request.node.name}"


def plan(queues: list[str] = QUEUES, **sweep: Any) -> Any:
    return plan_of({**SCENARIO, "sweep": {"axes": {"queue": queues}, **sweep}})


def carry_out(asked: Any, store: Store) -> Outcome:
    return sweeping.carry_out(sweep_of(asked), store, jobs=1)


def row(key: str, **more: Any) -> dict[str, Any]:
    return {"run": key, "seed": 1, **more}


def test_a_sweep_in_an_object_store_is_that_of_a_folder(url: str, tmp_path: Path, weir_here: Weir) -> None:
    said = tmp_path / "plan.toml"
    said.write_text(
        'test = "tcp_upload"\nlink = "cable-20-8"\n'
        'phases = { idle = "500ms", load = "1s", cooldown = "0s" }\n'
        '[sweep]\nrepeat = 2\n[sweep.axes]\nqueue = ["pfifo_fast", "fq_codel"]\n'
    )
    found = json.loads(weir_here("sweep", str(said), "--dry-run", "--out", url, "--json").stdout)
    assert (found["runs"], found["missing"]) == (4, 4)
    done = json.loads(weir_here("sweep", str(said), "--out", url, "--jobs", "1", "--json").stdout)
    assert (done["store"], done["done"], done["failed"]) == (url, 4, 0)
    again = json.loads(weir_here("sweep", str(said), "--out", url, "--jobs", "1", "--json").stdout)
    assert (again["done"], again["kept"]) == (0, 4)
    local = weirlab.sweep(said, store=tmp_path / "store", jobs=1)
    # A lazy frame is read when it is asked, after the store that it comes from is out of sight.
    there = weirlab.sweep(said, store=url, jobs=1)
    where = [name for name in ORIGIN if name != "weir"]
    assert_frame_equal(there.collect().drop(where), local.collect().drop(where), check_exact=True)
    shown = json.loads(weir_here("sweep", "show", url, "--by", "queue", "--json").stdout)
    assert [(one["queue"], one["runs"]) for one in shown["rows"]] == [("fq_codel", 2), ("pfifo_fast", 2)]
    asked = weir_here("query", url, "SELECT count(*) AS n FROM runs", "--format", "csv")
    assert asked.stdout == "n\n4\n"
    chart = tmp_path / "chart.png"
    assert weir_here("sweep", "plot", url, "--kind", "sensitivity", "--out", str(chart)).returncode == 0
    assert chart.stat().st_size > 10_000
    bundle = tmp_path / "b.bundle"
    assert json.loads(weir_here("bundle", url, "--out", str(bundle), "--json").stdout)["rows"] == 4
    joined = weir_here("sweep", "compact", url)
    assert "4 rows of 1 part in one" in joined.stderr


def test_parts_are_joined_by_many_writers_and_the_manifest_is_made_again(url: str) -> None:
    Store.made(url)

    def write(writer: int) -> None:
        store = Store.opened(url)
        for number in range(4):
            store.append([row(f"{writer:016x}{number:016x}", rate=float(writer))], {"rate": pl.Float64})
            if number == 2:
                store.compact()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = Store.opened(url)
    assert store.collected().height == 12
    store.compact()
    assert len(store.parts()) == 1
    written = store.place.read("manifest.json")
    store.place.remove("manifest.json")
    other = Store.opened(url)
    other.write_manifest()
    assert other.place.read("manifest.json") == written
    assert other.collected().height == 12


def test_a_store_that_throttles_takes_all_rows(url: str, faults: Faults) -> None:
    store = Store.made(url)
    faults.slow = 5
    assert carry_out(plan(), store).done == 2
    assert faults.slow == 0
    assert Store.opened(url).collected().height == 2


def test_a_write_that_breaks_off_is_made_again_and_leaves_no_half_part(
    url: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.made(url)
    faults.cut = 2
    store.append([row("a" * 32)], {})
    assert (faults.cut, store.collected().height) == (0, 1)
    monkeypatch.setattr(places, "MAX_RETRIES", 0)
    stubborn = Store.opened(url)
    faults.cut = 1
    with pytest.raises(WriteError, match=r"part-.*parquet` cannot be written"):
        stubborn.append([row("b" * 32)], {})
    assert Store.opened(url).collected()["run"].to_list() == ["a" * 32]


def test_rows_of_a_write_that_failed_are_written_with_the_next_ones(
    url: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MAX_RETRIES", 0)
    monkeypatch.setattr(sweeping, "PART_ROWS", 1000)
    store = Store.made(url)
    keeper = sweeping._Keeper(store, {"queue": pl.String}, None, None)
    runs = sweep_of(plan()).runs
    keeper.told(runs[0], row(runs[0].key))
    faults.cut = 1
    keeper._tick()
    assert (faults.cut, store.collected().height) == (0, 0)
    keeper.told(runs[1], row(runs[1].key))
    keeper.flush()
    assert set(Store.opened(url).collected()["run"]) == {run.key for run in runs}


def test_what_a_list_does_not_show_yet_is_there_for_who_wrote_it_and_by_the_manifest(
    url: str, faults: Faults
) -> None:
    store = Store.made(url)
    faults.hides = lambda name: "/runs/" in name
    assert carry_out(plan(), store).done == 2
    assert store.collected().height == 2
    assert carry_out(plan(), store).done == 0
    # Another process knows of them by the manifest.
    assert Store.opened(url).collected().height == 2
    # What is in neither is not known: its runs are done again, and count once when the list has caught up.
    store.place.remove("manifest.json")
    other = Store.made(url)
    assert carry_out(plan(), other).done == 2
    faults.reset()
    caught_up = Store.opened(url)
    assert (len(caught_up.parts()), caught_up.collected().height) == (2, 2)


def test_what_a_list_still_shows_after_it_was_joined_is_looked_for_again(url: str, faults: Faults) -> None:
    store = Store.made(url)
    for number in range(3):
        store.append([row(f"{number:032x}")], {})
    reader = Store.opened(url)
    assert len(reader.parts()) == 3
    before = dict(faults.lists)
    assert store.compact() == (3, 3)
    # As in another process, which has no copies of the parts.
    places._copies.cache_clear()
    faults.lists, faults.frozen = before, 3
    assert reader.collected().height == 3
    assert faults.frozen == 0


def test_raw_samples_are_kept_in_an_object_store(url: str) -> None:
    store = Store.made(url)
    asked = sweep_of(plan(["fq_codel"], samples="all"))
    assert sweeping.carry_out(asked, store, jobs=1).failed == 0
    record = Store.opened(url).record(asked.runs[0].key)
    assert record.manifest.complete
    assert record.latency.height > 10
    assert sweeping.carry_out(asked, Store.opened(url), jobs=1).done == 0


def test_what_is_no_place_for_a_store_is_one_sentence(
    faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not faults.slow
    with pytest.raises(UsageError, match=r"a store is a folder or one of s3://, gs://, file://"):
        Store.made("http://host/store")
    with pytest.raises(UsageError, match=r"^`s3://nobody/x` cannot be listed: .*NoSuchBucket"):
        Store.made("s3://nobody/x")
    with pytest.raises(RecordError, match=r"^`s3://bucket/nothing` is no store of a sweep"):
        Store.opened("s3://bucket/nothing")
    store = Store.made((tmp_path / "a folder").as_uri())
    assert store.path == tmp_path / "a folder"
    with pytest.raises(UsageError, match=r"write `file:///PATH`"):
        Store.made("file://elsewhere/store")
    with monkeypatch.context() as without:
        without.delenv("AWS_ALLOW_HTTP")
        with pytest.raises(UsageError, match=r"without TLS is asked only with AWS_ALLOW_HTTP=true"):
            Store.made("s3://bucket/x")
    places.Objects("s3://bucket/letters").put("dear.txt", lambda path: path.write_text("dear"))
    with pytest.raises(UsageError, match="holds something else than a store"):
        Store.made("s3://bucket/letters")
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)
    with pytest.raises(UsageError, match=r"need the package obstore: `pip install 'weirlab\[objects\]'`"):
        Store.made("s3://bucket/x")
