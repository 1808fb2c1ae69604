"""Shows that a change of the code leaves every record of the simulator as it was.

    git switch --detach main && make setup        # the code before the change
    .venv/bin/python tools/same_records.py make /tmp/before
    git switch change && make setup               # the code after it
    .venv/bin/python tools/same_records.py make /tmp/after
    .venv/bin/python tools/same_records.py compare /tmp/before /tmp/after

`make` runs short scenarios: every test, queue discipline, marker, congestion control, kind of speed test and
shaper case. `compare` reads the part files of each table and compares them column by column: names, types and
values. It leaves out what differs between two runs of the same code: where part files are cut, times of day,
the machine. Exit code 0: the records are the same; 1: they differ; 2: a run failed, or a folder is empty.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl

from weirlab.net.methods import METHODS
from weirlab.record.upgrade import upgraded
from weirlab.scenario import congestion_controls, shipped_tests

Case = tuple[str, ...]
"""Arguments of `weir run` for one case."""


def main() -> int:
    """Runs the tool; returns the exit code."""
    ask = argparse.ArgumentParser(
        prog="same_records.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = ask.add_subparsers(dest="verb", required=True)
    make = verbs.add_parser("make", help="makes the records of all cases")
    make.add_argument("folder", type=Path, help="where the records go; must not exist")
    make.add_argument("--only", default="", help="only cases whose name begins so, such as `queue-`")
    make.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases at once")
    compare = verbs.add_parser("compare", help="compares the records of two folders")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    said = ask.parse_args()
    if said.verb == "make":
        return make_records(said.folder, said.only, said.jobs)
    return compare_records(said.before, said.after)


def make_records(folder: Path, only: str, jobs: int) -> int:
    """Makes the records of the cases whose name begins with `only` in `folder`; returns the exit code."""
    if folder.exists():
        print(f"same_records.py: {folder} exists already", file=sys.stderr)
        return 2
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="weir-same-records-") as written:
        named = {name: case for name, case in cases(Path(written)).items() if name.startswith(only)}
        with ThreadPoolExecutor(jobs) as pool:
            errors = [
                error for error in pool.map(lambda name: make_one(folder / name, named[name]), named) if error
            ]
    for error in errors:
        print(error, file=sys.stderr)
    print(f"{len(named) - len(errors)} of {len(named)} cases made in {folder}")
    return 2 if errors else 0


def make_one(folder: Path, case: Case) -> str | None:
    """Makes the records of one case; returns what went wrong, or None."""
    command = [sys.executable, "-m", "weirlab", "run", *case]
    command += ["--world", "sim", "--jobs", "1", "--no-charts", "--out", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=CASE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"{folder.name}: not over after {CASE_TIMEOUT_S} s: weir run {' '.join(case)}"
    if done.returncode == 0 and any(folder.rglob("manifest.json")):
        return None
    return f"{folder.name}: exit code {done.returncode}: weir run {' '.join(case)}\n{done.stderr}"


def compare_records(before: Path, after: Path) -> int:
    """Compares the records of two folders and prints each difference; returns the exit code."""
    sides = [{path.parent.relative_to(top) for path in top.rglob("manifest.json")} for top in (before, after)]
    if not all(sides):
        print(f"same_records.py: no records in {before if not sides[0] else after}", file=sys.stderr)
        return 2
    differences = [f"{name}: only in one folder" for name in sorted(sides[0] ^ sides[1])]
    rows = tables = 0
    for name in sorted(sides[0] & sides[1]):
        if meaning(before / name) != meaning(after / name):
            differences.append(f"{name}: manifest.json differs")
        both = tables_of(before / name), tables_of(after / name)
        differences += [
            f"{name}: table {table} only in one" for table in sorted(both[0].keys() ^ both[1].keys())
        ]
        for table in sorted(both[0].keys() & both[1].keys()):
            tables += 1
            rows += both[0][table].height
            differences += [
                f"{name}: {line}" for line in table_differences(table, both[0][table], both[1][table])
            ]
    for line in differences:
        print(line)
    print(
        f"{len(sides[0] & sides[1])} records, {tables} tables, {rows} rows compared: "
        + (f"{len(differences)} differences" if differences else "the same")
    )
    return 1 if differences else 0


def meaning(record: Path) -> dict[str, object]:
    """The manifest of a record in the words of the present format, without what differs from run to run."""
    manifest: dict[str, object] = json.loads((record / "manifest.json").read_text())
    return {key: value for key, value in upgraded(manifest).items() if key not in VOLATILE}


def tables_of(record: Path) -> dict[str, pl.DataFrame]:
    """The rows of each table of a record, as the part files hold them."""
    names = {part.parent.name for part in record.glob("*/*.parquet")}
    return {
        name: pl.concat([pl.read_parquet(part) for part in sorted((record / name).glob("*.parquet"))])
        for name in names
    }


def table_differences(name: str, before: pl.DataFrame, after: pl.DataFrame) -> list[str]:
    """One sentence for each difference of two tables; none when they are the same to the bit."""
    if before.schema != after.schema:
        return [f"{name}: columns {dict(before.schema)} became {dict(after.schema)}"]
    if before.height != after.height:
        return [f"{name}: {before.height} rows became {after.height}"]
    return [
        f"{name}: values of column {column} differ"
        for column in before.columns
        if not before[column].equals(after[column], null_equal=True)
    ]


def cases(written: Path) -> dict[str, Case]:
    """Every case by name; scenarios that have no file of their own are written to the folder `written`."""
    short = ("--idle", "500ms", "--load", "1500ms")
    shipped: dict[str, Case] = {f"test-{name}": (name, *short) for name in shipped_tests()}
    # It has no load.
    shipped["test-ping"] = ("ping", "--idle", "2s")
    queues: dict[str, Case] = {
        f"queue-{number:02}-{words.split()[0]}": (
            *("tcp_bidirectional", "--cc", "cubic", "--ecn", "--queue-up", words, "--queue-down", words),
            *("--link", "vdsl-100-40", *short),
        )
        for number, words in enumerate(QUEUES)
    }
    senders: dict[str, Case] = {
        f"cc-{name}-{option.strip('-')}-ip{ip}": (
            *(
                "rrul_be",
                "--cc",
                name,
                option,
                "--ip",
                ip,
                "--queue",
                "fq_codel",
                "--idle",
                "500ms",
                "--load",
                "4s",
            ),
        )
        for name in congestion_controls()
        for option, ip in (("--ecn", "4"), ("--no-ecn", "6"), ("--no-sack", "4"))
    }
    shapers: dict[str, Case] = {
        f"shaper-{path.stem}": (str(written / f"shaper-{path.stem}.toml"), "--idle", "1s", "--load", "4s")
        for path in SHAPER_FILES
    }
    shapers |= {
        f"shaper-words-{number}": ("rrul_be", "--shaper", words, "--idle", "1s", "--load", "5s")
        for number, words in enumerate(SHAPERS)
    }
    files = {f"method-{kind}": METHOD.format(kind=kind) for kind in METHODS}
    files |= {f"marker-{words.split()[0]}": MARKER.format(words=words) for words in MARKERS}
    unasserted = {f"shaper-{path.stem}": without_assertions(path.read_text()) for path in SHAPER_FILES}
    for name, text in (files | unasserted).items():
        (written / f"{name}.toml").write_text(text)
    return shipped | queues | senders | shapers | {name: (str(written / f"{name}.toml"),) for name in files}


def without_assertions(text: str) -> str:
    """A scenario file that asserts nothing: a case is shorter than the spans that its file asserts of."""
    left = ASSERTIONS.sub("", text)
    said = tomllib.loads(text)
    said.pop("assert", None)
    if tomllib.loads(left) != said:
        raise ValueError(
            "assertions are written as `assert = [`, a line each and `]`, before the first table"
        )
    return left


ROOT = Path(__file__).resolve().parent.parent
SHAPER_FILES = sorted((ROOT / "scenarios" / "shaper").glob("*.toml"))
CASE_TIMEOUT_S = 600
"""Length of the longest case, in seconds of this machine: one takes at most a minute on a slow one."""
ASSERTIONS = re.compile(r"^assert = \[\n.*?^\]\n", re.MULTILINE | re.DOTALL)
"""Assertions of a scenario file, as those of the shaper cases are written."""
VOLATILE = ("host", "schema_version", "started_at", "tables", "versions")
"""Keys of a manifest that differ between two runs of one code, or say its format.

`tables` holds digests of part files.
"""
QUEUES = (
    "default",
    "pfifo limit 50",
    "bfifo limit 100000",
    "pfifo_head_drop limit 50",
    "pfifo_fast",
    "tbf rate 20mbit burst 10kb latency 50ms",
    "htb rate 95% fq_codel",
    "htb rate 90% sfq",
    "hfsc sc rate 25mbit ul rate 30mbit",
    "codel",
    "fq_codel flows 8 limit 200",
    "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth 30mbit ecn",
    "choke limit 200 min 20 max 60 burst 50 bandwidth 30mbit",
    "sfb",
    "sfq perturb 1",
    "sfq headdrop limit 100",
    "fq",
    "pie ecn",
    "fq_pie",
    "dualpi2",
    "prio",
    "ets bands 4 strict 2",
    "drr",
    "qfq",
    "skbprio",
    "cake bandwidth 30mbit diffserv4 ack-filter",
    "cake bandwidth 30mbit besteffort flowblind",
    "netem delay 5ms 2ms loss 0.5% limit 500",
    "rio",
    "fred",
    "frio",
)
SHAPERS = ("auto", "auto mode bandwidth", "auto up 95%", "fixed up 95% down 95%")
MARKERS = (
    "token_bucket",
    "tcp_friendly",
    "tcp_friendly_1",
    "fair",
    "srtcm cir 2mbit",
    "trtcm cir 2mbit pir 4mbit",
    "tswtcm ctr 2mbit ptr 4mbit",
)
METHOD = """\
name = "method"
link = "cable-20-8"
queue = ["fq_codel"]

[phases]
idle = "1s"
load = "25s"

[test]
name = "method"
title = "A speed test"
phases = {{ load = "25s" }}
probes = [{{ name = "ping", kind = "icmp", period = "50ms" }}]
hosts = [{{ name = "server", delay = "10ms" }}]
methods = [{{ name = "test", kind = "{kind}" }}]
"""
MARKER = """\
name = "marker"
test = "tcp_nup"

[phases]
idle = "500ms"
load = "2s"

[link]
name = "marked"
title = "A line whose queue goes by colour"

[[link.up]]
name = "line"
rate = "10mbit"
delay = "10ms"
marker = "{words}"
queue = "rio"

[[link.down]]
name = "line"
rate = "10mbit"
delay = "10ms"
"""

if __name__ == "__main__":
    sys.exit(main())
