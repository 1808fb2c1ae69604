"""The control socket of a lab: over it its lines are changed while a program runs."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from weirlab.errors import LabError, UsageError, WeirError

__all__ = ["change", "opened"]

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@contextmanager
def opened(path: Path) -> Iterator[socket.socket]:
    """A socket at `path` for a lab to listen at: for this user alone, and gone in the end.

    What a lab that was killed has left there is replaced.

    Raises:
        UsageError: if something else is there, another lab listens there, or there cannot be a socket.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        before = os.umask(0o177)
        try:
            _bind(listener, path)
        finally:
            os.umask(before)
        ours = path.stat().st_ino
        try:
            listener.listen()
            yield listener
        finally:
            with suppress(OSError):
                if path.stat().st_ino == ours:
                    path.unlink()


def _bind(listener: socket.socket, path: Path) -> None:
    try:
        try:
            listener.bind(str(path))
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not _is_left_over(path):
                raise
            path.unlink()
            listener.bind(str(path))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UsageError(f"`{path}` exists: choose another file for the control socket") from error
        raise UsageError(f"`{path}` cannot be a control socket: {error.strerror or error}") from error


def _is_left_over(path: Path) -> bool:
    """Whether a socket is there at which nobody listens any more."""
    if not stat.S_ISSOCK(path.lstat().st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as near:
        try:
            near.connect(str(path))
        except ConnectionRefusedError:
            return True
    return False


def change(path: Path, changes: Mapping[str, Mapping[str, Any]]) -> float:
    """Changes the lines of the lab that listens at `path`.

    `changes` has hops by their full names, such as `down/modem`, each with the keys that a change has in a
    link file, but for `at`: it happens at once.

    Returns:
        Since when they hold, in seconds of the run.

    Nothing is changed if this fails.

    Raises:
        UsageError: if there is no control socket, or the lab's lines cannot be changed like that.
        LabError: if the lab has ended, or cannot follow.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as near:
        near.settimeout(PATIENCE_S)
        try:
            near.connect(str(path))
            near.sendall((json.dumps(changes) + "\n").encode())
            with near.makefile(encoding="utf-8") as lines:
                said = lines.readline(MOST_SAID)
        except UnicodeDecodeError as error:
            raise _no_lab(path) from error
        except TimeoutError as error:
            raise LabError(f"the lab of `{path}` has not answered for {PATIENCE_S:g} s") from error
        except FileNotFoundError as error:
            raise UsageError(
                f"there is no control socket `{path}`: its lab has ended, or began without `--control`"
            ) from error
        except (ConnectionError, OSError) as error:
            raise _unheard(path, error) from error
    if not said:
        raise LabError(f"the lab of `{path}` ended before it answered")
    try:
        answer = json.loads(said)
        if "error" not in answer:
            return float(answer["t_ns"] / 1e9)
        failure = (UsageError if answer["of"] == "order" else LabError)(answer["error"])
    except (ValueError, TypeError, KeyError) as error:
        raise _no_lab(path) from error
    raise failure


def _no_lab(path: Path) -> UsageError:
    return UsageError(f"`{path}` is not the control socket of a lab")


def _unheard(path: Path, error: OSError) -> WeirError:
    """Why nobody at `path` takes orders."""
    if isinstance(error, ConnectionRefusedError):
        if path.is_socket():
            return LabError(f"the lab of `{path}` has ended")
        return _no_lab(path)
    if isinstance(error, ConnectionError):
        return LabError(f"the lab of `{path}` ended before it answered")
    return UsageError(f"`{path}` cannot be asked: {error.strerror or error}")


MOST_SAID = 65_536
"""Characters of an answer at most."""

PATIENCE_S = 10.0
"""How long an answer may take; a lab has it within a thousandth of that."""
