"""Times of data files of Flent: zones of old files, and when the load was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from flent_files import T0, document, imported, written
from weirlab.errors import RecordError
from weirlab.flent import import_flent, read_document
from weirlab.stats import summarise

if TYPE_CHECKING:
    from pathlib import Path


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
