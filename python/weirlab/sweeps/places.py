"""Where the files of a store lie: a folder of this machine, or an object store such as S3.

A file has a name such as `runs/part-1.parquet`, appears under it only when whole, and is not changed: the
manifest apart, which is written anew.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from weirlab.errors import UsageError, WriteError
from weirlab.writing import replaced

if TYPE_CHECKING:
    from collections.abc import Callable


class Place(Protocol):
    """Where the files of a store lie.

    Attributes:
        name: what messages call it: the path or the URL as it was given.
        pause_s: how long is waited in seconds before it is looked at anew because what it listed has gone.
    """

    name: str
    pause_s: float

    def exists(self) -> bool:
        """Whether anything is there."""
        ...

    def names(self, folder: str) -> list[str]:
        """Names of the files in a folder, sorted.

        Raises:
            UsageError: if it cannot be read.
        """
        ...

    def file(self, name: str) -> Path:
        """A file of this machine with the content of that one, which is not changed any more.

        Raises:
            FileNotFoundError: if it is not there.
            UsageError: if it cannot be read.
        """
        ...

    def has(self, name: str) -> bool:
        """Whether a file is there now, listed or not.

        Raises:
            UsageError: if it cannot be told.
        """
        ...

    def read(self, name: str) -> bytes | None:
        """What stands in a file now; None if it is not there.

        Raises:
            UsageError: if it cannot be read.
        """
        ...

    def put(self, name: str, write: Callable[[Path], object]) -> None:
        """Writes a file: `write` makes its content at a path of this machine.

        Raises:
            UsageError: if it may not be written there.
            WriteError: if it cannot be written for now, as on a full disk or with a network that is down.
        """
        ...

    def remove(self, name: str) -> None:
        """Removes a file; one that is not there any more is no error."""
        ...


def place_of(said: str | Path) -> Place:
    """The place that a path or a URL means: `s3://BUCKET/NAME`, `gs://BUCKET/NAME`, `file:///PATH`.

    Raises:
        UsageError: if the URL is none of these or was made a path, a folder's name is not UTF-8, or there is
            no package for object stores.
    """
    text = str(said)
    scheme, mark, _ = text.partition("://")
    if isinstance(said, Path) and said.parts and said.parts[0] in {f"{one}:" for one in SCHEMES}:
        raise UsageError(f"`{said}`: give a URL as a text: as a path it has lost a slash")
    if isinstance(said, Path) or not mark:
        return Folder(Path(said))
    if scheme == "file":
        return Folder(_path_in(text))
    if scheme not in SCHEMES:
        raise UsageError(f"`{text}`: a store is a folder or one of {', '.join(f'{s}://' for s in SCHEMES)}")
    return Objects(text)


class Folder:
    """A folder of this machine, or of a disk that it shares with others."""

    pause_s = 0.0

    def __init__(self, path: Path) -> None:
        """The folder at `path`, which need not be there.

        Raises:
            UsageError: if its name is not UTF-8: what reads and writes tables takes no other.
        """
        self.path, self.name = path, str(path)
        try:
            str(path.absolute()).encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"`{path}`: a store has a name in UTF-8") from error

    def exists(self) -> bool:
        """Whether anything is there.

        Raises:
            UsageError: if something else than a folder is.
        """
        try:
            if self.path.exists() and not self.path.is_dir():
                raise UsageError(f"`{self.path}` is no folder: a store is a folder")
            return self.path.is_dir() and any(self.path.iterdir())
        except OSError as error:
            raise UsageError(f"`{self.path}` cannot be read: {error.strerror or error}") from error

    def names(self, folder: str) -> list[str]:
        """Names of the files in a folder, without those that are being written."""
        found = (self.path / folder).glob("*")
        return sorted(f"{folder}/{one.name}" for one in found if not one.name.startswith("."))

    def file(self, name: str) -> Path:
        """The file itself."""
        return self.path / name

    def has(self, name: str) -> bool:
        """Whether a file is there."""
        return (self.path / name).exists()

    def read(self, name: str) -> bytes | None:
        """What stands in a file."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            raise UsageError(f"`{self.path}` is no folder: a store is a folder") from error
        except OSError as error:
            raise UsageError(f"`{self.path / name}` cannot be read: {error.strerror}") from error

    def put(self, name: str, write: Callable[[Path], object]) -> None:
        """Writes a file, which is there as a whole or not at all."""
        replaced(self.path / name, write)

    def remove(self, name: str) -> None:
        """Removes a file."""
        (self.path / name).unlink(missing_ok=True)


class Objects:
    """An object store, through the package obstore.

    Requests that fail by the network or the server, `503 SlowDown` among them, are made again for
    `RETRY_S` with growing pauses. Where lists lag behind what was written, the files that this process has
    written are there all the same, and so are those that the manifest names.
    """

    pause_s = 0.5

    def __init__(self, url: str) -> None:
        """The object store at `url`, with the keys of the environment, such as AWS_ACCESS_KEY_ID.

        Raises:
            UsageError: if the package is missing, or the URL or a variable cannot be used.
        """
        self.name = url
        self._objects = _opened(url)
        self._written: set[str] = set()
        self._removed: set[str] = set()

    def exists(self) -> bool:
        """Whether any object is there."""
        return next(iter(self._listed("")), None) is not None

    def names(self, folder: str) -> list[str]:
        """Names of the objects in a folder, and those that this process has written."""
        own = {name for name in self._written if name.startswith(f"{folder}/")}
        return sorted({*self._listed(folder), *own} - self._removed)

    def file(self, name: str) -> Path:
        """A copy in the folder for temporary files, which is fetched once."""
        copy = _copies(self.name) / name
        if not copy.exists():
            content = self.read(name)
            if content is None:
                # Somebody else has joined it with others.
                self._written.discard(name)
                raise FileNotFoundError(name)
            replaced(copy, lambda path: path.write_bytes(content))
        return copy

    def has(self, name: str) -> bool:
        """Whether an object is there now."""
        import obstore  # noqa: PLC0415 - an extra

        try:
            obstore.head(self._objects, name)
        except FileNotFoundError:
            return False
        except obstore.exceptions.BaseError as error:
            raise UsageError(f"`{self.name}/{name}` cannot be read: {_said(error)}") from error
        return True

    def read(self, name: str) -> bytes | None:
        """What stands in an object now."""
        import obstore  # noqa: PLC0415 - an extra

        try:
            return bytes(obstore.get(self._objects, name).bytes())
        except FileNotFoundError:
            return None
        except obstore.exceptions.BaseError as error:
            raise UsageError(f"`{self.name}/{name}` cannot be read: {_said(error)}") from error

    def put(self, name: str, write: Callable[[Path], object]) -> None:
        """Writes an object, which object stores show as a whole or not at all."""
        import obstore  # noqa: PLC0415 - an extra

        with tempfile.TemporaryDirectory(prefix="weir-store-") as folder:
            content = Path(folder) / "content"
            try:
                write(content)
                obstore.put(self._objects, name, content)
            except (FileNotFoundError, obstore.exceptions.BaseError, OSError) as error:
                raise self._cannot_write(name, error) from error
        self._written.add(name)
        self._removed.discard(name)

    def remove(self, name: str) -> None:
        """Removes an object."""
        import obstore  # noqa: PLC0415 - an extra

        try:
            obstore.delete(self._objects, name)
        except FileNotFoundError:
            pass
        except (obstore.exceptions.BaseError, OSError) as error:
            raise self._cannot_write(name, error) from error
        self._removed.add(name)
        self._written.discard(name)

    def _listed(self, folder: str) -> list[str]:
        import obstore  # noqa: PLC0415 - an extra

        try:
            stream = obstore.list(self._objects, prefix=folder or None)
            return [one["path"] for batch in stream for one in batch]
        except (FileNotFoundError, obstore.exceptions.BaseError) as error:
            raise UsageError(f"`{self.name}` cannot be listed: {_said(error)}") from error

    def _cannot_write(self, name: str, error: Exception) -> UsageError | WriteError:
        """The error of an object that cannot be written: wrong input if it is refused, else a failure."""
        import obstore  # noqa: PLC0415 - an extra

        says = f"`{self.name}/{name}` cannot be written: {_said(error)}"
        refused = (
            FileNotFoundError,
            obstore.exceptions.PermissionDeniedError,
            obstore.exceptions.UnauthenticatedError,
        )
        return UsageError(says) if isinstance(error, refused) else WriteError(says)


def _opened(url: str) -> Any:
    """The object store at that URL.

    Raises:
        UsageError: if the package is missing, or the URL or a variable of the environment cannot be used.
    """
    try:
        import obstore.store  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(
            f"`{url}`: object stores need the package obstore: `pip install 'weirlab[objects]'`"
        ) from error
    try:
        return obstore.store.from_url(
            url, retry_config={"max_retries": MAX_RETRIES, "retry_timeout": _span(RETRY_S)}
        )
    except (obstore.exceptions.BaseError, ValueError) as error:
        raise UsageError(f"`{url}` cannot be used as a store: {_said(error)}") from error


def _span(seconds: float) -> Any:
    from datetime import timedelta  # noqa: PLC0415 - for this alone

    return timedelta(seconds=seconds)


@cache
def _copies(url: str) -> Path:
    """The folder of copies of the objects below that URL: until this process ends, since frames read them."""
    del url
    folder = tempfile.mkdtemp(prefix="weir-objects-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _path_in(url: str) -> Path:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = None
    if parts is None or parts.netloc not in {"", "localhost"} or not parts.path:
        raise UsageError(f"`{url}`: write `file:///PATH`, of a folder of this machine")
    return Path(unquote(parts.path))


def _said(error: Exception) -> str:
    """The first paragraph of what went wrong, in one line."""
    said = " ".join(str(error).split("\n\n", maxsplit=1)[0].split())
    if "http://" in said and said.endswith("builder error"):
        return f"{said}: a server without TLS is asked only with AWS_ALLOW_HTTP=true in the environment"
    return said


def wait_for(place: Place) -> None:
    """Waits a moment before a place is looked at anew."""
    if place.pause_s:
        time.sleep(place.pause_s)


SCHEMES = ("s3", "gs", "file")
"""URLs of stores."""

MAX_RETRIES = 12
"""How often a request is made again, at most."""

RETRY_S = 90.0
"""How long a request is made again: longer than object stores throttle a client that waits."""
