"""Times of data files of Flent: zones of old files, and when the load was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from flent_files import T0, document, imported, written
from weirlab.errors import RecordError
from weirlab.flent import import_flent, read_document
from weirlab.flent.samples import throughput
from weirlab.flent.series import Stream
from weirlab.stats import summarise

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.record import Record


@pytest.mark.parametrize("minutes", [120, -480, 330, 345, -210, 0])
def test_zones_of_old_files_are_quarters_of_an_hour_off(minutes: int, tmp_path: Path) -> None:
    content = document(version=2)
    local = datetime.fromtimestamp(T0, UTC).replace(tzinfo=None) + timedelta(minutes=minutes)
    began = local - timedelta(seconds=1)
    content["metadata"] |= {"T0": f"{local.isoformat()}.000000", "TIME": f"{began.isoformat()}.000000"}
    assert read_document(written(tmp_path, content)).t0_s == T0
    up = summarise(imported(tmp_path, content)).up
    assert up is not None
    assert up.goodput_mbps == pytest.approx(8.0, rel=0.015)


@pytest.mark.parametrize("minutes", [-2, 50])
def test_a_file_whose_samples_are_not_in_the_time_of_its_test_is_refused(
    minutes: int, tmp_path: Path
) -> None:
    content = document()
    began = datetime.fromtimestamp(T0, UTC) + timedelta(minutes=minutes)
    content["metadata"]["T0"] = began.isoformat(timespec="microseconds").replace("+00:00", "Z")
    with pytest.raises(RecordError, match="no sample lies within the time of its test"):
        import_flent(written(tmp_path, content), tmp_path / "record")


def streams_from(*begins_s: float, length_s: float = 2.0) -> dict[str, Any]:
    """A file of uploads of 8 Mbit/s that begin at these times; by its LENGTH they run from 1 s to 3 s."""
    content = document()
    content["metadata"]["NAME"] = "tcp_nup"
    steps = round(length_s / 0.25)
    for parts in (content["raw_values"], content["results"]):
        del parts["TCP upload"]
    for number, begin_s in enumerate(begins_s, 1):
        name = f"TCP upload::{number}"
        content["raw_values"][name] = [
            {"t": T0 + begin_s + 0.25 * (n + 1), "dur": 0.25, "val": 8.0} for n in range(steps)
        ]
        content["results"][name] = [None] * 21
        content["metadata"]["SERIES_META"][name] = {"UNITS": "Mbits/s"}
    return content


def phases_s(record: Record) -> dict[str, tuple[float, float]]:
    """Start and end of each phase in seconds since T0, by its name."""
    of = record.manifest.imported
    assert of is not None
    return {
        one["name"]: (
            round((one["start_ns"] - of.t0_ns) / 1e9, 4),
            round((one["end_ns"] - of.t0_ns) / 1e9, 4),
        )
        for one in record.manifest.scenario["phases"]
    }


def test_the_load_is_when_its_samples_are(tmp_path: Path) -> None:
    record = imported(tmp_path, streams_from(0.3, 2.0, 3.5))
    assert phases_s(record) == {"idle": (-0.02, 0.3), "load": (0.3, 5.5)}
    assert record.manifest.complete
    (said,) = record.manifest.warnings
    assert "LENGTH" in said
    assert "from 0.32 s to 5.52 s" in said
    summary = summarise(record)
    assert summary.up is not None
    assert summary.up.goodput_mbps == pytest.approx(8.0 * 6 / 5.2, rel=0.02)
    assert list(summary.up.per_flow_running_mbps.values()) == [pytest.approx(8.0, rel=0.07)] * 3
    # Pings before the first load, and no others: those of 0, 0.1, 0.2 and 0.3 s.
    assert summary.latency.idle is not None
    assert summary.latency.idle.count == 4


@pytest.mark.parametrize(
    ("begin_s", "length_s", "load"),
    [(2.0, 2.0, (2.0, 4.0)), (1.0, 1.25, (1.0, 2.25)), (1.2, 2.0, (0.98, 2.98)), (1.0, 1.75, (0.98, 2.98))],
)
def test_a_load_may_begin_late_and_end_early(
    begin_s: float, length_s: float, load: tuple[float, float], tmp_path: Path
) -> None:
    record = imported(tmp_path, streams_from(begin_s, length_s=length_s))
    assert phases_s(record)["load"] == load
    assert bool(record.manifest.warnings) == (load[0] != 0.98)


def test_a_run_that_was_cut_short_keeps_its_plan(tmp_path: Path) -> None:
    content = streams_from(1.0, length_s=1.0)
    content["raw_values"]["Ping (ms) ICMP"] = content["raw_values"]["Ping (ms) ICMP"][:20]
    content["x_values"] = content["x_values"][:11]
    content["results"] = {name: values[:11] for name, values in content["results"].items()}
    record = imported(tmp_path, content)
    assert phases_s(record)["load"] == (0.98, 2.98)
    assert not record.manifest.complete


def test_values_on_steps_do_not_tell_that_a_load_began_late(tmp_path: Path) -> None:
    content = document(raw_values={})
    content["results"]["TCP upload"] = [None] * 9 + [8.0] * 3 + [None] * 9
    assert phases_s(imported(tmp_path, content))["load"] == (1.0, 3.0)


def test_one_flow_of_several_may_run_for_a_part_of_the_load(tmp_path: Path) -> None:
    content = streams_from(1.0, 2.0)
    content["raw_values"]["TCP upload::2"] = content["raw_values"]["TCP upload::2"][:4]
    record = imported(tmp_path, content)
    assert phases_s(record)["load"] == (0.98, 2.98)
    up = summarise(record).up
    assert up is not None
    running = up.per_flow_running_mbps
    assert running == {name: pytest.approx(8.0, rel=0.11) for name in up.per_flow_mbps}
    assert record.manifest.warnings == []


def far(name: str, at_s: float) -> Stream:
    """A stream with an interval of 2 s that ends so long after time 0."""
    return Stream(
        name=name,
        direction="down",
        points=[{"t": at_s, "val": 1.0, "dur": 2.0}],
        meta={},
        on_steps=False,
    )


def test_a_stream_that_goes_on_for_too_long_is_told_with_what_is_read() -> None:
    """Its own length is: few steps have something in them."""
    with pytest.raises(RecordError, match=r"`TCP` goes on for 1300000 steps of 0\.2 s; 1000000 are read at"):
        throughput([far("TCP", 260_000.0)], 0.0, 0.2)
    assert throughput([far("TCP", 199_000.0)], 0.0, 0.2).height == 10


@pytest.mark.parametrize("end_s", [2.6, 3.4, 3.5, 199_000.0])
def test_a_stream_has_no_step_before_its_first(end_s: float) -> None:
    """Also where it begins with a step: 0.6 s, in binary, seem to lie in the step before."""
    rows = throughput([far("TCP", end_s)], 0.0, 0.2)
    assert rows["bytes"].sum() == 250_000
    assert 0 not in rows["bytes"].to_list()
    assert rows["t_ns"][0] == round(5 * (end_s - 2) // 1 + 1) * 200_000_000


def test_pings_without_a_load_are_not_compared_with_themselves(tmp_path: Path) -> None:
    content = document()
    for parts in (content["raw_values"], content["results"]):
        del parts["TCP upload"]
    record = imported(tmp_path, content)
    assert [phase["name"] for phase in record.manifest.scenario["phases"]] == ["idle"]
    assert record.reached_ns > record.manifest.scenario["phases"][0]["end_ns"]
    latency = summarise(record).latency
    assert (latency.idle, latency.increase_mean_ms) == (None, None)
    assert latency.loaded is not None
    assert latency.loaded.count == 39


def test_values_on_long_steps_tell_when_a_load_ran_no_better_than_a_step(tmp_path: Path) -> None:
    """The value at the end of a step stands for all of it, also where the load began within."""
    content = document(version=1, x_values=[0, 1, 2, 3, 4])
    content["results"] = {"Ping (ms) ICMP": [20, 20, 22, 22, 20], "TCP upload": [None, 8, 8, 8, None]}
    del content["raw_values"]
    content["metadata"]["STEP_SIZE"] = 1.0
    record = imported(tmp_path, content)
    phases = [(one["name"], one["start_ns"]) for one in record.manifest.scenario["phases"]]
    assert phases == [("idle", 0), ("load", 10**9), ("cooldown", 3 * 10**9)]
    assert not any("LENGTH" in said for said in record.manifest.warnings)
