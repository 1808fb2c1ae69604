"""Worlds: where a scenario runs."""

from weirlab.worlds.base import Datapath, Progress, World
from weirlab.worlds.named import datapaths, world_named, world_names
from weirlab.worlds.sides import SIDES, Side

__all__ = [
    "SIDES",
    "Datapath",
    "Progress",
    "Side",
    "World",
    "datapaths",
    "world_named",
    "world_names",
]
