"""Runs that the application started: each is a `weir run` of its own, whose output is kept."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weirlab import reading
from weirlab.errors import UsageError
from weirlab.scenario import ScenarioSpec, check, resolve, shipped_links, shipped_tests
from weirlab.viewer import commands
from weirlab.webapp.library import Library
from weirlab.worlds.kernel import found_kernel

__all__ = ["LABELS", "MAX_RUNS", "FormError", "Run", "Runs", "command_of", "too_many", "worlds"]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


@dataclass
class Run:
    """A run, under way or ended.

    Attributes:
        number: by which it is asked for, from 1.
        command: the command line.
        out: its folder below that of the application.
        library: the records in that folder.
        total: how many records it makes.
        after: runs that end before it begins.
        process: None until it begins.
        code: its exit code; None while it waits or runs.
        lines: what it wrote, the last lines.
        is_stopped: whether a reader has stopped it.
        ended: set once it has a code.
    """

    number: int
    command: str
    out: str
    library: Library
    total: int
    after: list[Run]
    process: subprocess.Popen[str] | None = None
    code: int | None = None
    lines: deque[str] = field(default_factory=lambda: deque[str](maxlen=MAX_LINES))
    is_stopped: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def is_live(self) -> bool:
        """Whether it measures in real time, which whatever else this machine does disturbs."""
        words = shlex.split(self.command)
        return "--world" in words and words[words.index("--world") + 1] not in UNDISTURBED

    @property
    def waits_for(self) -> list[int]:
        """The numbers of the runs for whose end it waits; empty once it has begun."""
        if self.process is not None or self.code is not None:
            return []
        return [one.number for one in self.after if one.code is None]

    def end_with(self, code: int) -> None:
        """It is over."""
        self.code = code
        self.ended.set()


class Runs:
    """All runs of the application."""

    def __init__(self, folder: Path) -> None:
        """Runs write their records below `folder`."""
        self._folder = folder
        self._runs: list[Run] = []
        self._lock = threading.Lock()

    def start(self, name: str, command_for: Callable[[str], tuple[str, int]]) -> Run:
        """Starts a command, as soon as nothing runs that it would disturb, or that would disturb it.

        A run in real time has the machine for itself: it waits for all before it, and all after it for it.

        Args:
            name: what the folder for its records begins with.
            command_for: gives the command that writes into a folder, and how many records it makes.

        Raises:
            UsageError: if it cannot be run, or enough is running.
        """
        with self._lock:
            under_way = [one for one in self._runs if one.code is None]
            if len(under_way) >= MAX_AT_ONCE:
                raise UsageError(f"{MAX_AT_ONCE} runs are under way: wait until one has ended, or stop one")
            out = self._free_name(name)
            command, total = command_for(str(self._folder / out))
            run = Run(len(self._runs) + 1, command, out, Library(self._folder / out), total, after=[])
            run.after = [one for one in under_way if run.is_live or one.is_live]
            if not run.after:
                try:
                    run.process = _begun(command)
                except OSError as error:
                    raise UsageError(f"the run cannot be started: {error.strerror}") from error
            self._runs.append(run)
        threading.Thread(target=self._carry_out, args=(run,), daemon=True).start()
        return run

    def _carry_out(self, run: Run) -> None:
        """Begins a run once those before it have ended, and keeps what it writes until it ends."""
        for one in run.after:
            one.ended.wait()
        with self._lock:
            # Somebody may have stopped it meanwhile.
            if run.code is not None:
                return
            try:
                run.process = run.process or _begun(run.command)
            except OSError as error:
                run.lines.append(f"it cannot be started: {error.strerror}")
                run.end_with(FAILED)
                return
        run.end_with(_followed(run.process, run.lines))

    def all(self) -> list[Run]:
        """All runs, the latest first."""
        return self._runs[::-1]

    def is_under_way(self, place: str) -> bool:
        """Whether a run that writes the record at `place`, below the folder, is under way."""
        run = self._writes(place)
        return run is not None and run.code is None

    def is_over(self, place: str) -> bool:
        """Whether the record at `place`, below the folder, is of a run of the application that has ended."""
        run = self._writes(place)
        return run is not None and run.code is not None

    def _writes(self, place: str) -> Run | None:
        """The run into whose folder the record at `place` was written; None if it is none of these."""
        out = place.partition("/")[0]
        return next((one for one in self._runs if one.out == out), None)

    def numbered(self, number: int) -> Run:
        """The run of that number.

        Raises:
            UsageError: if there is none.
        """
        if not 1 <= number <= len(self._runs):
            raise UsageError(f"there is no run {number}")
        return self._runs[number - 1]

    def stop(self, number: int) -> None:
        """Ends a run as Ctrl-C does: what was measured is kept."""
        run = self.numbered(number)
        with self._lock:
            if run.code is None:
                run.is_stopped = True
                _interrupt(run)

    def end(self) -> None:
        """Ends all runs, and waits until they have."""
        with self._lock:
            under_way = [one for one in self._runs if one.code is None]
            # Those that wait first: none of them is to begin because another has ended.
            for one in sorted(under_way, key=lambda run: run.process is not None):
                _interrupt(one)
        for process in [one.process for one in under_way if one.process is not None]:
            try:
                process.wait(timeout=MAX_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _free_name(self, name_of_run: str) -> str:
        word = "".join(sign for sign in name_of_run if sign.isalnum() or sign in "_-")[:40] or "run"
        name = f"{word}-{time.strftime('%Y%m%d-%H%M%S')}"
        taken = {one.out for one in self._runs}
        number = 1
        while (found := name if number == 1 else f"{name}-{number}") in taken or (
            self._folder / found
        ).exists():
            number += 1
        return found


class FormError(UsageError):
    """Fields of a form that cannot be run.

    Attributes:
        fields: their names; those of the queues with a number from 1, such as `queue-2`.
    """

    def __init__(self, message: str, fields: Sequence[str]) -> None:
        """Says what is wrong with which fields."""
        super().__init__(message)
        self.fields = list(fields)


def command_of(form: Mapping[str, Any], out: str | None) -> tuple[str, int]:
    """The command that does what a form says, and how many records it makes.

    Raises:
        FormError: if some of its fields cannot be run by themselves: all that is wrong, a line each.
        UsageError: if it cannot be run as a whole.
    """
    unknown = set(form) - FIELDS
    if unknown:
        raise UsageError(f"the form has no field `{min(unknown)}`")
    try:
        return _command_of(form, out)
    except UsageError as error:
        told = {name: why for name, label, part in _parts(form) if (why := _wrong_with(label, part))}
        if not told:
            raise
        raise FormError("\n".join(told.values()), list(told)) from error


def _parts(form: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each field that says something, alone: its name, its label, and a form with nothing else."""
    for key in ("test", "link", "world"):
        if key in form:
            yield key, LABELS[key], SHIPPED | {key: form[key]}
    chosen = SHIPPED | {key: form[key] for key in SHIPPED if key in form}
    alone = SHIPPED if _wrong_with("", chosen) else chosen
    queues = form.get("queue") or []
    for number, text in enumerate(queues if isinstance(queues, list) else [queues], start=1):
        if str(text).strip():
            yield f"queue-{number}", f"Queue {number}", alone | {"queue": [text]}
    for key in ("cc", *PHASES, "seed", "repeat"):
        if _texts(form, key):
            yield key, LABELS[key], alone | {key: form[key]}


def _wrong_with(label: str, form: Mapping[str, Any]) -> str | None:
    """What is wrong with a form, behind the label of the field that it is about; None if nothing is."""
    try:
        _command_of(form, None)
    except UsageError as error:
        said = str(error)
        return said if said.startswith(f"{label}: ") else f"{label}: {said}"
    return None


def _command_of(form: Mapping[str, Any], out: str | None) -> tuple[str, int]:
    test, world = form.get("test"), form.get("world", "sim")
    links = _texts(form, "link")
    # Names alone: a form opens no file.
    for what, value, known in (
        ("test", test, shipped_tests()),
        ("world", world, worlds()),
        *(("link", link, shipped_links()) for link in links),
    ):
        if value not in known:
            raise UsageError(f"{what} `{value}`: choose one of {', '.join(known)}")
    words: dict[str, Any] = {"test": test, "link": links or ["cable-20-8"]}
    words |= {key: texts for key in ("queue", "cc") if (texts := _texts(form, key))}
    phases = {key: texts[0] for key in PHASES if (texts := _texts(form, key))}
    if phases:
        words["phases"] = phases
    words |= {key: _whole(key, texts[0]) for key in ("seed", "repeat") if (texts := _texts(form, key))}
    # What is more than a file may have is more than this, too: one limit is told, not one after the other.
    if words.get("repeat", 1) > MAX_RUNS:
        raise too_many(words["repeat"])
    runs = resolve(check(ScenarioSpec, words, "form", names=NAMES))
    if len(runs) > MAX_RUNS:
        raise too_many(len(runs))
    return f"{commands(words | {'world': world}, out)} --no-charts", len(runs)


def worlds() -> list[str]:
    """Worlds that a form can start here: the world kernel where there is a kernel.

    Not the world net, which measures a real path, for which `weir test` asks more.
    """
    try:
        found_kernel()
    except UsageError:
        return ["sim", "lab"]
    return ["sim", "lab", "kernel"]


def too_many(count: int) -> UsageError:
    """That so many runs cannot be started from here."""
    return UsageError(f"{count} runs are too many to start from here: start {MAX_RUNS} or fewer")


def _whole(key: str, text: str) -> int:
    found = reading.whole(text, MAX_DIGITS)
    if found is None:
        raise UsageError(f"{LABELS[key]}: `{text}`: write a whole number of up to {MAX_DIGITS} digits")
    return found


def _texts(form: Mapping[str, Any], key: str) -> list[str]:
    """The texts of a field that may be given several times, without empty ones."""
    value = form.get(key) or []
    given = value if isinstance(value, list) else [value]
    return [text for one in given if (text := str(one).strip())]


def _begun(command: str) -> subprocess.Popen[str]:
    """The process of a command."""
    return subprocess.Popen(
        # Not what lies in the working folder (-P): a file `json.py` beside records is no module.
        [sys.executable, "-P", "-m", "weirlab", *shlex.split(command)[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        # A Ctrl-C in the terminal is for the application, which then ends its runs itself.
        start_new_session=True,
    )


def _interrupt(run: Run) -> None:
    """Ends a run as Ctrl-C does, or before it begins."""
    if run.process is None:
        run.end_with(STOPPED)
    else:
        run.process.send_signal(signal.SIGINT)


def _followed(process: subprocess.Popen[str], lines: deque[str]) -> int:
    """Keeps what a process writes, until it ends; its exit code."""
    if process.stdout is not None:
        with process.stdout as written:
            for line in written:
                lines.append(line.rstrip("\n")[:MAX_LINE_CHARS])
    return process.wait()


FIELDS = {"test", "link", "queue", "cc", "idle", "load", "cooldown", "seed", "repeat", "world"}
"""Fields of the form."""

PHASES = ("idle", "load", "cooldown")

LABELS = {
    "test": "Test",
    "link": "Link",
    "world": "World",
    "cc": "Congestion control",
    **{name: f"Length of {name}" for name in PHASES},
    "seed": "Seed",
    "repeat": "Repeat",
}
"""What the page calls each field but those of the queues, which are numbered."""

NAMES = {f"phases.{name}": LABELS[name] for name in PHASES} | {
    name: LABELS[name] for name in ("seed", "repeat")
}
"""What keys of a scenario are called in messages about the form."""

SHIPPED: dict[str, Any] = {"test": "rrul", "link": "cable-20-8"}
"""A form with nothing wrong, of which single fields are tried where its own test or link cannot be run."""

UNDISTURBED = ("sim", "kernel")
"""Worlds whose runs are the same whatever else this machine does."""

MAX_AT_ONCE = 2
"""Runs at once, each of which uses all processors anyway."""

STOPPED = 130
"""The exit code of a command that Ctrl-C ended."""

FAILED = 1
"""That of one that could not be started."""

MAX_RUNS = 1000
"""Records of one form; a larger study belongs on the command line."""

MAX_LINES: int = 400
"""Lines of a run's output that are kept."""

MAX_LINE_CHARS = 500
"""Characters of a line of a run's output that are kept."""

MAX_DIGITS = 19
"""Of a number: as many as the greatest seed has."""

MAX_END_S = 20.0
"""How long a run may take to write what it has when the application ends."""
