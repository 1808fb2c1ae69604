"""Shapers of this machine, as the compiled part runs them: started, looked at, ended, and replayed."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any, cast

from weirlab import _native
from weirlab.shape.asked import asked
from weirlab.ui import warn

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirlab._native import ShaperChoice
    from weirlab.shape.view import ShaperView, Wanted


def choose(settings: dict[str, Any]) -> ShaperChoice:
    """The backend that would shape by these settings, why, and the queues, out of the device first.

    Nothing is changed.

    Raises:
        UsageError: if the settings cannot be.
        ShapeError: if this machine cannot shape so.
    """
    return asked(lambda: _native.choose_shaper(json.dumps(settings)))


def shape(settings: dict[str, Any], show: Callable[[ShaperView], Wanted]) -> tuple[int | None, str | None]:
    """Shapes until `show`, which is given a view a few times a second, says `stop`, or the time is over.

    Returns:
        How many decisions were made, also where somebody interrupts it, which is the usual end; None if that
        came before it began. And why what was learned of the line could not be kept at the end, if it should
        have been.

    Raises:
        UsageError: if the settings cannot be.
        ShapeError: if this machine cannot shape so. What was there before is there again.
    """
    seed = int.from_bytes(os.urandom(7), "big")
    started = False

    def on_view(text: str) -> str:
        nonlocal started
        if not started:
            started = True
            tell_service_manager("READY=1")
        return show(view_in(text))

    try:
        return asked(lambda: _native.shape(json.dumps(settings), seed, on_view))
    except KeyboardInterrupt:
        return None, None


def status(device: str) -> str:
    """The last view of the shaper of a device, as JSON (`view_in`); empty if it has shown none yet.

    Its words steer no terminal. It has some seconds to answer.

    Raises:
        ShapeError: if none shapes it, if it does not answer, or with something that is no view; or if the
            process that listens there is neither root's nor this user's.
    """
    return asked(lambda: _native.shaper_status(device))


def view_in(text: str) -> ShaperView:
    """The view in a text of `status`."""
    return cast("ShaperView", json.loads(text))


def stop(device: str) -> None:
    """Ends the shaper of a device, and returns when it has restored what was there.

    Raises:
        ShapeError: if none shapes it, or if it does not end.
    """
    asked(lambda: _native.stop_shaper(device))


def replay(log: str, mode: str | None, show: Callable[[str], None]) -> tuple[int, int, int]:
    """Runs the controller of a log, or `auto` in `mode`, over what went into it.

    Args:
        log: text of the log.
        mode: what `auto` would have done so instead; None for what was said then.
        show: is given each decision, as a line of the log.

    Returns:
        How many decisions the log has, how many came out, and how many of these are the same.

    Raises:
        UsageError: if the text is no log.
    """
    logged, made, same = asked(lambda: _native.replay_shaper(log, mode, show))
    return logged, made, same


def tell_service_manager(news: str) -> None:
    """Tells it to the service manager that started this, if one wants to know: sd_notify(3).

    One that cannot be told ends no shaper.
    """
    where = os.environ.get("NOTIFY_SOCKET")
    if where is None:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as near:
            near.sendto(news.encode(), where.replace("@", "\0", 1) if where.startswith("@") else where)
    except OSError as error:
        # `strerror` is None where the name itself is too long.
        warn(f"the service manager cannot be told that it shapes: {error.strerror or error}")
