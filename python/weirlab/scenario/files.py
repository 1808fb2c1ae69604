"""The files that scenarios name, as the compiled part asks for them; it reads none itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from weirlab import _native, reading
from weirlab.errors import UsageError
from weirlab.scenario.plain import load_trace, shipped_traces

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ResultT = TypeVar("ResultT")


class Files:
    """The files around, as the compiled part asks for them, with the limits of `weirlab.reading`.

    Attributes:
        traces: texts of the recordings that were asked for.
    """

    def __init__(self) -> None:
        """Has read nothing yet."""
        self.traces: dict[str, str] = {}
        self._rates_bps: dict[str, int] = {}

    def is_file(self, name: str) -> bool:
        """Whether there is a regular file of that name."""
        try:
            return Path(name).is_file()
        except (OSError, ValueError):
            # The name is too long, or has a zero byte in it.
            return False

    def named_in(self, file: str, name: str) -> str:
        """The path of what a file names: beside that file, or if nothing lies there from the working folder.

        Args:
            file: the path of the file that names it.
            name: what it says: a path, or the name of a shipped recording.

        Raises:
            UsageError: if nothing lies at either place, or a folder may not be searched.
        """
        return name if name in shipped_traces() else told(lambda: _native.named_in(file, name))

    def read(self, name: str) -> str:
        """The text of a TOML file.

        Raises:
            Unreadable: if it cannot be read.
        """
        return reading.read_named(name, reading.MAX_TOML_BYTES)

    def trace_rate_bps(self, name: str) -> int:
        """The mean rate of a recording.

        Raises:
            UsageError: if it cannot be read.
            NativeError: if it is none.
        """
        if name not in self._rates_bps:
            self.traces[name] = load_trace(name)
            packets, period_ms = _native.check_trace(name, self.traces[name])
            self._rates_bps[name] = round(packets * 1500 * 8e3 / period_ms)
        return self._rates_bps[name]


class FilesBelow(Files):
    """The files below a folder: for who must not open others."""

    def __init__(self, folder: Path) -> None:
        """Has read nothing yet."""
        super().__init__()
        self._folder = folder.resolve()

    def is_file(self, name: str) -> bool:
        """Whether there is a regular file of that name below the folder."""
        return super().is_file(name) and Path(name).resolve().is_relative_to(self._folder)

    def named_in(self, file: str, name: str) -> str:
        """The path of what a file names, as whoever may open all files finds it.

        Raises:
            UsageError: if it is no file below the folder; whether one is there elsewhere it does not say.
        """
        try:
            found = super().named_in(file, name)
        except UsageError:
            found = None
        if found is None or not (found in shipped_traces() or self.is_file(found)):
            beside = (Path(file).parent / name).parent
            raise UsageError(
                f"`{name}` is no file below {self._folder}: it would lie in `{beside}`, beside what names it"
            )
        return found

    def read(self, name: str) -> str:
        """The text of a TOML file below the folder.

        Raises:
            Unreadable: if it is not there, or cannot be read.
        """
        if not self.is_file(name):
            raise reading.Unreadable(f"it is no file below {self._folder}")
        return super().read(name)

    def trace_rate_bps(self, name: str) -> int:
        """The mean rate of a recording that is shipped or below the folder.

        Raises:
            UsageError: if it is elsewhere, or cannot be read.
            NativeError: if it is none.
        """
        if name not in shipped_traces() and not self.is_file(name):
            raise UsageError(f"trace `{name}`: it is no file below {self._folder}")
        return super().trace_rate_bps(name)


class _Asked(Files):
    """Whether it was asked for a file that is not shipped."""

    is_asked = False

    def named_in(self, file: str, name: str) -> str:
        """The name as it is."""
        del file
        self.is_asked |= name not in shipped_traces()
        return name


def told(call: Callable[[], ResultT]) -> ResultT:
    """The result of a call of the compiled part.

    Raises:
        UsageError: if it refuses what it was given.
    """
    try:
        return call()
    except _native.NativeError as error:
        raise UsageError(str(error)) from error


def name_files(written: Mapping[str, Any], file: str) -> dict[str, Any]:
    """What stands in a file, with paths of the files that it names.

    Args:
        written: what stands there.
        file: the path of the file.

    Raises:
        UsageError: if one of them lies nowhere.
    """
    found: dict[str, Any] = told(lambda: _native.name_files(written, file, Files()))
    return found


def names_files(written: Mapping[str, Any]) -> bool:
    """Whether what is written names files: tests, links or recordings that are not shipped."""
    files = _Asked()
    told(lambda: _native.name_files(written, "", files))
    return files.is_asked
