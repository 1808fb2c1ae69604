"""Results of the study's runs, as rules ask for them: figures of cells by seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weirstudies.speedtest_aqm.design import Cell, Study
    from weirstudies.speedtest_aqm.figures import Run

    Figure = Callable[[Run], float | None]


class Known:
    """Figures of cells by seed, of runs in the simulator.

    Attributes:
        of: the study.
        asked: the cells that were asked for.
    """

    def __init__(self, found: Mapping[Cell, Sequence[Run]], of: Study) -> None:
        """Takes in what was found of the cells."""
        self.of = of
        self.asked: set[Cell] = set()
        self._runs = {
            cell: here
            for cell, runs in found.items()
            if (here := [run for run in runs if run.world == "sim"])
        }

    def values(self, cell: Cell, figure: Figure) -> dict[int, float]:
        """The figure of each run of a cell that has it, by seed."""
        self.asked.add(cell)
        found = {run.seed: figure(run) for run in self._runs.get(cell, [])}
        return {seed: value for seed, value in found.items() if value is not None}

    def cells(self, wanted: Callable[[Cell], bool]) -> list[Cell]:
        """The cells that were run of those that are wanted."""
        return [cell for cell in self._runs if wanted(cell)]
