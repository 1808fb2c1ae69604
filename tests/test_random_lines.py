"""`tools/random_lines.py`: what is drawn can be read, a number is one line, a row tells what was found."""

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import pytest

from weirlab.scenario.catalogue import load_scenario

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("random_lines", ROOT / "tools/random_lines.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_drawn_can_be_read_and_is_drawn_again(tool: ModuleType, tmp_path: Path) -> None:
    drawn = [tool.drawn(number) for number in range(1, 61)]
    assert [tool.drawn(number) for number in range(1, 61)] == drawn
    assert {line.event for line in drawn} == set(tool.EVENTS)
    assert {line.load for line in drawn} == set(tool.LOADS)
    for number, line in enumerate(drawn, 1):
        path = tmp_path / f"{number}.toml"
        path.write_text(tool.scenario(number, line, ["none", "auto"]))
        scenario = load_scenario(path)
        assert len(scenario.assertions) == 1 + len(tool.SPANS) * (1 + len(line.loaded)), line


def test_a_row_marks_a_way_that_carries_less_than_half_and_a_queue_that_stays(tool: ModuleType) -> None:
    line = next(line for line in map(tool.drawn, range(1, 61)) if line.load == "both")
    without = [20.0, *[120.0, 4.0, 40.0] * 3]
    assert tool.told(line, [20.0, *[25.0, 3.8, 38.0] * 3], without).split()[:3] == ["-", "5", "(100)"]
    lost = [20.0, *[25.0, 3.8, 38.0] * 2, 25.0, 1.9, 38.0]
    assert tool.told(line, lost, without).split()[0] == "up"
    queues = [20.0, *[25.0, 3.8, 38.0] * 2, 75.0, 4.0, 40.0]
    assert tool.told(line, queues, without).split()[0] == "ms"
    # A way that carried nothing without a shaper tells nothing, nor does a figure that there is not.
    idle = [20.0, *[120.0, 0.0, 40.0] * 3]
    assert tool.told(line, [20.0, *[25.0, math.nan, 38.0] * 3], idle).split()[0] == "-"


def test_what_the_path_became_longer_by_is_not_marked(tool: ModuleType) -> None:
    line = next(line for line in map(tool.drawn, range(1, 200)) if line.event == "longer path")
    ways = [4.0] * len(line.loaded)
    longer = 20.0 + line.longer_ms

    def marks(more_ms: float) -> str:
        without = [20.0, 40.0, *ways, longer + 80, *ways, 40.0, *ways]
        shaped = [20.0, 25.0, *ways, longer + more_ms, *ways, 25.0, *ways]
        return str(tool.told(line, shaped, without).split()[0])

    assert marks(39) == "-"
    assert marks(41) == "ms"
