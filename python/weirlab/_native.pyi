"""The compiled part of Weir: the simulator, the units and what is known of queues."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, final, type_check_only

__all__ = [
    "InputError",
    "NativeError",
    "Prover",
    "Ramp",
    "Resolved",
    "ResolvedConfiguration",
    "Server",
    "SpeedTest",
    "bounds",
    "bufferbloat_grades",
    "bufferbloat_score",
    "cautions",
    "check_lab",
    "check_queue",
    "check_simulation",
    "check_trace",
    "choose_shaper",
    "conformance",
    "congestion_controls",
    "disciplines",
    "dscp_name",
    "expand_queue",
    "find_server",
    "fit_test",
    "host_and_port",
    "host_in",
    "join_paths",
    "lab",
    "line_rate",
    "load_link",
    "load_test",
    "markers",
    "mean_rate",
    "measure",
    "met_limit_mbps",
    "methods",
    "name_files",
    "named_in",
    "nearest",
    "offer",
    "parse_dscp",
    "path_shares",
    "ping",
    "plan_test",
    "read_quantity",
    "read_rate",
    "read_scenario",
    "read_scenario_in",
    "read_scenario_or_test",
    "read_secret",
    "read_shaper_config",
    "read_shaper_rules",
    "read_shaper_settings",
    "read_spec",
    "read_table",
    "read_time",
    "record_method",
    "remarks",
    "replay_shaper",
    "resolve_scenario",
    "rng_name",
    "run_method",
    "scenario_schema",
    "serve",
    "services",
    "shape",
    "shaper_decision_line",
    "shaper_metrics",
    "shaper_rules_text",
    "shaper_schemas",
    "shaper_status",
    "shaper_view_words",
    "shipped_links",
    "shipped_rules",
    "shipped_tests",
    "simulate",
    "simulate_packets",
    "simulate_rows",
    "stop_shaper",
    "tables",
    "tcp_profiles",
    "thinned",
    "unmeasured",
    "version",
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
class KnownBy(TypedDict):
    path: str
    statuses: list[int]
    key: str | None

@type_check_only
class Caution(TypedDict):
    figure: list[str]
    says: str

@type_check_only
class ResultField(TypedDict):
    name: str
    kind: Literal["boolean", "integer", "float", "text", "texts", "object"]
    object: ResultObject | None
    nullable: bool
    meaning: str

@type_check_only
class ResultObject(TypedDict):
    name: str
    meaning: str
    fields: list[ResultField]

@type_check_only
class Method(TypedDict):
    name: str
    summary: str
    server_kind: str | None
    congestion_control: str | None
    known_by: KnownBy | None
    cautions: list[Caution]
    needs_tls: bool
    result: ResultObject

@type_check_only
class Service(TypedDict):
    name: str
    summary: str

@type_check_only
class ShaperChoice(TypedDict):
    backend: Literal["kernel", "userspace"]
    why: str
    beginning: str
    plan: list[str]
    cautions: list[str]
    queues: list[str | None]

@type_check_only
class Proof(TypedDict):
    figures: str
    lines: list[str]
    remark: str | None
    verdict: str | None

@type_check_only
class Column(TypedDict):
    name: str
    kind: Literal["integer", "float", "text"]
    nullable: bool
    meaning: str
    since: int
    family: str | None

@type_check_only
class Bounds(TypedDict):
    min_ping_period_ns: int
    max_pings: int
    max_ping_payload_bytes: int
    max_seed: int
    max_client_paths: int
    max_faults: int
    max_quoted_chars: int
    max_shown_chars: int

@type_check_only
class Table(TypedDict):
    name: str
    meaning: str
    of_each: Literal["run", "moment", "interval"]
    columns: list[Column]

@type_check_only
class Outcome(TypedDict):
    reached_ns: int
    complete: bool
    events: int
    packets: int

_Values: TypeAlias = tuple[bytes | tuple[bytes, list[str]], bytes | None]

@type_check_only
class OutcomeRows(Outcome):
    tables: dict[str, dict[str, _Values]]

@type_check_only
class _Files(Protocol):
    def is_file(self, name: str) -> bool: ...
    def named_in(self, file: str, name: str) -> str: ...
    def read(self, name: str) -> str: ...
    def trace_rate_bps(self, name: str) -> int: ...

@final
class ResolvedConfiguration:
    @property
    def link(self) -> dict[str, Any]: ...
    @property
    def link_words(self) -> dict[str, Any]: ...
    @property
    def queue(self) -> str: ...
    @property
    def cc(self) -> str | None: ...
    @property
    def words(self) -> dict[str, Any]: ...
    @property
    def scenario(self) -> str: ...

@final
class Resolved:
    @property
    def test(self) -> dict[str, Any]: ...
    @property
    def test_words(self) -> dict[str, Any]: ...
    @property
    def configurations(self) -> list[ResolvedConfiguration]: ...
    @property
    def seeds(self) -> list[int]: ...

@final
class SpeedTest:
    def __new__(cls, *, name: str, kind: str, began_ns: int, ended_ns: int, result: str) -> SpeedTest: ...

@final
class Ramp: ...

@final
class Server: ...

@final
class Prover:
    def __new__(cls, *, rounds: int, measure_ns: int, max_cost: float, own_traffic: bool) -> Prover: ...
    @property
    def plan(self) -> str: ...
    @property
    def total_ns(self) -> int: ...
    @property
    def is_past_load(self) -> bool: ...
    @property
    def has_ended(self) -> bool: ...
    def check_time(self, time_ns: int | None) -> None: ...
    def step(self, view: str) -> Literal["continue", "open", "shape", "stop"]: ...
    def proof(self) -> Proof: ...

def bounds() -> Bounds: ...
def bufferbloat_grades() -> list[tuple[str, float, str]]: ...
def bufferbloat_score(increase_ms: float, limit_mbps: float | None) -> tuple[str, str, str]: ...
def cautions(notes: str) -> list[str]: ...
def check_lab(scenario: str) -> None: ...
def check_queue(text: str, rate_bps: int | None) -> None: ...
def check_simulation(scenario: str) -> None: ...
def check_trace(name: str, text: str) -> tuple[int, int]: ...
def conformance(text: str) -> tuple[str, str, str]: ...
def choose_shaper(settings: str) -> ShaperChoice: ...
def congestion_controls() -> list[CongestionControl]: ...
def disciplines() -> list[Discipline]: ...
def dscp_name(dscp: int) -> str | None: ...
def find_server(server: str) -> Server: ...
def expand_queue(text: str, rate_bps: int | None) -> str | None: ...
def join_paths(paths: list[tuple[str, str]]) -> str: ...
def line_rate(link: object, direction: str) -> int | None: ...
def load_link(name: str, files: _Files) -> dict[str, Any]: ...
def load_test(name: str, files: _Files) -> dict[str, Any]: ...
def mean_rate(link: object, direction: str, files: _Files) -> int | None: ...
def met_limit_mbps(notes: str, down_mbps: float | None, up_mbps: float | None) -> float | None: ...
def name_files(written: object, file: str, files: _Files) -> Any: ...
def named_in(file: str, name: str) -> str: ...
def nearest(word: str, known: list[str]) -> str | None: ...
def path_shares(reconfiguration: str, hop: str, seed: int, end_ns: int) -> list[tuple[int, float]]: ...
def read_quantity(kind: str, written: object) -> int | str: ...
def read_rate(written: object) -> int: ...
def read_scenario(text: str, file: str, place: str, files: _Files) -> dict[str, Any]: ...
def read_scenario_in(written: object, file: str, place: str, files: _Files) -> dict[str, Any]: ...
def read_scenario_or_test(text: str, place: str, link: object, files: _Files) -> dict[str, Any] | None: ...
def read_spec(kind: str, written: object, place: str, names: list[tuple[str, str]]) -> dict[str, Any]: ...
def read_table(
    table: str, parts: Sequence[bytes], max_rows: int, wanted: Sequence[str] | None = None
) -> dict[str, _Values] | None: ...
def thinned(
    table: str, parts: Sequence[bytes], max_rows: int, spans: Sequence[tuple[int, int]]
) -> list[tuple[bytes, int]] | None: ...
def read_time(written: object) -> int: ...
def remarks(scenario: object, files: _Files) -> list[str]: ...
def resolve_scenario(scenario: object, files: _Files) -> Resolved: ...
def scenario_schema() -> dict[str, Any]: ...
def shipped_links() -> list[str]: ...
def shipped_tests() -> list[str]: ...
def lab(request: str, show: Callable[[str], bool]) -> str: ...
def markers() -> list[Marker]: ...
def offer(
    server: Server, secret: str | None
) -> tuple[str, None] | tuple[None, tuple[str, int, list[str]]]: ...
def fit_test(
    load: str, cc: str, limits: tuple[str, int, list[str]], is_load_given: bool
) -> tuple[str, str | None]: ...
def unmeasured(
    phases: Sequence[tuple[str, int, int]],
    reached_ns: int,
    answers: Sequence[tuple[int, int]],
    data: tuple[Sequence[int], Sequence[int]],
    pinged: Sequence[str],
) -> tuple[list[str], str | None]: ...
def methods() -> list[Method]: ...
def plan_test(
    *, idle: str, load: str, ping: str, max_flows: int, cc: str, locate: bool
) -> tuple[str, Ramp]: ...
def parse_dscp(text: str) -> int: ...
def measure(
    manifest: str,
    folder: str | PathLike[str],
    progress: Callable[[int], bool] | None,
    *,
    hosts: Sequence[str],
    secret: str | None,
    ip: int | None = None,
    ramp: Ramp | None = None,
    speed_test: Callable[[], SpeedTest | None] | None = None,
) -> bool: ...
def ping(
    told: Callable[
        [int, list[tuple[int, int, int | None, int, str | None, tuple[int, int] | None]], list[int]], bool
    ],
    *,
    address: str,
    scope: int,
    port: int,
    method: str,
    secret: str | None,
    payload_bytes: int,
    dscp: int,
    ttl: int | None,
    period_ns: int,
    count: int | None,
    timeout_ns: int,
) -> None: ...
def read_secret(file: str | PathLike[str]) -> str: ...
def record_method(manifest: str, folder: str | PathLike[str], speed_test: SpeedTest) -> None: ...
def host_and_port(written: str) -> tuple[str, int]: ...
def host_in(written: str) -> str: ...
def read_shaper_config(file: str | PathLike[str]) -> dict[str, Any]: ...
def read_shaper_rules(name: str) -> str: ...
def read_shaper_settings(
    device: str, config: str | PathLike[str] | None, given: Mapping[str, Any]
) -> str: ...
def shaper_decision_line(line: str) -> str: ...
def shaper_metrics(view: str) -> str: ...
def shaper_rules_text(name: str) -> str: ...
def shaper_schemas() -> dict[str, dict[str, Any]]: ...
def shaper_view_words(view: str) -> tuple[str, str, list[str], list[str], int | None]: ...
def shipped_rules() -> list[str]: ...
def replay_shaper(log: str, mode: str | None, show: Callable[[str], object]) -> tuple[int, int, int]: ...
def rng_name() -> str: ...
def run_method(
    method: str, url: str, *, secret: str | None, verify: bool, progress: Callable[[int], bool] | None
) -> str: ...
def services() -> list[Service]: ...
def serve(words: list[str]) -> tuple[int, str]: ...
def shape(settings: str, seed: int, show: Callable[[str], str]) -> tuple[int, str | None]: ...
def shaper_status(device: str) -> str: ...
def simulate(
    manifest: str,
    traces: Mapping[str, str],
    folder: str | PathLike[str],
    progress: Callable[[int], bool] | None,
) -> Outcome: ...
def simulate_packets(
    scenario: str,
    seed: int,
    traces: Mapping[str, str],
    hops: list[str],
    arrivals: bool,
    snap_len: int | None,
    file: str | PathLike[str],
    progress: Callable[[int], bool] | None,
) -> Outcome: ...
def simulate_rows(
    scenario: str,
    seed: int,
    traces: Mapping[str, str],
    progress: Callable[[int], bool] | None,
) -> OutcomeRows: ...
def stop_shaper(device: str) -> None: ...
def tables() -> list[Table]: ...
def tcp_profiles() -> list[str]: ...
def version() -> str: ...
