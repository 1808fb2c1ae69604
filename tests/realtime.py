"""Tests in real time: their modules say so, and one that forgets it fails.

What waits for clocks, sockets and devices fails beside work that takes the processors. The mark is that of a
whole module: `pytestmark = pytest.mark.realtime`. `make test` runs several of these at once, since they
mostly wait and hardly disturb each other, and beside them, at the least weight, all others. Those that judge
times or rates which much work beside them would spoil run last, two at a time: `pytest.mark.quiet`.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from unittest.mock import patch

from weirlab import _native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MARK = "realtime"

COMMANDS = {"lab", "ping", "serve", "shape", "test", "validate"}
"""Commands of `weir` that work in real time."""

WORLDS = {"lab", "net"}
"""Values of `--world` that are no simulation."""

CALLS = ("lab", "measure", "ping", "run_method", "serve", "shape")
"""Functions of the extension that work in real time."""


def works_in_real_time(command: Sequence[str]) -> bool:
    """Whether a command line starts `weir` for work in real time, as far as its words tell."""
    words = [str(word) for word in command]
    starts = [
        place
        for place, word in enumerate(words)
        if Path(word).name == "weir" or (word == "weirlab" and words[place - 1] == "-m")
    ]
    if not starts or "--help" in words:
        return False
    weir = words[starts[0] + 1 :]
    worlds = {world for option, world in pairwise(weir) if option == "--world"}
    return weir[:1] != [] and (weir[0] in COMMANDS or not worlds.isdisjoint(WORLDS))


@contextmanager
def refused() -> Iterator[None]:
    """While this lasts, work in real time raises an error: in a process of its own, and within this one."""
    global _refusing  # noqa: PLW0603 - a process has one, as it has its audit hooks
    calls: dict[str, Any] = {name: _unless_help(getattr(_native, name)) for name in CALLS}
    _refusing = True
    try:
        with patch.multiple(_native, **calls):
            yield
    finally:
        _refusing = False


_refusing = False


def _unless_help(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, refused unless its words ask for help only."""

    def refusing(*arguments: Any, **named: Any) -> Any:
        if any("--help" in words for words in arguments if isinstance(words, list)):
            return function(*arguments, **named)
        return _refuse()

    return refusing


def _refuse() -> NoReturn:
    raise RuntimeError(
        f"this test works in real time, and its module does not say so: pytestmark = pytest.mark.{MARK}"
    )


def _audit(event: str, details: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and _refusing:
        command = details[1]
        if works_in_real_time(command.split() if isinstance(command, str) else command):
            _refuse()


sys.addaudithook(_audit)
