"""Bundles: a sweep as one file, of which a sample is run again and held against it to the bit."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from live import weir_in
from weirlab.cli import weir
from weirlab.errors import RecordError, UsageError
from weirlab.record import open_record
from weirlab.sweeps import bundle
from weirlab.sweeps.bundle import write_bundle
from weirlab.sweeps.bundle_check import _sampled, check_bundle
from weirlab.sweeps.plan import plan_of
from weirlab.sweeps.runs import sweep_of
from weirlab.sweeps.store import Store
from weirlab.sweeps.sweeping import carry_out

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Weir = Callable[..., subprocess.CompletedProcess[str]]


SCENARIO = {
    "test": "tcp_upload",
    "link": "cable-20-8",
    "phases": {"idle": "500ms", "load": "1s", "cooldown": "0s"},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Four runs, one of them over a recording, and a row of another version."""
    folder = tmp_path_factory.mktemp("bundle")
    trace = folder / "line.trace"
    trace.write_text("".join(f"{at}\n" for at in range(1, 2000, 2)))
    made = Store.made(folder / "rates.sweep")
    queues = plan_of({**SCENARIO, "sweep": {"axes": {"queue": ["pfifo_fast", "fq_codel"]}}})
    line = {"name": "line", "place": "queue", "delay": "5ms"}
    link = {
        "name": "traced",
        "title": "A recording",
        "up": [{**line, "trace": str(trace)}],
        "down": [{**line, "rate": "20mbit"}],
    }
    axes = {"way": {"key": "link", "values": [link], "labels": ["recorded"]}}
    traced = plan_of({**SCENARIO, "sweep": {"axes": axes, "repeat": 2}})
    for plan in (queues, traced):
        assert carry_out(sweep_of(plan), made, jobs=1).failed == 0
    made.append([{"run": "0" * 32, "seed": 1, "weir": "0.0.1"}], {})
    return made


@pytest.fixture(scope="module")
def whole(store: Store) -> Path:
    """The bundle of the store, whose recording is gone since."""
    target = store.path.with_suffix(".bundle")
    said = write_bundle(store, target)
    assert (said["rows"], said["plans"], said["failed"], said["left_out"]) == (4, 2, 0, 1)
    (store.path.parent / "line.trace").rename(store.path.parent / "gone.trace")
    return target


def changed(whole: Path, target: Path, change: Callable[[list[Any]], object]) -> Path:
    """A bundle with other lines, whose digest is computed anew."""
    lines = [json.loads(line) for line in gzip.decompress(whole.read_bytes()).splitlines()[:-1]]
    change(lines)
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    end = json.dumps({"sha256": hashlib.sha256(content).hexdigest()}).encode()
    target.write_bytes(gzip.compress(content + end))
    return target


def first(lines: list[Any], key: str) -> Any:
    return next(line for line in lines if key in line)


def test_a_bundle_is_run_again_elsewhere_and_is_identical(whole: Path) -> None:
    found = check_bundle(whole, sample=10, jobs=1)
    assert (found.rows, found.failed, len(found.repeated)) == (4, 0, 4)
    assert all(one.identical for one in found.repeated)
    assert found.same_build
    assert found.other_packages == {}
    assert len(check_bundle(whole, sample=1, jobs=1).repeated) == 1


def test_it_says_what_made_it(whole: Path) -> None:
    lines = [json.loads(line) for line in gzip.decompress(whole.read_bytes()).splitlines()]
    packages = lines[0]["packages"]
    assert {"weirlab", "polars", "numpy"} <= set(packages)
    assert all(len(one["sha256"]) == 64 and one["version"] for one in packages.values())
    assert [line["plan"]["test"] for line in lines if "plan" in line] == ["tcp_upload"] * 2
    assert sum("trace" in line for line in lines) == 1


def test_the_same_store_is_the_same_bytes(store: Store, whole: Path, tmp_path: Path) -> None:
    gone, trace = store.path.parent / "gone.trace", store.path.parent / "line.trace"
    with pytest.raises(UsageError, match="cannot be read here any more"):
        write_bundle(store, tmp_path / "b.bundle")
    gone.rename(trace)
    write_bundle(store, tmp_path / "b.bundle")
    trace.rename(gone)
    assert (tmp_path / "b.bundle").read_bytes() == whole.read_bytes()
    with pytest.raises(UsageError, match="there already"):
        write_bundle(store, tmp_path / "b.bundle")


def test_a_row_that_was_changed_is_found_by_running_it(whole: Path, tmp_path: Path) -> None:
    def change(lines: list[Any]) -> None:
        row = first(lines, "row")["row"]
        row["idle_mean_ms"] += 1e-12

    found = check_bundle(changed(whole, tmp_path / "b.bundle", change), sample=4, jobs=1)
    unlike = [one for one in found.repeated if not one.identical]
    assert [one.differing for one in unlike] == [("idle_mean_ms",)]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: lines[0].update(weir="0.0.1"), r"was made by Weir 0\.0\.1, this is"),
        (lambda lines: lines[0].update(format=2), "has format 2"),
        (lambda lines: lines[0].update(kind="other"), "is no bundle of Weir"),
        (lambda lines: lines.pop(), "has 3 rows, not 4"),
        (lambda lines: first(lines, "configuration")["scenario"].update(duration_ns=10), "was changed: run"),
        (lambda lines: first(lines, "configuration").update(scenario=None), "is damaged: configuration"),
        (lambda lines: lines.remove(first(lines, "configuration")), "a configuration or a recording"),
        (lambda lines: first(lines, "trace").update(text="1\n"), "a configuration or a recording"),
        (lambda lines: lines.remove(first(lines, "trace")), "the recording .* is missing"),
        (lambda lines: first(lines, "row").update(row=[1]), "row 1 is none of a sweep"),
        (lambda lines: first(lines, "row")["row"].update(seed="1"), "is damaged|was changed"),
        (lambda lines: first(lines, "row")["row"].update(warnings="x" * 100_000), "row 1 is none"),
        (lambda lines: lines.insert(1, [1]), "a line is no object"),
        (lambda lines: lines.insert(1, {"x": "y" * (5 << 20)}), "a line of more than 4 MiB"),
    ],
)
def test_a_bundle_that_was_tampered_with_is_refused_in_a_sentence(
    whole: Path, tmp_path: Path, change: Callable[[list[Any]], object], says: str
) -> None:
    with pytest.raises(RecordError, match=says) as error:
        check_bundle(changed(whole, tmp_path / "b.bundle", change), sample=4, jobs=1)
    assert "\n" not in str(error.value)


def test_damage_is_refused_wherever_it_is(whole: Path, tmp_path: Path) -> None:
    content = whole.read_bytes()
    target = tmp_path / "b.bundle"
    plain = gzip.decompress(content)
    lines = plain.splitlines(keepends=True)
    damaged = [
        *(content[:length] for length in range(0, len(content), len(content) // 20)),
        gzip.compress(plain.replace(b'"seed": 1', b'"seed": 2', 1)),
        gzip.compress(b"".join(lines[:-1])),
        gzip.compress(b"".join([*lines, b"{}\n"])),
        gzip.compress(b"[" * 100_000),
        b"PK\x03\x04" + content,
    ]
    dice = random.Random(1)  # noqa: S311 - places
    for _ in range(20):
        place = dice.randrange(len(content))
        damaged.append(
            content[:place] + bytes([content[place] ^ 1 << dice.randrange(8)]) + content[place + 1 :]
        )
    refused = 0
    for one in damaged:
        target.write_bytes(one)
        try:
            found = check_bundle(target, sample=1, jobs=1)
            # A bit of gzip's header that says nothing, such as the system that wrote it.
            assert all(repeated.identical for repeated in found.repeated)
        except RecordError:
            refused += 1
    assert refused >= len(damaged) - 2


def test_a_hostile_file_takes_no_memory(tmp_path: Path) -> None:
    target = tmp_path / "bomb.bundle"
    target.write_bytes(gzip.compress(b'{"kind": "' + b" " * (300 << 20)))
    assert target.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(RecordError, match="more than 4 MiB"):
            check_bundle(target, sample=4, jobs=1)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_each_row_is_as_likely_in_a_sample_as_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [({"row": {"run": str(number)}, "of": number}, 1) for number in range(10)]
    monkeypatch.setattr("weirlab.sweeps.bundle_check.lines_of", lambda *_: iter(rows))
    counts = [0] * 10
    dice = random.Random(7)  # noqa: S311 - a sample
    for _ in range(5000):
        for _, of in _sampled(io.BytesIO(), "", 3, dice)[2]:
            counts[of] += 1
    # 1500 expected of each, with a standard deviation of 32.
    assert all(abs(count - 1500) < 5 * 32 for count in counts)


def test_the_command_writes_and_checks(store: Store, whole: Path, tmp_path: Path, weir_here: Weir) -> None:
    said = json.loads(weir_here("bundle", "--check", str(whole), "--sample", "2", "--json").stdout)
    assert said["sha256"] == hashlib.sha256(whole.read_bytes()).hexdigest()
    assert [one["identical"] for one in said["repeated"]] == [True, True]
    shown = weir_here("bundle", "--check", str(whole), "--sample", "1", "--jobs", "1").stdout
    assert "1 of 1 identical to the bit, of 4 in" in shown

    def change(lines: list[Any]) -> None:
        for line in lines:
            if "row" in line:
                line["row"]["events"] += 1

    other = changed(whole, tmp_path / "other.bundle", change)
    refused = weir_here("bundle", "--check", str(other), "--jobs", "1")
    assert refused.returncode == 1
    assert "differs in events" in refused.stdout
    assert "4 of 4 runs came to something else here" in refused.stderr
    assert weir_here("bundle", "--check", str(store.path / "manifest.json")).returncode == 3


def test_a_bundle_and_a_store_where_another_thing_is_wanted_are_told(
    store: Store, whole: Path, weir_here: Weir
) -> None:
    done = weir_here("bundle", str(whole))
    assert done.returncode == 2
    said = f"`{whole}` is a file, and a store is a folder: write --check to check a bundle"
    assert " ".join(done.stderr.split()) == f"weir: {said}"
    with pytest.raises(RecordError, match=r"but a store of a sweep: `weir sweep show .*rates\.sweep`"):
        open_record(store.path)


def test_what_is_no_file_is_no_bundle(tmp_path: Path) -> None:
    """A pipe would be waited for: not in this process."""
    os.mkfifo(tmp_path / "pipe")
    named = [("/dev/zero", "device"), (str(tmp_path / "pipe"), "pipe"), (str(tmp_path), "folder")]
    for name, kind in named:
        done = weir_in(tmp_path, "bundle", "--check", name)
        says = f"weir: `{name}` cannot be read: it is a {kind}, and no regular file"
        assert " ".join(done.stderr.split()) == says
        assert done.returncode == 3


def test_a_folder_that_is_named_by_where_it_is_has_its_bundle_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.made(tmp_path / "mine.sweep")
    carry_out(sweep_of(plan_of({**SCENARIO, "sweep": {"axes": {"queue": ["pfifo"]}}})), store, jobs=1)
    (tmp_path / "mine.sweep" / "in").mkdir()
    for inside, words in (("mine.sweep", "."), ("mine.sweep/in", "..")):
        monkeypatch.chdir(tmp_path / inside)
        said = CliRunner().invoke(weir, ["bundle", words])
        assert said.exit_code == 0, said.output
        (tmp_path / "mine.bundle").unlink()


def test_what_is_no_store_is_refused_before_a_bundle_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    for words in (".", "/", ".."):
        said = CliRunner().invoke(weir, ["bundle", words])
        assert "is no store of a sweep" in str(said.exception)


@pytest.mark.usefixtures("whole")
def test_a_line_that_no_reader_takes_is_not_written(store: Store, tmp_path: Path, monkeypatch: Any) -> None:
    trace = store.path.parent / "line.trace"
    trace.write_text((store.path.parent / "gone.trace").read_text())
    monkeypatch.setattr(bundle, "MAX_ROW_BYTES", 100)
    with pytest.raises(UsageError, match="too long for a bundle"):
        write_bundle(store, tmp_path / "b.bundle")
    trace.unlink()
    assert not (tmp_path / "b.bundle").exists()
