"""The compiled part of Weir: the simulator, the units and what is known of queues."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Literal, TypedDict, type_check_only

__all__ = [
    "InputError",
    "NativeError",
    "check_lab",
    "check_queue",
    "check_scenario",
    "check_simulation",
    "check_trace",
    "choose_shaper",
    "conformance",
    "congestion_controls",
    "detect_framing",
    "disciplines",
    "expand_queue",
    "framings",
    "lab",
    "markers",
    "measure",
    "methods",
    "missing",
    "parse_dscp",
    "parse_rate",
    "parse_size",
    "parse_time",
    "ping",
    "read_secret",
    "record_method",
    "replay_shaper",
    "rng_name",
    "run_method",
    "serve",
    "services",
    "shape",
    "shaper_status",
    "simulate",
    "stop_shaper",
    "tables",
    "tcp_profiles",
]

class NativeError(ValueError): ...
class InputError(NativeError): ...

@type_check_only
class Param(TypedDict):
    name: str
    aliases: list[str]
    unit: str
    default: str
    meaning: str

@type_check_only
class Discipline(TypedDict):
    name: str
    summary: str
    source: str
    preset: bool
    classful: bool
    params: list[Param]
    class_params: list[Param]

@type_check_only
class Marker(TypedDict):
    name: str
    summary: str
    source: str
    params: list[Param]

@type_check_only
class CongestionControl(TypedDict):
    name: str
    summary: str
    source: str

@type_check_only
class Method(TypedDict):
    name: str
    summary: str
    server_kind: str | None
    needs_tls: bool

@type_check_only
class Service(TypedDict):
    name: str
    summary: str

@type_check_only
class Framing(TypedDict):
    overhead_bytes: int
    minimum_bytes: int
    cells: str

@type_check_only
class Column(TypedDict):
    name: str
    kind: Literal["integer", "float", "text"]
    nullable: bool
    meaning: str
    since: int
    family: str | None

@type_check_only
class Table(TypedDict):
    name: str
    meaning: str
    columns: list[Column]

@type_check_only
class Outcome(TypedDict):
    reached_ns: int
    complete: bool
    events: int
    packets: int

def check_lab(scenario: str) -> None: ...
def check_queue(text: str, rate_bps: int | None) -> None: ...
def check_scenario(scenario: str) -> None: ...
def check_simulation(scenario: str) -> None: ...
def check_trace(name: str, text: str) -> tuple[int, int]: ...
def conformance(text: str) -> tuple[str, str, str]: ...
def choose_shaper(settings: str) -> str: ...
def congestion_controls() -> list[CongestionControl]: ...
def detect_framing(device: str) -> str: ...
def disciplines() -> list[Discipline]: ...
def expand_queue(text: str, rate_bps: int | None) -> str | None: ...
def framings() -> dict[str, Framing]: ...
def lab(request: str, show: Callable[[str], bool]) -> str: ...
def markers() -> list[Marker]: ...
def missing(host: str, secret: str | None) -> str | None: ...
def methods() -> list[Method]: ...
def parse_dscp(text: str) -> int: ...
def parse_rate(text: str) -> int: ...
def measure(
    request: str,
    manifest: str,
    folder: str | PathLike[str],
    progress: Callable[[int], bool] | None,
    speed_test: Callable[[], str | None] | None = None,
) -> bool: ...
def parse_size(text: str) -> int: ...
def parse_time(text: str) -> int: ...
def ping(
    request: str,
    told: Callable[
        [int, list[tuple[int, int, int | None, int, str | None, tuple[int, int] | None]], list[int]], bool
    ],
) -> None: ...
def read_secret(file: str | PathLike[str]) -> str: ...
def record_method(manifest: str, folder: str | PathLike[str], speed_test: str) -> None: ...
def replay_shaper(log: str, mode: str | None, show: Callable[[str], object]) -> tuple[int, int, int]: ...
def rng_name() -> str: ...
def run_method(request: str, progress: Callable[[int], bool] | None) -> str: ...
def services() -> list[Service]: ...
def serve(words: list[str]) -> tuple[int, str]: ...
def shape(settings: str, seed: int, show: Callable[[str], str]) -> int: ...
def shaper_status(device: str) -> str: ...
def simulate(
    manifest: str,
    traces: Mapping[str, str],
    folder: str | PathLike[str],
    progress: Callable[[int], bool] | None,
) -> Outcome: ...
def stop_shaper(device: str) -> str: ...
def tables() -> list[Table]: ...
def tcp_profiles() -> list[str]: ...
