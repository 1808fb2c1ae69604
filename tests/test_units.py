"""Quantities: a time or a rate is never a bare number, wherever it is written."""

from __future__ import annotations

import importlib
import json
import pkgutil
from typing import TYPE_CHECKING, Annotated, Any, get_args

import pytest
from pydantic import BeforeValidator, TypeAdapter, ValidationError

import weirlab
from weirlab.cli import weir
from weirlab.errors import UsageError
from weirlab.net.plan import TestPlan, plan_test
from weirlab.record import open_record
from weirlab.scenario import ScenarioSpec, load_link, resolve, shipped_links
from weirlab.scenario.catalogue import check
from weirlab.scenario.models import Model
from weirlab.scenario.units import (
    LineRate,
    Nanoseconds,
    PositiveNanoseconds,
    RateWords,
    ShaperRate,
    SideRate,
    SizeInBytes,
    TimeWords,
    rate_bps,
    rate_text,
    time_ns,
    time_text,
)
from weirlab.stats import Assertion

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pydantic.fields import FieldInfo


def readers(of: Any) -> list[Any]:
    """The functions by which a type reads what was written, in all of its parts."""
    own = [one.func for one in getattr(of, "__metadata__", ()) if isinstance(one, BeforeValidator)]
    return own + [reader for part in get_args(of) for reader in readers(part)]


def quantities(*kinds: Any) -> Iterator[tuple[str, FieldInfo]]:
    """Every key of every model of the package whose type reads such a quantity."""
    for module in pkgutil.walk_packages(weirlab.__path__, "weirlab."):
        if not module.name.endswith(("_native", "__main__")):
            importlib.import_module(module.name)
    wanted = [reader for kind in kinds for reader in readers(kind)]
    models = [Model]
    for model in models:
        models += model.__subclasses__()
        for name, field in model.model_fields.items():
            # What pydantic took off the annotation stands beside it.
            of = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
            if any(reader in wanted for reader in readers(of)):
                yield f"{model.__name__}.{name}", field


TIMES = dict(quantities(Nanoseconds, PositiveNanoseconds, TimeWords))
RATES = dict(quantities(LineRate, ShaperRate, RateWords, SideRate))
SIZES = dict(quantities(SizeInBytes))
BARE = [30, 5.0, 0, "30", "5.", "0", "1.5"]


def reads(field: FieldInfo, value: object) -> object:
    of: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    # The key `phases` of a scenario holds its times by name.
    if "dict" in str(field.annotation):
        value = {"load": value}
    return TypeAdapter(of).validate_python(value)


def test_the_keys_that_take_times_and_rates_are_found() -> None:
    assert {"PhasesSpec.load", "ScenarioSpec.phases", "ScenarioSpec.start_jitter", "HopSpec.delay"} <= set(
        TIMES
    )
    assert {"SamplingSpec.ping", "TcpSpec.rto_min", "ProbeSpec.period", "ShapeWords.time"} <= set(TIMES)
    assert {"HopSpec.rate", "RatesSpec.rate", "ShapeWords.up", "CapSpec.up_max"} <= set(RATES)
    assert set(SIZES) == {"FlowSpec.bytes", "ProbeSpec.payload", "TcpSpec.receive_window"}


@pytest.mark.parametrize("key", TIMES)
def test_no_key_takes_a_time_without_its_unit(key: str) -> None:
    for bare in BARE:
        with pytest.raises(ValidationError, match=f"`{bare}` is a time without its unit: write `{bare or 0}"):
            reads(TIMES[key], bare)
    for wrong in (-5, "-5", True, float("nan"), float("inf"), "nans", "", [30]):
        with pytest.raises(ValidationError):
            reads(TIMES[key], wrong)
    reads(TIMES[key], "30s")


@pytest.mark.parametrize("key", RATES)
def test_no_key_takes_a_rate_without_its_unit(key: str) -> None:
    for bare in BARE:
        with pytest.raises(ValidationError, match=f"`{bare}` is a rate without its unit: write `{bare}mbit`"):
            reads(RATES[key], bare)
    for wrong in (-20, "-20mbit", True, float("nan"), "", ["20mbit"]):
        with pytest.raises(ValidationError):
            reads(RATES[key], wrong)
    reads(RATES[key], "20mbit")


@pytest.mark.parametrize("key", SIZES)
def test_a_size_is_bytes_as_in_tc_and_flent(key: str) -> None:
    assert reads(SIZES[key], 1000) == reads(SIZES[key], "1000") == 1000
    assert reads(SIZES[key], "2kb") == 2048
    for wrong in (-1, 5.5, True, "-1", "", float("nan")):
        with pytest.raises(ValidationError):
            reads(SIZES[key], wrong)


def test_whole_numbers_of_the_models_are_counts() -> None:
    """Whoever adds a key with a plain number says here that it is none of time, rate or size."""
    found = {
        f"{model.__name__}.{name}"
        for model in subclasses(Model)
        if model.__module__.startswith(("weirlab.scenario", "weirlab.shape"))
        for name, field in model.model_fields.items()
        if int in kinds(field.annotation) and f"{model.__name__}.{name}" not in TIMES | RATES | SIZES
    }
    assert found == {
        *("FlowSpec.count", "FlowSpec.dscp", "ProbeSpec.dscp", "MethodSpec.dscp", "ProbeSpec.ttl"),
        *("FramingSpec.minimum", "FramingSpec.overhead", "LinkSpec.mtu"),
        *("HopSpec.txqueuelen", "ReorderSpec.gap", "TcpSpec.initial_window"),
        *("Parameter.default", "Parameter.maximum", "Parameter.minimum"),
        *("ScenarioSpec.ip", "ScenarioSpec.parameters", "ScenarioSpec.repeat", "ScenarioSpec.seed"),
        *("RuleSpec.dscp", "RuleSpec.port", "RuleSpec.protocol"),
    }


def subclasses(of: type[Model]) -> Iterator[type[Model]]:
    for one in of.__subclasses__():
        yield one
        yield from subclasses(one)


def kinds(of: Any) -> list[Any]:
    """A type with all types in it; what literals have is of their values' types."""
    return [of, *(kind for part in get_args(of) for kind in kinds(part)), *map(type, literals(of))]


def literals(of: Any) -> list[object]:
    return [part for part in get_args(of) if isinstance(part, int)]


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
    words = {"idle": "4s", "load": "8s", "ping": "10ms", "most_flows": 1, "cc": "cubic", "seed": 1}
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
