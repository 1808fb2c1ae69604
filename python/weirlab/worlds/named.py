"""Worlds by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from weirlab.errors import UsageError
from weirlab.record.manifest import usual_datapath
from weirlab.worlds.base import Datapath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.worlds.base import World


def world_names() -> list[str]:
    """The names of the worlds."""
    return ["sim", "lab", "net", "kernel"]


def datapaths() -> list[str]:
    """The names of the data paths."""
    return list(get_args(Datapath))


def world_named(
    name: str,
    datapath: Datapath | None = None,
    *,
    hosts: Sequence[str] = (),
    secret: str | None = None,
    ip: int | None = None,
) -> World:
    """The world of that name.

    Args:
        name: one of `world_names`.
        datapath: who has the queues and lines, which lab and kernel can be told; the lab's own are Weir's.
        hosts: the servers, which only the world net has.
        secret: what those servers ask for.
        ip: Internet protocol that the world net is to use, where a load or probe does not say its own.
    """
    if datapath is not None and datapath not in datapaths():
        raise UsageError(f"unknown datapath `{datapath}` (known: {', '.join(datapaths())})")
    if datapath == "kernel" and name not in {"lab", "kernel"}:
        raise UsageError(f"datapath `kernel`: world `{name}` has no kernel in it: write lab or kernel")
    if hosts and name != "net":
        raise UsageError(f"host `{hosts[0]}`: only the world net has one, not world `{name}`")
    if secret is not None and name != "net":
        raise UsageError(f"auth: only the world net has a server that asks for a secret, not world `{name}`")
    if name == "sim":
        from weirlab.worlds.sim import SimWorld  # noqa: PLC0415 - each world loads what it needs

        return SimWorld()
    if name == "lab":
        from weirlab.worlds.lab import LabWorld  # noqa: PLC0415

        return LabWorld(datapath or usual_datapath(name))
    if name == "kernel":
        from weirlab.worlds.kernel import KernelWorld  # noqa: PLC0415

        return KernelWorld(datapath or usual_datapath(name))
    if name == "net":
        from weirlab.worlds.net import NetWorld  # noqa: PLC0415

        return NetWorld(hosts, secret, ip)
    raise UsageError(f"unknown world `{name}` (known: {', '.join(world_names())})")
