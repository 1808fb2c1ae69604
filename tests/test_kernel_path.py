"""The kernel's own queues beside ours. Real time: short runs."""

from __future__ import annotations

from itertools import pairwise
from statistics import quantiles
from typing import TYPE_CHECKING

import pytest

from live import skip_if_disturbed
from weirlab.record import open_record

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

    Weir = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.realtime

HOP = """
[[{way}]]
name = "line"
place = "queue"
queue = "pfifo limit 100"
rate = "20mbit"
framing = "{framing}"
delay = "10ms"
"""
KERNEL = ("--world", "lab", "--datapath", "kernel")
SHORT = ("--idle", "1s", "--load", "3s", "--cooldown", "0s", "--no-charts")


def link(folder: Path, framing: str) -> str:
    """A link of 20 Mbit/s both ways."""
    head = f'name = "plain"\ntitle = "20 Mbit/s"\nsummary = "20 Mbit/s"\nsource = "made up: {framing}"\n'
    hops = (HOP.format(way=way, framing=framing) for way in ("up", "down"))
    (folder / "plain.toml").write_text(head + "".join(hops))
    return "plain.toml"


def run(weir: Weir, *words: str) -> None:
    done = weir("run", "tcp_download", *words, *SHORT)
    assert done.returncode == 0, done.stderr


def full_rate_mbps(queue: pl.DataFrame) -> float:
    """The rate at which a queue sends while it has packets, in Mbit/s: the 90th percentile over its samples.

    No shaper sends faster than its rate for the tenth of a second of a sample, so what a machine that stalls
    takes away from some samples does not count; a wrong rate or framing shows in all of them.
    """
    samples = zip(queue["t_ns"], queue["backlog_packets"], queue["departed_bytes"], strict=True)
    rates: list[float] = [
        departed * 8e3 / (end - start)
        for (start, before, _), (end, after, departed) in pairwise(samples)
        if before > 0 and after > 0
    ]
    return quantiles(rates, n=10)[-1]


@pytest.mark.needs_lab
@pytest.mark.parametrize("framing", ["docsis", "none"])
def test_the_kernels_queues_and_ours_carry_the_same(weir: Weir, tmp_path: Path, framing: str) -> None:
    queues = ("--queue", "pfifo limit 100", "--queue", "htb rate 95% pfifo limit 100")
    # One line at a time, since what is compared is their rates: labs beside each other slow each other down.
    words = ("--link", link(tmp_path, framing), *queues, "--world", "lab", "--jobs", "1")
    run(weir, *words, "--out", "ours")
    run(weir, *words, "--datapath", "kernel", "--out", "theirs")
    rates: dict[str, list[float]] = {"ours": [], "theirs": []}
    for name in ("ours", "theirs"):
        for folder in sorted((tmp_path / name).iterdir()):
            record = open_record(folder)
            assert record.manifest.datapath == {"ours": "userspace", "theirs": "kernel"}[name]
            queue = record.queue
            assert {"up/line", "down/line"} == set(queue["queue"])
            # The queue under test fills, at the line or at the shaper in front of it, and drops.
            down = queue.filter((queue["queue"] == "down/line") & (queue["class"] == ""))
            assert 50 <= max(down["backlog_packets"].to_list()) <= 102
            assert down["dropped_overlimit"].sum() > 0
            skip_if_disturbed(record)
            rates[name].append(full_rate_mbps(down))
    assert len(rates["ours"]) == 2
    assert rates["ours"] == pytest.approx(rates["theirs"], rel=0.02)


@pytest.mark.needs_lab
def test_what_the_kernel_lacks_is_refused_before_the_run(weir: Weir, tmp_path: Path) -> None:
    refusals = {
        "vdsl-100-40": "hop `modem`: the kernel does not know the framing PTM: use the userspace data path",
        "lte-att": "hop `handset`: the kernel cannot follow the recording `ATT-LTE-driving-2016.up` as a "
        "line: use the userspace data path",
    }
    text = "name = 'slow'\ntitle = 'slow'\n[[up]]\nname = 'line'\nrate = '9mbit'\npacket_rate = 6250\n"
    (tmp_path / "slow.toml").write_text(f"{text}[[down]]\nname = 'line'\nrate = '9mbit'\n", encoding="utf-8")
    refusals["slow.toml"] = (
        "hop `line-cpu`: the kernel cannot forward just 6250 packets per second: use the userspace data path"
    )
    for name, hop in (("starlink", "terminal"), ("docsis-31", "modem"), ("wifi-n", "station")):
        refusals[name] = (
            f"hop `{hop}`: the kernel has no line with `grants`, `airtime` or `reconfiguration`: "
            "use the userspace data path"
        )
    for name, sentence in refusals.items():
        done = weir("run", "tcp_download", "--link", name, *KERNEL, "--out", "o")
        # In front of it stands what is compared in vain, if anything.
        assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"weir: {sentence}")
        assert not (tmp_path / "o").exists()
    words = ("--link", "cable-20-8", "--queue", "red limit 40000 avpkt 1000 ecn nodrop adaptive")
    done = weir("run", "tcp_download", *words, *KERNEL, "--out", "o")
    sentence = "hop `router`: red: no Linux has `adaptive` beside `nodrop`: leave one of them out"
    assert (done.returncode, done.stderr.strip()) == (2, f"weir: {sentence}")


@pytest.mark.needs_lab
def test_an_absent_discipline_is_named(weir: Weir) -> None:
    """Whether there is one is up to this machine's kernel."""
    words = ("--queue", "fq_codel", "--idle", "0s", "--load", "1s", "--cooldown", "0s", "--no-charts")
    done = weir("run", "tcp_download", *words, *KERNEL, "--out", "o")
    if done.returncode == 0:
        pytest.skip("this kernel has fq_codel")
    sentence = "hop `router`: this kernel has no queue discipline `fq_codel`: use the userspace data path"
    assert (done.returncode, done.stderr.strip()) == (2, f"weir: {sentence}")


def test_the_simulator_has_no_kernel(weir_here: Weir) -> None:
    done = weir_here("run", "tcp_download", "--datapath", "kernel", "--out", "o")
    sentence = "datapath `kernel`: world `sim` has no kernel in it: write lab or kernel"
    assert (done.returncode, done.stderr.strip()) == (2, f"weir: {sentence}")
