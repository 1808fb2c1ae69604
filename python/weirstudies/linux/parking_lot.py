"""The parking lot of the study `linux`: bottlenecks in a row, a load over all of them, and one over each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirlab.scenario import LinkSpec, TestSpec, time_text

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, kw_only=True)
class ParkingLot:
    """Bottlenecks in a row.

    Attributes:
        title: what it is, in a line.
        bottlenecks: how many there are.
        rtt_ns: round trip over all of them when they are empty. Each has the same delay behind it as the way
            back has.
    """

    title: str
    bottlenecks: int
    rtt_ns: int

    @property
    def exit_rtt_ns(self) -> int:
        """Round trip over one empty bottleneck."""
        return 2 * self._delay_ns

    def test(self, name: str, duration_ns: int, starts: Sequence[int]) -> TestSpec:
        """A load and pings over all bottlenecks, a load over each, and pings over that in the middle."""
        servers = {"long": "end"} | {f"cross {one}": f"exit {one}" for one in self._names}
        flows = [
            {"name": flow, "direction": "up", "host": host, "start": time_text(start)}
            for (flow, host), start in zip(servers.items(), starts, strict=True)
        ]
        probes = [
            {"name": f"ping {host}", "kind": "icmp", "host": host, "stop": time_text(duration_ns)}
            for host in ("end", f"exit {self._names[self.bottlenecks // 2]}")
        ]
        routes = {"end": "all"} | {f"exit {one}": one for one in self._names}
        return TestSpec.model_validate(
            {
                "name": name,
                "title": f"Beside Linux: {self.title}",
                "phases": {"load": time_text(duration_ns)},
                "hosts": [{"name": host, "route": route} for host, route in routes.items()],
                "flows": flows,
                "probes": probes,
            }
        )

    def link(self, queue: str) -> LinkSpec:
        """The bottlenecks, each with this queue and the delay behind it, and the way back."""
        delay = time_text(self._delay_ns)
        return LinkSpec.model_validate(
            {
                "name": "linux-study",
                "title": self.title,
                "up": [{"name": name, "queue": queue, "delay": delay} for name in self._names],
                "down": [{"name": "back", "delay": delay}],
                "routes": {"all": {"up": self._names}} | {name: {"up": [name]} for name in self._names},
            }
        )

    @property
    def _names(self) -> list[str]:
        """Names of the bottlenecks, in the order in which the long load passes them."""
        return [chr(ord("a") + number) for number in range(self.bottlenecks)]

    @property
    def _delay_ns(self) -> int:
        return self.rtt_ns // (self.bottlenecks + 1)
