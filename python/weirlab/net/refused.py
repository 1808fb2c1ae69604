"""What to do where a server refuses a connection: apart from all that is heavy, for shapers on routers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirlab import _native


def what_to_start(error: _native.NativeError) -> str:
    """What to do where nothing listens at the port of a server's machine; empty of any other error."""
    refused = str(error).endswith("connection refused")
    return "; start `weir serve` there, or name its port: HOST:PORT" if refused else ""
