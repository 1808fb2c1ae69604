"""Quantities: a time or a rate is never a bare number, wherever it is written."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import method_results
import scenario_models
import weirlab
from weirlab import _native
from weirlab.cli import weir
from weirlab.errors import UsageError
from weirlab.net.plan import TestPlan, plan_test
from weirlab.record import open_record
from weirlab.scenario import ScenarioSpec, load_link, models, resolve, shipped_links
from weirlab.scenario.catalogue import check
from weirlab.scenario.units import rate_bps, rate_text, time_ns, time_text
from weirlab.shape import read_rules, settings_of
from weirlab.stats import Assertion

if TYPE_CHECKING:
    from pathlib import Path

    from weirlab.scenario.base import Spec


SCHEMA: dict[str, Any] = _native.scenario_schema()["$defs"]
"""What a scenario file can say, as it is declared."""


def formats(of: dict[str, Any]) -> set[str]:
    """The quantities that a value may be, by their `format`."""
    if "$ref" in of:
        return formats(SCHEMA[of["$ref"].rpartition("/")[2]])
    own = {of["format"]} if "format" in of else set()
    return own | {name for one in of.get("anyOf", []) for name in formats(one)}


def quantities(wanted: str) -> list[tuple[str, str]]:
    """Every key of a scenario that is a quantity of that kind, behind the name of its table."""
    return [
        (name, key)
        for name, schema in SCHEMA.items()
        for key, of in schema.get("properties", {}).items()
        if wanted in formats(of)
    ]


TIMES, RATES, SIZES = quantities("time"), quantities("rate"), quantities("size")
BARE = [30, 5.0, 0, "30", "5.", "0", "1.5"]


def told(table: str, key: str, value: object) -> str:
    """What is said of a value of a key; nothing if nothing is wrong with it."""
    kind: type[Spec] = getattr(models, table)
    with pytest.raises(UsageError) as caught:
        check(kind, {key: value, "none of its keys": 0}, "given")
    faults = str(caught.value).removeprefix("given: ").split("; ")
    return next((said for said in faults if said.startswith(key)), "")


def test_the_keys_that_take_times_and_rates_are_found() -> None:
    assert {("PhasesSpec", "load"), ("PhaseLengthsSpec", "load"), ("HopSpec", "delay")} <= set(TIMES)
    assert {("ScenarioSpec", "start_jitter"), ("SamplingSpec", "ping"), ("TcpSpec", "rto_min")} <= set(TIMES)
    assert {("HopSpec", "rate"), ("RatesSpec", "rate")} <= set(RATES)
    assert set(SIZES) == {
        ("FlowSpec", "bytes"),
        ("ProbeSpec", "payload"),
        ("TcpSpec", "receive_window"),
        ("UdpSpec", "payload"),
        ("WebSpec", "document"),
        ("WebSpec", "object"),
    }


def check_advice(table: str, key: str, bare: object, quantity: str) -> None:
    """A number without a unit is refused, and what is advised in its place is taken."""
    said = told(table, key, bare)
    _, missing, advised = said.partition(f"`{bare}` is a {quantity} without its unit: write ")
    texts = re.findall(f"`({re.escape(str(bare))}[a-z]+)`", advised)
    # Of what no unit makes right it is said what is.
    assert bool(texts) == bool(missing)
    assert texts or re.search("[0-9.]`?: write .*[a-z]", said)
    for text in texts:
        assert not told(table, key, text), text


@pytest.mark.parametrize(("table", "key"), TIMES)
def test_no_key_takes_a_time_without_its_unit(table: str, key: str) -> None:
    for bare in BARE:
        check_advice(table, key, bare, "time")
    for wrong in (-5, "-5", True, float("nan"), float("inf"), "nans", "", [30]):
        assert told(table, key, wrong)
    assert not told(table, key, "30ms")


@pytest.mark.parametrize(("table", "key"), RATES)
def test_no_key_takes_a_rate_without_its_unit(table: str, key: str) -> None:
    for bare in BARE:
        check_advice(table, key, bare, "rate")
    for wrong in (-20, "-20mbit", True, float("nan"), "", ["20mbit"]):
        assert told(table, key, wrong)
    assert not told(table, key, "20mbit")


@pytest.mark.parametrize(("table", "key"), SIZES)
def test_a_size_is_bytes_as_in_tc_and_flent(table: str, key: str) -> None:
    for right in (1000, "1000", "2kb"):
        assert not told(table, key, right)
    for wrong in (-1, 5.5, True, "-1", "", float("nan")):
        assert told(table, key, wrong)


def test_settings_of_shapers_take_no_bare_number_either(tmp_path: Path) -> None:
    for key in ("up", "down", "up_max", "down_max"):
        with pytest.raises(UsageError, match=f"{key}: `20` is a rate without its unit: write `20mbit`"):
            settings_of("lo", {key: 20})
    rules = tmp_path / "rules.toml"
    for key in ("up_max", "down_max"):
        rules.write_text(f'[class.bulk]\n{key} = "2"\n')
        with pytest.raises(UsageError, match=f"{key}: `2` is a rate without its unit: write `2mbit`"):
            read_rules(str(rules))
    with pytest.raises(UsageError, match="time: `30` is a time without its unit: write `30s`"):
        settings_of("lo", {"time": 30})
    assert settings_of("lo", {"time": "30s", "up": "auto", "down": "20mbit"})["time_ns"] == 30 * 10**9


def test_whole_numbers_of_scenarios_are_counts() -> None:
    """Whoever adds a key with a plain number says here that it is none of time, rate or size."""
    found = {
        f"{name}.{key}"
        for name, schema in SCHEMA.items()
        for key, of in schema.get("properties", {}).items()
        if of.get("type") == "integer" or any(isinstance(one, int) for one in of.get("enum", []))
    }
    assert found == {
        *("AirtimeSpec.max_window", "AirtimeSpec.packets", "AirtimeSpec.window"),
        *("FramingSpec.minimum", "FramingSpec.overhead", "LinkSpec.mtu", "ProbeSpec.ttl"),
        *(
            "HopSpec.packet_queue",
            "HopSpec.packet_rate",
            "HopSpec.txqueuelen",
            "ReorderSpec.gap",
            "TcpSpec.initial_window",
        ),
        *("ParameterSpec.default", "ParameterSpec.maximum", "ParameterSpec.minimum"),
        *("FlowSpec.ip", "ProbeSpec.ip", "ScenarioSpec.ip", "ScenarioSpec.repeat", "ScenarioSpec.seed"),
        *("WebSpec.connections", "WebSpec.objects"),
    }


def test_the_types_of_python_are_those_that_are_declared() -> None:
    text = scenario_models.FILE.read_text(encoding="utf-8")
    assert scenario_models.models() == text, "the declarations have changed: `make docs` writes the types"


def test_the_types_of_results_are_those_that_are_declared() -> None:
    text = method_results.FILE.read_text(encoding="utf-8")
    assert method_results.types() == text, "the declarations have changed: `make docs` writes the types"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0s"), (30 * 10**9, "30s"), (1_500_000_000, "1500ms"), (7, "7ns"), (86_400 * 10**9 + 1, None)],
)
def test_times_are_written_without_loss(value: int, text: str | None) -> None:
    assert text is None or time_text(value) == text
    assert time_ns(time_text(value)) == value


@pytest.mark.parametrize(
    ("value", "text"), [(20_000_000, "20mbit"), (109_341_000, "109341kbit"), (1001, "1001bit")]
)
def test_rates_are_written_without_loss(value: int, text: str) -> None:
    assert rate_text(value) == text
    assert rate_bps(text) == value


@pytest.mark.parametrize(
    "words",
    [
        "run rrul --load 30",
        "run rrul --idle 0",
        "run rrul --cooldown 5.0",
        "run rrul --ping 10",
        "validate rrul --load 30",
        "test host --idle 4",
        "test host --load 8",
        "test host --ping 10",
        "shape lo --time 30",
        "shape lo --up 20",
        "shape lo --down 20",
        "shape lo --up-max 20",
        "shape lo --prove --load 5",
        "study cfosspeed --load 10",
    ],
)
def test_no_option_takes_a_bare_number(words: str) -> None:
    bare = words.rsplit(maxsplit=1)[-1]
    with pytest.raises(UsageError, match=f"`{bare}` is a (time|rate) without its unit: write `{bare}"):
        weir.main(words.split(), standalone_mode=False)


def test_no_file_takes_a_bare_number(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text('test = "rrul"\nlink = "cable-20-8"\n[phases]\nload = 30\n')
    with pytest.raises(UsageError, match=r"scenario\.toml, line 4: phases\.load: `30` is a time without"):
        weir.main(["run", str(scenario)], standalone_mode=False)
    link = tmp_path / "link.toml"
    link.write_text('name = "l"\ntitle = "l"\n[[up]]\nname = "a"\nrate = 20\n[[down]]\nname = "b"\n')
    with pytest.raises(UsageError, match=r"link\.toml, line 5: up\.0\.rate: `20` is a rate without its unit"):
        weir.main(["run", "rrul", "--link", str(link)], standalone_mode=False)
    rules = tmp_path / "rules.toml"
    rules.write_text("[class.bulk]\nup_max = 2\n")
    with pytest.raises(
        UsageError, match=r"rules\.toml, line 2: class\.bulk\.up_max: `2` is a rate without its unit"
    ):
        weir.main(["shape", "lo", "--rules", str(rules)], standalone_mode=False)
    config = tmp_path / "shape.toml"
    config.write_text("up = 20\n")
    with pytest.raises(UsageError, match="line 1: up: `20` is a rate without its unit"):
        weir.main(["shape", "lo", "--config", str(config)], standalone_mode=False)


def test_neither_python_nor_an_assertion_takes_a_bare_number() -> None:
    with pytest.raises(UsageError, match=r"phases\.load: `30` is a time without its unit"):
        weirlab.run("rrul", phases={"load": 30})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="`10` is a time without its unit"):
        Assertion("up.goodput[10..20] > 1mbit")
    words = {"idle": "4s", "load": "8s", "ping": "10ms", "max_flows": 1, "cc": "cubic", "seed": 1}
    with pytest.raises(UsageError, match="load: `8` is a time without its unit"):
        plan_test("host", TestPlan(**(words | {"load": "8"})))  # type: ignore[arg-type]


def test_tc_syntax_takes_what_tc_takes() -> None:
    """In `tc` a bare time is microseconds and a bare rate bit/s; there it stays so."""
    [run] = resolve(
        check(ScenarioSpec, {"test": "ping", "link": "line-50", "queue": ["codel target 5000"]}, "scenario")
    )
    assert run.queue == "codel target 5000"


@pytest.mark.parametrize("name", shipped_links())
def test_a_link_is_the_same_after_a_way_through_json(name: str) -> None:
    link = load_link(name)
    assert type(link).model_validate_json(link.model_dump_json()) == link


def test_what_a_manifest_says_can_be_run_again(tmp_path: Path) -> None:
    words: dict[str, Any] = {"phases": {"idle": "1s", "load": "1s", "cooldown": "0s"}}
    [first] = weirlab.run("rrul", link="vdsl-100-40", out=tmp_path / "a", **words)
    manifest = json.loads((first.path / "manifest.json").read_text())
    [again] = weirlab.run(manifest["test"], link=manifest["link"], out=tmp_path / "b")
    assert again.manifest.scenario == first.manifest.scenario
    assert open_record(again.path).latency.equals(first.latency)
