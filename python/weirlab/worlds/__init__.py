"""Worlds: where a scenario runs."""

from typing import TYPE_CHECKING

from weirlab.loading import asked_for
from weirlab.worlds.base import Datapath, Progress, World, check_all
from weirlab.worlds.named import datapaths, world_named, world_names

if TYPE_CHECKING:
    from weirlab.worlds.sides import SIDES, Side
else:
    __getattr__ = asked_for(__name__, {"weirlab.worlds.sides": ["SIDES", "Side"]})

__all__ = [
    "SIDES",
    "Datapath",
    "Progress",
    "Side",
    "World",
    "check_all",
    "datapaths",
    "world_named",
    "world_names",
]
