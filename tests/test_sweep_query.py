"""Questions to a store in SQL: what they come to, and that they reach nothing but the store's rows."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from weirlab.errors import UsageError
from weirlab.sweeps.query import answer
from weirlab.sweeps.store import Store

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two parts, in which one run stands twice."""
    made = Store.made(tmp_path / "rates.sweep")
    axis = {"rate_mbps": pl.Float64}
    made.append([{"run": "a", "seed": 1, "queue": "sfq", "error": "it broke"}], {})
    rows = [
        {"run": key, "seed": seed, "queue": "sfq", "rate_mbps": rate, "events": 10}
        for key, seed, rate in (("a", 1, 5.0), ("b", 2, 7.0))
    ]
    made.append(rows, axis)
    return made


def test_each_run_is_a_row_of_the_table_runs(store: Store) -> None:
    found = answer(store, "SELECT queue, avg(rate_mbps) AS rate, sum(events) AS n FROM runs GROUP BY queue;")
    assert found.rows(named=True) == [{"queue": "sfq", "rate": 6.0, "n": 20.0}]
    everything = answer(store, "FROM runs ORDER BY run")
    assert everything.columns == store.scan().collect_schema().names()
    assert everything["run"].to_list() == ["a", "b"]
    assert "rate_mbps" in answer(store, "DESCRIBE runs")["column_name"].to_list()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM parquet_metadata('{folder}/rates.sweep/runs/*.parquet')",
        "SELECT * FROM read_csv('https://localhost:1/x.csv')",
        "SELECT (SELECT content FROM read_text('{file}')) FROM runs",
        "SELECT * FROM query('COPY runs TO ''{folder}/out.csv''')",
        "SELECT getenv('HOME')",
        "SELECT * FROM store",
        "COPY runs TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}/out'",
        "ATTACH '{folder}/out.db' AS other",
        "CREATE TABLE other AS SELECT * FROM read_csv('{file}')",
        "INSTALL httpfs",
        "LOAD '{file}'",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "SET temp_directory = '{folder}/out'",
        "PRAGMA enable_profiling",
        "DELETE FROM runs",
        "DROP TABLE runs",
        "EXPLAIN ANALYZE SELECT * FROM '{file}'",
        "SELECT 1; COPY runs TO '{folder}/out.csv'",
        "CALL pragma_version()",
        "",
        "SELECT",
    ],
)
def test_a_question_reaches_nothing_but_the_rows(store: Store, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("word\nopensesame\n")
    there = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError) as refused:
        answer(store, sql.format(file=file, folder=tmp_path))
    assert str(refused.value).startswith("SQL: ")
    assert "opensesame" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sorted(tmp_path.rglob("*")) == there


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT INTERVAL 1 DAY AS gap", "column `gap` is of type INTERVAL: cast it, as in `gap::VARCHAR`"),
        ("SELECT list(run) AS keys FROM runs", "column `keys` is of type VARCHAR[]"),
        ("SELECT colour FROM runs", "colour"),
        ("SELECT run::INTEGER AS n FROM runs", "Could not convert string 'a' to INT32"),
        ("SELECT run, run FROM runs", "two columns `run`: name one of them with `AS`"),
        ("SELECT 1; SELECT 2", "2 statements: write one"),
        ("DELETE FROM runs", "`DELETE` is refused: write a `SELECT`"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(store: Store, sql: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        answer(store, sql)
    assert says in str(refused.value)


def test_ctrl_c_ends_a_question(store: Store) -> None:
    before = set(TASKS.iterdir())
    pressed = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    pressed.start()
    with pytest.raises(KeyboardInterrupt):
        answer(store, "SELECT count(*) AS n FROM range(1000000000000) a WHERE a.range * 3 % 7 = 8")
    pressed.join()
    # DuckDB has threads of its own, and none of them may go on with it.
    end, idle = time.monotonic() + 30, 0
    while idle < 50:
        idle = 0 if any(computes(task) for task in set(TASKS.iterdir()) - before) else idle + 1
        assert time.monotonic() < end, "a thread goes on with the question"
        time.sleep(0.01)


TASKS = Path("/proc/self/task")
"""A folder for each thread of this process."""


def computes(task: Path) -> bool:
    """Whether a thread runs, or wants to, at this moment."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    except FileNotFoundError:  # it has ended
        return False


def test_names_of_columns_are_kept_as_they_are(store: Store) -> None:
    found = answer(store, """SELECT sum(seed) AS "a ""b"", c", 1 AS "select" FROM runs""")
    assert found.rows(named=True) == [{'a "b", c': 3.0, "select": 1}]


def test_the_command_prints_and_writes_answers(
    weir_here: Callable[..., subprocess.CompletedProcess[str]], store: Store, tmp_path: Path
) -> None:
    del store
    asked = ("query", "rates.sweep", "SELECT run, rate_mbps FROM runs ORDER BY run")
    assert "7" in weir_here(*asked).stdout
    nothing = weir_here("query", "rates.sweep", "SELECT run FROM runs WHERE seed > 2")
    assert (nothing.returncode, nothing.stdout, nothing.stderr) == (0, "", "the answer has no rows\n")
    assert weir_here(*asked, "--format", "csv").stdout == "run,rate_mbps\na,5.0\nb,7.0\n"
    lines = weir_here(*asked, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["rate_mbps"] for line in lines] == [5.0, 7.0]
    written = weir_here(*asked, "--out", "rows.parquet")
    assert (written.returncode, written.stderr) == (0, "2 rows in rows.parquet\n")
    assert pl.read_parquet(tmp_path / "rows.parquet").rows() == [("a", 5.0), ("b", 7.0)]
    again = weir_here(*asked, "--out", "rows.parquet")
    assert (again.returncode, again.stderr) == (
        2,
        "weir: `rows.parquet` is there already: choose another name\n",
    )
    assert weir_here(*asked, "--out", "rows.xlsx").returncode == 2
    assert weir_here("query", "nowhere", "SELECT 1").returncode == 3


def test_without_duckdb_it_says_what_to_install(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(UsageError, match=r"pip install 'weirlab\[query\]'"):
        answer(store, "SELECT 1")
