"""Records of earlier formats: opened as they are, in the words of the present one."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import weirlab
from weirlab.errors import RecordError, UsageError
from weirlab.record import open_record
from weirlab.viewer.repeat import repeat_of

FORMAT_2 = Path(__file__).parent / "records" / "format-2"
"""Two uploads on a line of 2 Mbit/s, the second from another machine, on which a tunnel ends."""

SEED = 7


def keys(value: Any) -> set[str]:
    """All keys in `value`, however deep."""
    if isinstance(value, dict):
        return {*value}.union(*(keys(one) for one in value.values()))
    return set().union(*(keys(one) for one in value)) if isinstance(value, list) else set()


def test_a_record_of_format_2_has_the_present_keys() -> None:
    assert {"set_up", "station"} <= keys(json.loads((FORMAT_2 / "manifest.json").read_text()))
    record = open_record(FORMAT_2)
    manifest = record.manifest
    assert manifest.schema_version == 2
    assert manifest.configuration == "Line, 2 Mbit/s; fq_codel"
    assert not {"set_up", "station"} & keys(asdict(manifest))
    assert [flow["client_host"] for flow in manifest.test["flows"]] == ["client", "laptop"]
    assert [flow["client_host"] for flow in manifest.scenario["flows"]] == [0, 1]
    assert [tunnel["client_host"] for tunnel in manifest.scenario["tunnels"]] == [1]
    record.check()
    up = weirlab.summarise(record).up
    assert up is not None
    assert up.goodput_mbps == pytest.approx(1.76, abs=0.01)


def test_a_record_of_format_2_is_run_again_and_is_the_same_run(tmp_path: Path) -> None:
    old = open_record(FORMAT_2)
    written = old.manifest
    # The Weir that wrote it took a queue for which the link has no place, and did without it.
    with pytest.raises(UsageError, match="no hop up or down of link `line-2` has a place for it"):
        weirlab.run(written.test, link=written.link, queue=written.queue, out=tmp_path / "refused")
    [new] = weirlab.run(written.test, link=written.link, seed=SEED, out=tmp_path / "again")
    assert new.manifest.schema_version == 3
    assert new.manifest.scenario == written.scenario
    assert weirlab.summarise(new).up == weirlab.summarise(old).up
    text = repeat_of(old).text
    assert text is not None
    assert "queue" not in text


@pytest.mark.parametrize("flows", [None, "none", [None], [["station"]], {"station": 1}])
def test_a_damaged_manifest_of_format_2_is_refused_or_read(flows: Any, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(FORMAT_2, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["test"]["flows"] = flows
    (copy / "manifest.json").write_text(json.dumps(manifest))
    assert open_record(copy).manifest.test["flows"] == flows
    manifest["test"] = flows
    (copy / "manifest.json").write_text(json.dumps(manifest))
    if not isinstance(flows, dict):
        with pytest.raises(RecordError, match=r"its manifest\.json is damaged"):
            open_record(copy)
