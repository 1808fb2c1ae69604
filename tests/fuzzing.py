"""A fuzzer for the texts that Weir's Python reads: scenarios, rules, shapers, assertions, records.

Each target takes a text as its reader does. The reader either accepts it or refuses it in one sentence of
bounded length (`WeirError`); anything else is a defect. Inputs are mutated from a corpus (`fuzz/corpus`):
words and lines are exchanged, repeated, cut and replaced by values that people and scripts get wrong.

    python tests/fuzzing.py scenario_toml --seconds 60
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from weirlab.errors import UsageError, WeirError
from weirlab.flent import import_flent
from weirlab.flent.exporting import flent_document
from weirlab.record import open_record
from weirlab.scenario import load_link, load_scenario, load_test, resolve
from weirlab.scenario.plain import load_trace
from weirlab.shape.rules import read_rules
from weirlab.shape.settings import read_config, settings_of
from weirlab.stats import beside, summarise
from weirlab.stats.assertions import Assertion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Target = Callable[[bytes, Path], object]

CORPUS = Path(__file__).parent.parent / "fuzz/corpus"


def _file(data: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def scenario_toml(data: bytes, folder: Path) -> object:
    return resolve(load_scenario(_file(data, folder, "scenario.toml")))


def a_test_toml(data: bytes, folder: Path) -> object:
    return load_test(str(_file(data, folder, "test.toml")))


def link_toml(data: bytes, folder: Path) -> object:
    return load_link(str(_file(data, folder, "link.toml")))


def trace_text(data: bytes, folder: Path) -> object:
    return load_trace(str(_file(data, folder, "given.trace")))


def rules_toml(data: bytes, folder: Path) -> object:
    return read_rules(str(_file(data, folder, "rules.toml")))


def shaper_toml(data: bytes, folder: Path) -> object:
    said = read_config(_file(data, folder, "shaper.toml"))
    # Names are not asked for: what they may look like has been read.
    return settings_of("lo", {**said, "reflectors": []})


def assertion(data: bytes, folder: Path) -> object:
    del folder
    return Assertion(data.decode("utf-8", "replace"))


def manifest(data: bytes, folder: Path) -> object:
    _file(data, folder, "manifest.json")
    return open_record(folder)


def flent_file(data: bytes, folder: Path) -> object:
    """A file of Flent, packed or bare, and its record: summarised, compared and written."""
    record = import_flent(_file(data, folder, "one.flent"), folder / "record")
    record.check()
    summarise(record)
    beside([record])
    try:
        return flent_document(record)
    except UsageError:
        # Flent has no test of that name.
        return record


def check(target: Target, data: bytes, folder: Path) -> bool:
    """Whether `data` is accepted; what must hold is asserted.

    Raises:
        AssertionError: if it is refused by more than a sentence.
    """
    for old in folder.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink()
    try:
        target(data, folder)
    except WeirError as error:
        said = str(error)
        assert 0 < len(said) <= MAX_SENTENCE_CHARS, f"{len(said)} characters: {said[:200]}"
        return False
    return True


def seeds(name: str) -> list[bytes]:
    """The corpus of a target."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def mutations(corpus: list[bytes], rng: random.Random) -> Iterator[bytes]:
    """Inputs without end, each from one or two of the corpus."""
    while True:
        pieces = _pieces(rng.choice(corpus))
        for _ in range(rng.randint(1, 4)):
            other = _pieces(rng.choice(corpus))
            rng.choice(MUTATORS)(pieces, other, rng)
        yield b"".join(pieces)[:MAX_INPUT_BYTES]


def _pieces(data: bytes) -> list[bytes]:
    """Words, numbers, signs and spaces."""
    return re.findall(rb"[A-Za-z_]+|\d+|\s+|.", data, re.DOTALL) or [b""]


def _replace(pieces: list[bytes], _: list[bytes], rng: random.Random) -> None:
    pieces[rng.randrange(len(pieces))] = rng.choice(VALUES)


def _insert(pieces: list[bytes], _: list[bytes], rng: random.Random) -> None:
    pieces.insert(rng.randrange(len(pieces) + 1), rng.choice(VALUES))


def _delete(pieces: list[bytes], _: list[bytes], rng: random.Random) -> None:
    at = rng.randrange(len(pieces))
    pieces[at : at + rng.randint(1, 8)] = [b""]


def _exchange(pieces: list[bytes], other: list[bytes], rng: random.Random) -> None:
    at, source = rng.randrange(len(pieces)), rng.randrange(len(other))
    count = rng.randint(1, 12)
    pieces[at : at + count] = other[source : source + count] or [b""]


def _repeat(pieces: list[bytes], _: list[bytes], rng: random.Random) -> None:
    at = rng.randrange(len(pieces))
    some = pieces[at : at + rng.randint(1, 6)]
    pieces[at:at] = some * rng.choice([1, 2, 30, 2000])


def _flip(pieces: list[bytes], _: list[bytes], rng: random.Random) -> None:
    at = rng.randrange(len(pieces))
    piece = bytearray(pieces[at] or b"\0")
    piece[rng.randrange(len(piece))] ^= 1 << rng.randrange(8)
    pieces[at] = bytes(piece)


MUTATORS = [_replace, _replace, _insert, _delete, _exchange, _exchange, _repeat, _flip]

VALUES = [
    *(b"0", b"-1", b"1", b"5", b"30", b"1e9", b"1e400", b"nan", b"inf", b"-0.0", b"0x10", b"1_000", b"true"),
    *(str(number).encode() for number in (2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**40)),
    *(
        b'""',
        b"''",
        b'"',
        b"[",
        b"]",
        b"[[",
        b"{",
        b"}",
        b"=",
        b".",
        b",",
        b"\n",
        b"#",
        b"\\",
        b"\0",
        b"\xff",
    ),
    *(b'"5ms"', b'"-5ms"', b'"30"', b'"1000000000s"', b'"20mbit"', b'"0bit"', b'"95%"', b'"fq_codel"'),
    *(
        b"1979-05-27",
        b"07:32:00",
        b"[]",
        b"{}",
        b"[1, [2]]",
        "ü\u202e".encode(),
        b"../../etc/passwd",
        b"null",
    ),
]
"""What people and scripts get wrong."""

MAX_INPUT_BYTES = 20_000
MAX_SENTENCE_CHARS = 8_000

TARGETS: dict[str, Target] = {
    "scenario_toml": scenario_toml,
    "test_toml": a_test_toml,
    "link_toml": link_toml,
    "trace_text": trace_text,
    "rules_toml": rules_toml,
    "shaper_toml": shaper_toml,
    "assertion": assertion,
    "manifest": manifest,
    "flent_file": flent_file,
}


def main() -> None:
    """Runs one target; a defect is written to a file and raised."""
    parser = argparse.ArgumentParser(description="Fuzz a reader of Weir's Python.")
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    target = TARGETS[said.target]
    inputs = mutations(seeds(said.target), random.Random(said.seed))  # noqa: S311 - it draws inputs
    end = time.monotonic() + said.seconds
    count = accepted = 0
    with tempfile.TemporaryDirectory() as name:
        while time.monotonic() < end:
            data = next(inputs)
            # An input that takes a minute is a defect: the stack is printed, the process ends.
            faulthandler.dump_traceback_later(60, exit=True)
            try:
                accepted += check(target, data, Path(name))
            except BaseException:
                found = Path(tempfile.gettempdir()) / f"found-{said.target}-{said.seed}-{count}"
                found.write_bytes(data)
                print(f"input {count} is in {found}", file=sys.stderr)
                raise
            count += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"{said.target}: {count} inputs, {accepted} accepted, seed {said.seed}, {said.seconds:g} s")


if __name__ == "__main__":
    main()
