"""Shapers on random lines beside no shaper: rates, paths, buffers, loads and events that nobody tuned for.

A row is one mode of the controller on one line, in three spans of the load: before an event, from some
seconds after it began on, and after it is over. In each: ms more than on the idle line (without a shaper in
brackets), and the share of what each loaded way carries without a shaper. Marked are rows with a span of more
than half of the delay without a shaper, if that is more than 30 ms (`ms`), and with less than half of a way
(`up`, `down`). These are to be looked at: a single connection over a long path may take as long to grow, and
what acknowledgements that wait for nobody leave an upload is not what it had without a shaper.

Usage: tools/random_lines.py WEIR FIRST COUNT
"""

import json
import math
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

SPANS = ("8s..18s", "25s..36s", "46s..60s")
DURING = SPANS[1]
MODES = ("ping", "bandwidth")
EVENTS = ("none", "drop up", "drop down", "drop both", "rise up", "rise down", "longer path", "outage")
LOADS = ("up", "down", "both", "both", "one after another up", "one after another down")


@dataclass(frozen=True)
class Line:
    """A line, its load and what happens to it."""

    load: str
    event: str
    up_mbit: float
    down_mbit: float
    path_ms: float
    buffer_ms: float
    jitter_ms: float
    loss: float
    congestion_control: str
    is_vpn: bool
    flows: dict[str, int]
    begins_s: float
    ends_s: float
    factor: float
    longer_ms: float
    outage_s: float
    starts_s: tuple[float, ...]
    sizes: tuple[float, ...]

    @property
    def loaded(self) -> list[str]:
        """The ways that are loaded."""
        return [way for way in ("up", "down") if way in self.load or self.load == "both"]

    def __str__(self) -> str:
        """The line in words."""
        extra = f", jitter {self.jitter_ms:.0f} ms" if self.jitter_ms else ""
        extra += f", loss {self.loss:.2%}" if self.loss else ""
        extra += ", VPN" if self.is_vpn else ""
        return (
            f"{self.load} ({self.flows['up']} and {self.flows['down']} {self.congestion_control}), "
            f"{self.up_mbit:.1f}/{self.down_mbit:.1f} Mbit/s, {self.path_ms:.0f} ms, "
            f"buffer {self.buffer_ms:.0f} ms{extra}, {self.event}"
        )


def drawn(number: int) -> Line:
    """The line of this number."""
    source = random.Random(number)  # noqa: S311 - the same line for the same number

    def between(least: float, most: float) -> float:
        return math.exp(source.uniform(math.log(least), math.log(most)))

    up_mbit = between(0.8, 200)
    return Line(
        load=source.choice(LOADS),
        event=source.choice(EVENTS),
        up_mbit=up_mbit,
        down_mbit=between(max(2, up_mbit), min(1000, up_mbit * 20)),
        path_ms=between(4, 250),
        buffer_ms=between(20, 1500),
        jitter_ms=source.choice([0, 0, 0, between(1, 15)]),
        loss=source.choice([0, 0, 0, 0, between(1e-4, 1e-2)]),
        congestion_control=source.choice(["cubic"] * 4 + ["bbr", "reno"]),
        is_vpn=source.random() < 0.25,
        flows={way: source.choice([1, 1, 2, 4, 8, 16]) for way in ("up", "down")},
        begins_s=source.uniform(18, 24),
        ends_s=source.uniform(36, 42),
        factor=between(1.5, 50),
        longer_ms=between(3, 700),
        outage_s=between(0.3, 8),
        starts_s=tuple(9 * at + source.uniform(0, 2) for at in range(6)),
        sizes=tuple(between(0.5, 5) for _ in range(6)),
    )


def changes(line: Line, way: str, mbit: float) -> list[str]:
    """What happens to one way of the line, as entries of `changes`."""

    def at(seconds: float, what: str) -> str:
        return f'{{ at = "{seconds:.2f}s", {what} }}'

    usual = f'rate = "{mbit * 1e6:.0f}bit"'
    kind, _, ways = line.event.partition(" ")
    if kind in ("drop", "rise") and ways in (way, "both"):
        other = mbit / line.factor if kind == "drop" else mbit * line.factor
        return [at(line.begins_s, f'rate = "{max(0.3e6, other * 1e6):.0f}bit"'), at(line.ends_s, usual)]
    if kind == "longer":
        longer = (line.path_ms + line.longer_ms) / 2
        return [
            at(line.begins_s, f'delay = "{longer:.2f}ms"'),
            at(line.ends_s, f'delay = "{line.path_ms / 2:.2f}ms"'),
        ]
    if kind == "outage":
        return [at(line.begins_s, "down = true"), at(line.begins_s + line.outage_s, usual)]
    return []


def link(line: Line) -> str:
    """The link as a part of a scenario."""
    parts = ['[link]\nname = "random"\ntitle = "Random"\n']
    for way, mbit in (("up", line.up_mbit), ("down", line.down_mbit)):
        limit = max(6000, mbit * 1e6 / 8 * line.buffer_ms / 1e3)
        parts.append(
            f'[[link.{way}]]\nname = "{way}"\nqueue = "bfifo limit {limit:.0f}"\n'
            f'rate = "{mbit * 1e6:.0f}bit"\n'
            f'delay = "{line.path_ms / 2:.2f}ms"\njitter = "{line.jitter_ms:.2f}ms"\n'
        )
        if line.loss:
            parts.append(f'loss = {{ model = "random", probability = {line.loss:.6f} }}\n')
        parts.append(f"changes = [{', '.join(changes(line, way, mbit))}]\n")
    return "".join(parts)


def test(line: Line) -> str:
    """The test as a part of a scenario: what is loaded, and pings."""
    parts = ['[test]\nname = "random"\ntitle = "Random"\n[test.phases]\nload = "56s"\n']
    if line.is_vpn:
        parts.append('[[test.hosts]]\nname = "vpn"\ndelay = "2ms"\n[[test.hosts]]\nname = "server"\n')
        parts.append('[[test.tunnels]]\nname = "wireguard"\nkind = "wireguard"\nhost = "vpn"\n')
    tunnel = 'tunnel = "wireguard"\n' if line.is_vpn else ""
    for way in line.loaded:
        flow = f'[[test.flows]]\ndirection = "{way}"\ncount = {line.flows[way]}\n{tunnel}'
        if line.load.startswith("one"):
            mbit = line.up_mbit if way == "up" else line.down_mbit
            for number, (start, size) in enumerate(zip(line.starts_s, line.sizes, strict=True)):
                each = max(20, mbit * 1e3 / 8 * size / 2 / line.flows[way])
                parts.append(
                    f'{flow}name = "{way} {number}"\nstart = "{start:.1f}s"\nbytes = "{each:.0f}kb"\n'
                )
        else:
            parts.append(f'{flow}name = "{way}"\n')
    parts.append('[[test.probes]]\nname = "Ping (ms) ICMP"\nkind = "icmp"\n')
    return "".join(parts)


def scenario(number: int, line: Line, shapers: list[str]) -> str:
    """The whole scenario. What is asserted always holds: it is there for the figures that `--json` tells."""
    asserts = ["latency.median[idle] < 1000s"]
    for span in SPANS:
        asserts.append(f"latency.mean[{span}] < 1000s")
        asserts += [f"{way}.goodput[{span}] < 100gbit" for way in line.loaded]
    return (
        f'name = "random-{number}"\nshaper = {json.dumps(shapers)}\nassert = {json.dumps(asserts)}\n'
        f'[phases]\nidle = "4s"\nload = "56s"\n[tcp]\ncongestion_control = "{line.congestion_control}"\n'
        f"{test(line)}{link(line)}"
    )


def figures(weir: str, text: str) -> list[list[float]]:
    """What the assertions of each configuration found, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.toml"
        path.write_text(text)
        command = [weir, "run", str(path), "--no-charts", "--json", "--out", f"{folder}/out"]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
    if not said.stdout:
        raise SystemExit(f"{' '.join(command)}: {said.stderr}\n{text}")
    nothing = float("nan")
    return [
        [nothing if one["left"] is None else one["left"] for one in found]
        for found in json.loads(said.stdout)["assertions"].values()
    ]


def told(line: Line, shaped: list[float], without: list[float]) -> str:
    """One row: the three spans, and what is marked of them."""
    cells, marks = [], set()
    of_span = 1 + len(line.loaded)
    for span in range(len(SPANS)):
        at = 1 + of_span * span
        ms, usual_ms = shaped[at] - shaped[0], without[at] - without[0]
        # What the path takes longer by is there anyway.
        path_ms = line.longer_ms if line.event == "longer path" and SPANS[span] == DURING else 0
        if ms - path_ms > max(30, (usual_ms - path_ms) / 2):
            marks.add("ms")
        shares = []
        for place, way in enumerate(line.loaded, at + 1):
            share = shaped[place] / without[place] if without[place] > 0 else 1.0
            shares.append(f"{share:.2f}")
            if share < 0.5:
                marks.add(way)
        cells.append(f"{ms:.0f} ({usual_ms:.0f}) {' '.join(shares)}")
    return f"{','.join(sorted(marks)) or '-':10} {' | '.join(f'{cell:24}' for cell in cells)}"


def main(weir: str, first: int, count: int) -> None:
    """Runs these lines and prints a row for each mode."""
    spans = " | ".join(f"{f'{span}: ms (without), shares':24}" for span in SPANS)
    print(f"{'line':>5} {'mode':9} {'marked':10} {spans} | what it is", flush=True)
    for number in range(first, first + count):
        line = drawn(number)
        shapers = ["none", *(f"auto mode {mode}" for mode in MODES)]
        without, *shaped = figures(weir, scenario(number, line, shapers))
        for mode, found in zip(MODES, shaped, strict=True):
            print(f"{number:5} {mode:9} {told(line, found, without)} | {line}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
