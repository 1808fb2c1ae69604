"""Flent's data file: its JSON, checked and brought to version 4 of the format.

Container: JSON in UTF-8, plain or packed by gzip or bzip2, told by its first bytes. Files may come from
strangers: sizes are bounded before anything is parsed. The versions differ in where single samples stand
and in their units; see `_upgraded`.
"""

from __future__ import annotations

import bz2
import json
import math
import re
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from weirlab.errors import RecordError
from weirlab.reading import Unreadable, read_bytes

if TYPE_CHECKING:
    from pathlib import Path

Point = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Document:
    """A data file of Flent as version 4 has it.

    Attributes:
        version: the version that the file has, 1 to 4.
        name: the test, such as `rrul_be`.
        t0_s: time of `x_values` 0, in seconds since 1970, UTC.
        step_s: time between two of `x_values`.
        length_s: how long the load lasts by the settings.
        total_s: how long the test lasts by the settings.
        x_values: times of `results`, in seconds since `t0_s`, rising.
        results: series on these times; None where there is no value.
        raw_values: single samples of series, each with `t` in seconds since 1970; sorted by it.
        series_meta: what the file says of each series.
        metadata: all other metadata, as it stands in the file.
        own: Weir's own block, if the file is from here; unchecked.
        fake_raw: whether `raw_values` are the interpolated `results`: files of version 1 without samples.
    """

    version: int
    name: str
    t0_s: float
    step_s: float
    length_s: float
    total_s: float
    x_values: list[float]
    results: dict[str, list[float | None]]
    raw_values: dict[str, list[Point]]
    series_meta: dict[str, dict[str, Any]]
    metadata: dict[str, Any]
    own: object = None
    fake_raw: bool = False


def read_document(path: Path) -> Document:
    """Reads a data file of Flent, of version 1 to 4, plain or packed.

    Raises:
        RecordError: if it is none, is damaged, too new, or too large.
    """
    try:
        return _document(_parsed(_unpacked(read_bytes(path, MAX_FILE_BYTES))))
    except Unreadable as error:
        raise RecordError(f"`{path}` cannot be read as a file of Flent: {error}") from error


def number(value: object) -> float | None:
    """`value` as a finite number; None if it is none, which is how a missing sample reads."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def is_text(text: str) -> bool:
    """Whether `text` can be written: JSON may escape halves of pairs of UTF-16, which are no characters."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def _unpacked(data: bytes) -> bytes:
    """The JSON text; no more than `MAX_TEXT_BYTES` of it are ever unpacked."""
    if data.startswith(b"\x1f\x8b"):
        return _inflated(data, gzip=True)
    if data.startswith(b"BZh"):
        return _inflated(data, gzip=False)
    if len(data) > MAX_TEXT_BYTES:
        raise _too_long()
    return data


def _inflated(data: bytes, *, gzip: bool) -> bytes:
    kind, first = ("gzip", b"\x1f\x8b") if gzip else ("bzip2", b"BZh")
    parts: list[bytes] = []
    size = at = streams = 0
    while at < len(data):
        # A packed file may be several packed streams behind each other.
        streams += 1
        if streams > MAX_STREAMS:
            raise Unreadable(f"its {kind} data is more than {MAX_STREAMS} streams behind each other")
        if not data.startswith(first, at):
            raise Unreadable(f"behind its {kind} data stands something else")
        stream: Any = zlib.decompressobj(wbits=31) if gzip else bz2.BZ2Decompressor()
        while not stream.eof:
            if at == len(data):
                raise Unreadable(f"its {kind} data ends too early")
            # What stands behind a stream is handed back as a copy: it is of a piece, not of all that is left.
            piece = data[at : at + PIECE_BYTES]
            try:
                part = stream.decompress(piece, MAX_TEXT_BYTES + 1 - size)
            except (zlib.error, OSError, ValueError) as error:
                raise Unreadable(f"its {kind} data is damaged: {error}") from error
            parts.append(part)
            size += len(part)
            if size > MAX_TEXT_BYTES:
                raise _too_long()
            at += len(piece) - len(stream.unused_data)
        at = _behind_zeros(data, at)
    return b"".join(parts)


def _behind_zeros(data: bytes, at: int) -> int:
    """Where the bytes of zero that stand at `at` end: tapes and disks pad files with them."""
    zeros = _ZEROS.match(data, at)
    return zeros.end() if zeros else at


def _too_long() -> Unreadable:
    return Unreadable(f"its text has more than {MAX_TEXT_BYTES >> 20} MiB")


def _parsed(text: bytes) -> dict[str, Any]:
    # Each of them becomes an object in memory: this bounds it before anything is parsed.
    values = text.count(b",") + text.count(b"[") + text.count(b"{")
    if values > MAX_VALUES:
        raise Unreadable(f"it has {values} values; {MAX_VALUES} are read at most")
    try:
        # NaN and Infinity are no JSON. Python writes them nevertheless: they are samples that are missing.
        found = json.loads(text.decode("utf-8"), parse_constant=lambda _: None)
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise Unreadable(f"it is not JSON: {error}") from error
    except RecursionError as error:
        raise Unreadable("its brackets are nested too deep") from error
    except ValueError as error:
        # A whole number of thousands of digits.
        raise Unreadable(f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Unreadable(f"it is JSON, but no object: {type(found).__name__}")
    return found


def _document(raw: dict[str, Any]) -> Document:
    version = _version(raw.get("version", 1))
    metadata = _object(raw, "metadata")
    name = metadata.get("NAME")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS or not is_text(name):
        raise Unreadable("its metadata has no NAME, which is the test")
    x_values = _x_values(raw.get("x_values"))
    results = _results(_object(raw, "results"), len(x_values))
    series_meta = {
        series: meta
        for series, meta in _object(metadata, "SERIES_META", optional=True).items()
        if isinstance(meta, dict)
    }
    raw_values, fake = _raw_values(raw, version, series_meta, x_values, results)
    t0 = _t0(metadata, raw_values)
    if fake:
        raw_values = {
            series: [{**point, "t": t0 + point["t"]} for point in points]
            for series, points in raw_values.items()
        }
    if version < 4:
        _upgraded(raw_values, series_meta, fake=fake)
    step = _setting(metadata, "STEP_SIZE", DEFAULT_STEP_S)
    if step < MIN_STEP_S:
        raise Unreadable(f"STEP_SIZE {step:g} s: the least is {MIN_STEP_S:g} s")
    reached = x_values[-1] if x_values else 0.0
    total = _setting(metadata, "TOTAL_LENGTH", reached)
    others = {key: value for key, value in metadata.items() if key != "SERIES_META"}
    return Document(
        version=version,
        name=name,
        t0_s=t0,
        step_s=step,
        length_s=min(_setting(metadata, "LENGTH", total), total),
        total_s=total,
        x_values=x_values,
        results=results,
        raw_values=raw_values,
        series_meta=series_meta,
        metadata=others,
        own=raw.get("weir"),
        fake_raw=fake,
    )


def _version(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 9:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Unreadable(f"its version is `{value}`, and should be 1 to {VERSION}")
    if value > VERSION:
        raise Unreadable(f"it has version {value} of the format; this Weir reads up to {VERSION}")
    return value


def _object(raw: dict[str, Any], key: str, *, optional: bool = False) -> dict[str, Any]:
    found = raw.get(key)
    if found is None and optional:
        return {}
    if not isinstance(found, dict):
        raise Unreadable(f"its `{key}` is missing or no object")
    return found


def _x_values(found: object) -> list[float]:
    if not isinstance(found, list):
        raise Unreadable("its `x_values` are missing or no list")
    if len(found) > MAX_STEPS:
        raise Unreadable(f"it has {len(found)} steps; {MAX_STEPS} are read at most")
    times: list[float] = []
    for place, value in enumerate(found):
        time = number(value)
        if time is None or not 0 <= time <= MAX_LENGTH_S:
            raise Unreadable(f"`x_values` {place} is `{value}`, and no time from 0 to {MAX_LENGTH_S} s")
        if times and time < times[-1]:
            raise Unreadable(f"`x_values` {place} goes back in time: {time:g} s is behind {times[-1]:g} s")
        times.append(time)
    return times


def _results(found: dict[str, Any], count: int) -> dict[str, list[float | None]]:
    if len(found) > MAX_SERIES:
        raise Unreadable(f"it has {len(found)} series; {MAX_SERIES} are read at most")
    results = {}
    for series, values in found.items():
        _check_name(series)
        if not isinstance(values, list):
            raise Unreadable(f"series `{series}` is no list")
        if len(values) != count:
            raise Unreadable(f"series `{series}` has {len(values)} values for {count} `x_values`")
        results[series] = [number(value) for value in values]
    return results


def _raw_values(
    raw: dict[str, Any],
    version: int,
    series_meta: dict[str, dict[str, Any]],
    x_values: list[float],
    results: dict[str, list[float | None]],
) -> tuple[dict[str, list[Point]], bool]:
    """The single samples, and whether they had to be made of the interpolated results."""
    if version == 1:
        found: dict[str, Any] = {
            series: meta.pop("RAW_VALUES") for series, meta in series_meta.items() if "RAW_VALUES" in meta
        }
        if not any(found.values()):
            faked: dict[str, list[Point]] = {
                series: [
                    {"t": x, "val": value}
                    for x, value in zip(x_values, values, strict=True)
                    if value is not None
                ]
                for series, values in results.items()
            }
            return faked, True
    else:
        found = _object(raw, "raw_values")
    if len(found) > MAX_SERIES:
        raise Unreadable(f"it has {len(found)} series; {MAX_SERIES} are read at most")
    return {series: _points(series, points) for series, points in found.items()}, False


def _points(series: str, points: object) -> list[Point]:
    _check_name(series)
    if points is None:
        return []
    if not isinstance(points, list):
        raise Unreadable(f"the samples of `{series}` are no list")
    kept: list[Point] = []
    for place, point in enumerate(points):
        if not isinstance(point, dict):
            raise Unreadable(f"sample {place} of `{series}` is no object")
        time = number(point.get("t"))
        if time is not None:
            kept.append({**point, "t": time})
    return sorted(kept, key=lambda point: float(point["t"]))


def _check_name(series: str) -> None:
    if len(series) > MAX_NAME_CHARS:
        raise Unreadable(f"a series has a name of {len(series)} characters; the most are {MAX_NAME_CHARS}")
    if not is_text(series):
        raise Unreadable("a series has a name that is no text: it has half of a pair of UTF-16")


def _upgraded(raw: dict[str, list[Point]], series_meta: dict[str, dict[str, Any]], *, fake: bool) -> None:
    """Brings samples of versions before 4 to its units, in place.

    Samples of netperf's UDP_RR were transactions a second and are round trips in ms since; those of HTTP were
    seconds and are ms. Made samples are results, which had these units always.
    """
    for series, points in raw.items():
        for point in () if fake else points:
            value = number(point.get("val"))
            if "UDP" in series and "dur" in point:
                point["val"] = 1e3 / value if value else None
            elif series == "HTTP latency" and value is not None:
                point["val"] = value * 1e3
    for meta in series_meta.values():
        mean = number(meta.get("MEAN_VALUE"))
        if meta.get("UNITS") == "bits/s":
            meta["UNITS"] = "Mbits/s"
            if mean is not None:
                meta["MEAN_VALUE"] = mean / 1e6


def _t0(metadata: dict[str, Any], raw: dict[str, list[Point]]) -> float:
    """Time of `x_values` 0. Old files have local times: their zone is told by the first sample."""
    first = min(
        (point["t"] for points in raw.values() for point in points if point["t"] > YEAR_2000), default=None
    )
    text = metadata.get("T0") or metadata.get("TIME")
    if text is None:
        if first is None:
            raise Unreadable("neither T0 nor TIME nor a sample says when it began")
        return float(first)
    try:
        time = datetime.fromisoformat(str(text))
        aware = time.tzinfo is not None
        seconds = (time if aware else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"its time `{text}` is none such as 2026-06-16T09:30:00.000000Z") from error
    if not aware and first is not None:
        seconds -= round((seconds - first) / ZONE_S) * ZONE_S
    return seconds


def _setting(metadata: dict[str, Any], key: str, default: float) -> float:
    """A length of time of the settings, in seconds."""
    value = metadata.get(key)
    if value is None:
        return default
    found = number(value)
    if found is None or not 0 <= found <= MAX_LENGTH_S:
        raise Unreadable(f"{key} is `{value}`, and no time from 0 to {MAX_LENGTH_S} s")
    return found


VERSION = 4
"""The newest version of the format: that of Flent 1.2 to 2.3."""

DEFAULT_STEP_S, MIN_STEP_S = 0.2, 1e-3
"""Flent's own step, and the least that is read."""

MAX_FILE_BYTES = 64 << 20
"""Bytes of a file; one minute of `rrul` takes 0.4 MB, an hour 25 MB."""

MAX_TEXT_BYTES = 192 << 20
"""Bytes of the text in it, unpacked."""

MAX_STREAMS = 10_000
"""Packed streams of a file; programs that pack in parallel make one of each 100 kB of text at the least."""

PIECE_BYTES = 8 << 10

MAX_VALUES = 8_000_000
"""Values in it: 1000 flows over a minute have 1 million. Each takes about 170 bytes of memory: 1.3 GB."""

MAX_STEPS = 1_000_000
"""As in Flent, which makes no more steps than that."""

MAX_SERIES = 20_000
"""1000 flows have 8000, with what the sockets told of each."""

MAX_NAME_CHARS = 300

MAX_LENGTH_S = 864_000
"""Ten days."""

ZONE_S = 900
"""Zones are off by whole quarters of an hour."""

YEAR_2000 = 946_684_800
"""Seconds since 1970: an earlier sample is one without a clock."""

_ZEROS = re.compile(rb"\0*")
