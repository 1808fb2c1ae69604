"""Shapers: from what was written to what a world runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirlab.errors import UsageError
from weirlab.scenario.catalogue import check
from weirlab.scenario.models import ShaperSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weirlab.scenario.models import Direction, RatesSpec, ReflectorSpec, TroubleSpec

NO_SHAPER = "none"
SHAPER_QUEUE = "fq_codel"
"""The queue of a shaper for which none is named: that of sqm-scripts' default."""


def read_shaper(written: str | ShaperSpec) -> ShaperSpec | None:
    """The shaper that was written: None for `none`, a control with words such as `auto mode bandwidth`.

    Raises:
        UsageError: if it is none.
    """
    if isinstance(written, ShaperSpec):
        return written
    control, *words = written.split()
    if control == NO_SHAPER and not words:
        return None
    said: dict[str, Any] = {"control": control}
    while words:
        word = words.pop(0)
        if word == "passive":
            said[word] = True
        elif word in _WORDS and words:
            said[word] = _WORDS[word](words.pop(0))
        else:
            known = ", ".join([*_WORDS, "passive"])
            raise UsageError(f"shaper `{written}`: `{word}` needs a value, or is none of its words ({known})")
    return check(ShaperSpec, said, f"shaper `{written}`")


def _rates(word: str) -> dict[str, str]:
    """`20mbit` or `95%`, or least, usual and greatest rate as `5mbit:20mbit:80mbit`."""
    parts = word.split(":")
    return {"rate": word} if len(parts) == 1 else dict(zip(("min", "base", "max"), parts, strict=False))


_WORDS: Mapping[str, Callable[[str], object]] = {"mode": str, "probe": str, "up": _rates, "down": _rates}


def shaper_name(written: str | ShaperSpec) -> str:
    """Name of the shaper that tells it apart from others, for people."""
    if isinstance(written, str):
        return written
    said: list[str] = [written.control]
    said += ["mode bandwidth"] if written.control == "auto" and written.mode == "bandwidth" else []
    said += [f"probe {written.probe}"] if written.control != "fixed" and written.probe != "icmp" else []
    said += ["passive"] if written.passive else []
    ways = {"up": written.up.rate, "down": written.down.rate} if written.control == "auto" else {}
    said += [f"{way} {rate}" for way, rate in ways.items() if rate is not None]
    return " ".join(said)


def resolve_shaper(
    shaper: ShaperSpec, first_host: int, line_rate: Callable[[Direction], int | None]
) -> dict[str, Any]:
    """The shaper as worlds take it; its reflectors are the servers from `first_host` on."""
    probing = shaper.control != "fixed" and shaper.probe != "none"
    return {
        "control": _control(shaper, line_rate),
        "probe": shaper.probe if probing else "none",
        "reflectors": [
            _reflector(reflector, first_host + number)
            for number, reflector in enumerate(shaper.reflectors if probing else [])
        ],
        "passive": shaper.passive,
        "sleeps": [{"from_ns": sleep.start, "to_ns": sleep.stop} for sleep in shaper.sleeps],
    }


def reflector_hosts(shaper: ShaperSpec) -> list[dict[str, Any]]:
    """The servers that answer its probes."""
    return [
        {"name": f"reflector {number}", "delay_ns": reflector.delay}
        for number, reflector in enumerate(shaper.reflectors, 1)
    ]


def _control(shaper: ShaperSpec, line_rate: Callable[[Direction], int | None]) -> dict[str, Any]:
    if shaper.control == "auto":
        return {
            "auto": {
                "mode": shaper.mode,
                "egress_bps": _set(shaper, "up", line_rate),
                "ingress_bps": _set(shaper, "down", line_rate),
                "egress_max_bps": shaper.up.max,
                "ingress_max_bps": shaper.down.max,
            }
        }
    if shaper.control == "fixed":
        return {
            "fixed": {
                "egress_bps": _fixed(shaper, "up", line_rate),
                "ingress_bps": _fixed(shaper, "down", line_rate),
            }
        }
    return {
        "cake_autorate": {
            "egress": _bounds("up", shaper.up),
            "ingress": _bounds("down", shaper.down),
        }
    }


def _fixed(
    shaper: ShaperSpec, direction: Direction, line_rate: Callable[[Direction], int | None]
) -> int | None:
    rate = _set(shaper, direction, line_rate)
    if rate is None and direction in shaper.directions:
        raise UsageError(f"shaper `fixed`: `{direction}` has no `rate`: write one, such as 95%")
    return rate


def _set(
    shaper: ShaperSpec, direction: Direction, line_rate: Callable[[Direction], int | None]
) -> int | None:
    """The rate at which a direction stays, if it is shaped and one was named."""
    rate = (shaper.up if direction == "up" else shaper.down).rate
    if direction not in shaper.directions or rate is None:
        return None
    if isinstance(rate, int):
        return rate
    line = line_rate(direction)
    if line is None:
        raise UsageError(f"shaper `{shaper.control}`: `{direction}` {rate} of a line without a rate")
    return round(line * float(rate.removesuffix("%")) / 100)


def _bounds(direction: Direction, rates: RatesSpec) -> dict[str, int]:
    if rates.min is None or rates.base is None or rates.max is None:
        raise UsageError(
            f"shaper `cake-autorate`: `{direction}` needs `min`, `base` and `max`: 5mbit:20mbit:80mbit"
        )
    return {"min_bps": rates.min, "base_bps": rates.base, "max_bps": rates.max}


def _reflector(reflector: ReflectorSpec, host: int) -> dict[str, Any]:
    return {
        "host": host,
        "loss": reflector.loss,
        "troubles": [
            {"during": {"from_ns": one.start, "to_ns": one.stop}, "what": _trouble(one)}
            for one in reflector.troubles
        ],
    }


def _trouble(trouble: TroubleSpec) -> str | dict[str, int]:
    if trouble.late is not None:
        return {"late_ns": trouble.late}
    if trouble.erratic is not None:
        return {"erratic_ns": trouble.erratic}
    if trouble.clock is not None:
        return {"clock_ns": trouble.clock}
    return "silent"
