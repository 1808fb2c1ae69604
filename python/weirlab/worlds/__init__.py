"""Worlds: where a scenario runs."""

from weirlab.worlds.base import Datapath, Progress, World, datapaths, world_named, world_names

__all__ = ["Datapath", "Progress", "World", "datapaths", "world_named", "world_names"]
