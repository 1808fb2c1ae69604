"""Worlds: where a scenario runs."""

from weirlab.worlds.base import Progress, World, world_named, world_names

__all__ = ["Progress", "World", "world_named", "world_names"]
