"""Losses of pings in data files of Flent, which are told by their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flent_files import T0, document, imported
from weirlab.export import export
from weirlab.flent import import_flent
from weirlab.stats import summarise

if TYPE_CHECKING:
    from pathlib import Path

PING = "Ping (ms) ICMP"


def with_pings(points: list[dict[str, Any]]) -> dict[str, Any]:
    """A file with these pings and nothing else."""
    content = document()
    content["metadata"] |= {"NAME": "ping", "LENGTH": 4000, "TOTAL_LENGTH": 4000}
    for parts in (content["results"], content["raw_values"]):
        del parts["TCP upload"]
    content["raw_values"][PING] = points
    return content


def lost_and_sent(content: dict[str, Any], folder: Path) -> tuple[int, int]:
    rtt_ns = imported(folder, content).latency["rtt_ns"]
    return rtt_ns.null_count(), rtt_ns.len()


def ping(number: int, seq: float | None, *, every_s: float = 0.05, ms: float = 20.0) -> dict[str, Any]:
    told = {"t": T0 + every_s * number + ms / 1e3, "val": ms}
    return told if seq is None else told | {"seq": seq}


def test_an_answer_that_came_twice_hides_no_loss(tmp_path: Path) -> None:
    points = [ping(n, n) for n in range(200) if n % 10 != 3]
    points.insert(50, points[49] | {"t": points[49]["t"] + 0.01, "val": 30.0})
    points.append(points[-1] | {})
    record = imported(tmp_path, with_pings(points))
    assert record.latency.height == 200
    assert record.latency["rtt_ns"].max() == 20_000_000
    assert summarise(record).latency.lost == 20


@pytest.mark.parametrize("first", [0, 65_500])
def test_numbers_begin_anew_after_16_bits(first: int, tmp_path: Path) -> None:
    points = [ping(n, (first + n) % 65_536) for n in range(70_000) if n % 100 != 50]
    assert lost_and_sent(with_pings(points), tmp_path) == (700, 70_000)


def test_answers_out_of_order_at_a_new_beginning_are_in_place(tmp_path: Path) -> None:
    numbers = [*range(65_530, 65_535), 0, 65_535, 1, 2, 3, 5]
    points = [ping(n, seq) for n, seq in enumerate(numbers)]
    assert lost_and_sent(with_pings(points), tmp_path) == (1, 12)


@pytest.mark.parametrize(
    "seqs",
    [
        [*range(50), *range(50)],
        [*range(20_000, 20_050), *range(50)],
        [None] * 50,
        [*range(50), None],
        [7] * 50,
    ],
)
def test_losses_are_unknown_where_numbers_do_not_tell_them(seqs: list[int | None], tmp_path: Path) -> None:
    points = [ping(n, seq, every_s=0.2) for n, seq in enumerate(seqs)]
    first = imported(tmp_path, with_pings(points))
    (file,) = export([first], tmp_path / "again.flent.gz")
    for record in (first, import_flent(file, tmp_path / "second")):
        assert (summarise(record).latency.lost, record.latency.height) == (None, len(seqs))
        (said,) = record.manifest.warnings
        assert (
            said == "of `Ping (ms) ICMP` the numbers of pings do not tell which were lost: that is not known"
        )
        sent = record.latency["t_ns"].diff().drop_nulls()
        assert sent.to_list() == pytest.approx([200_000_000] * (len(seqs) - 1), abs=10_000)
