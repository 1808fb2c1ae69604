"""The words of the command line that say what is run: the same for every command that runs scenarios."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weirlab import _native, reading
from weirlab.cli import completion
from weirlab.cli.options import MAX_NUMBER_DIGITS, OneOf, Whole, option
from weirlab.errors import UsageError
from weirlab.scenario.files import told
from weirlab.scenario.resolving import MAX_SEED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weirlab.scenario import ScenarioSpec

    Command = Callable[..., None]
    Option = Callable[[Command], Command]

DEFAULT_LINK = "cable-20-8"


def scenario_options(command: Command) -> Command:
    """The options that say which scenario is run; `spec_of` makes one of them."""
    for one in reversed([*_compared_options(), *_test_options(), *_transport_options()]):
        command = one(command)
    return command


def _compared_options() -> list[Option]:
    """Links, queues and shapers, of which several can be compared."""
    return [
        option(
            "--link",
            "links",
            multiple=True,
            shell_complete=completion.links,
            help="Link, by name or .toml file; repeat to compare several, each with each queue.  "
            f"[default: {DEFAULT_LINK}]",
        ),
        option(
            "--queue",
            "queues",
            multiple=True,
            metavar="TC",
            shell_complete=completion.queues,
            help="Queue spec in tc syntax, such as 'htb rate 95% fq_codel'; repeat to compare several, "
            "the first is the baseline. `default` is the link's own.",
        ),
        _queue_option("--queue-up", "upload"),
        _queue_option("--queue-down", "download"),
        option(
            "--shaper",
            "shapers",
            multiple=True,
            metavar="WORDS",
            help="Shaper at the client's end of the line: `auto`, `auto mode bandwidth`, `auto up 95%`, "
            "`fixed up 95% down 95%`, `none`; repeat to compare. The queue is then the shaper's.",
        ),
    ]


def _queue_option(name: str, direction: str) -> Option:
    return option(
        name,
        multiple=True,
        metavar="TC",
        shell_complete=completion.queues,
        help=f"Queue for the {direction} direction only; repeat to compare.",
    )


def _test_options() -> list[Option]:
    """Tests beside it, seed, parameters and times of the test."""
    return [
        option(
            "--beside",
            multiple=True,
            metavar="TEST[@START[+LENGTH]]",
            shell_complete=completion.tests,
            help="A test that runs beside the first, from START of its load on, for LENGTH, such as "
            "'rrul@30s+60s'; repeat for more.",
        ),
        option("--seed", type=Whole(0, MAX_SEED), help="Seed of the first run.  [default: 1]"),
        option("--set", "settings", multiple=True, metavar="NAME=N", help="A parameter of the test."),
        option("--idle", metavar="TIME", help="Length of the idle phase, such as 5s."),
        option("--load", metavar="TIME", help="Length of the load phase."),
        option("--cooldown", metavar="TIME", help="Length of the phase after the load."),
        option("--ping", metavar="TIME", help="Time between two pings of a train.  [default: 10ms]"),
    ]


def _transport_options() -> list[Option]:
    """TCP and Internet protocol of the loads."""
    return [
        option(
            "--cc",
            "ccs",
            multiple=True,
            shell_complete=completion.congestion_controls,
            metavar="NAME",
            help="Congestion control of all loads; repeat to compare.  [default: cubic]",
        ),
        option("--ip", type=OneOf(["4", "6"]), help="Internet protocol.  [default: 4]"),
        option("--ecn/--no-ecn", default=None, help="ECN of all loads.  [default: off]"),
        option("--sack/--no-sack", default=None, help="SACK of all loads.  [default: on]"),
    ]


def spec_of(what: str, words: dict[str, Any]) -> ScenarioSpec:
    """The scenario in the file `what`, or the test of that name, with what was given on the line.

    Args:
        what: file or name.
        words: what was given on the line.

    Raises:
        UsageError: all that is wrong with it.
    """
    from weirlab.scenario import ScenarioSpec  # noqa: PLC0415 - loads pydantic

    return ScenarioSpec.known(_read(what, words, None)[1])


def written(what: str, words: dict[str, Any], *, link: dict[str, Any] | None = None) -> dict[str, Any]:
    """The scenario that `spec_of` gives, as the keys of a scenario file; nothing is wrong with it.

    Args:
        what: file or name.
        words: what was given on the line.
        link: what takes the place of any link, which the scenario then need not name.

    Raises:
        UsageError: all that is wrong with it.
    """
    return _read(what, words, link)[0]


def _read(
    what: str, words: dict[str, Any], link: dict[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys as they are written, and as the compiled part has read them."""
    base: dict[str, Any] = {"test": what, "link": link or DEFAULT_LINK}
    if what.endswith(".toml"):
        from weirlab.scenario.catalogue import scenario_in  # noqa: PLC0415 - loads pydantic

        # A scenario whose link the line names need not have one.
        scenario = scenario_in(Path(what), link=link or list(words["links"]) or None)
        base = base if scenario is None else scenario.written()
    said = base | _from_line(base, words)
    names = list(_names(words, said).items())
    read = told(lambda: _native.read_spec("ScenarioSpec", said, "command line", names))
    return said, read


def _names(words: dict[str, Any], said: dict[str, Any]) -> dict[str, str]:
    """The options by the keys of the scenario that they say."""
    beside = {
        f"beside.{place}{key}": f"--beside {text}"
        for place, text in enumerate(words["beside"])
        for key in ("", ".test", ".start", ".length")
    }
    compared = {
        f"{key}.{place}": f"--{key.replace('_', '-')}"
        for key, name in COMPARED.items()
        for place in range(len(words[name]))
    }
    settings = {f"parameters.{name}": f"--set {name}" for name in said.get("parameters", {})}
    return OPTIONS | beside | compared | settings


@contextmanager
def naming_options(words: dict[str, Any]) -> Iterator[None]:
    """What is wrong with a scenario as a whole is told by the option, where the line says what it is of.

    Raises:
        UsageError: as what is done within it.
    """
    try:
        yield
    except UsageError as error:
        key, colon, says = str(error).partition(": ")
        option = OPTIONS.get(key)
        if not colon or option is None or words.get(option.removeprefix("--")) is None:
            raise
        raise UsageError(f"{option}: {says}") from error


def secret_of(file: Path | None) -> str | None:
    """The secret of a server in a file."""
    if file is None:
        return None
    try:
        return _native.read_secret(file)
    except _native.InputError as error:
        raise UsageError(str(error)) from error


def _from_line(base: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """Options of the command line as keys of a scenario."""
    said: dict[str, Any] = {key: words[key] for key in ("seed", "repeat") if words[key] is not None}
    if words["ip"] is not None:
        said["ip"] = int(words["ip"])
    said |= {key: list(words[name]) for key, name in COMPARED.items() if words[name]}
    phases = {name: words[name] for name in ("idle", "load", "cooldown") if words[name] is not None}
    if phases:
        said["phases"] = base.get("phases", {}) | phases
    if words["beside"]:
        said["beside"] = [_beside(text) for text in words["beside"]]
    if words["settings"]:
        said["parameters"] = base.get("parameters", {}) | _parameters(words["settings"])
    tcp = {
        key: value
        for key, value in (
            ("ecn", words["ecn"]),
            ("sack", words["sack"]),
        )
        if value is not None
    }
    if tcp or words["ccs"]:
        said["tcp"] = base.get("tcp", {}) | tcp
        if words["ccs"]:
            said["tcp"].pop("congestion_control", None)
    if words["ping"] is not None:
        said["sampling"] = base.get("sampling", {}) | {"ping": words["ping"]}
    return said


OPTIONS = {
    **{f"phases.{name}": f"--{name}" for name in ("idle", "load", "cooldown")},
    **{name: f"--{name}" for name in ("seed", "repeat", "ip")},
    "sampling.ping": "--ping",
}
"""Names of scenario keys on the command line."""

COMPARED = {
    "link": "links",
    "queue": "queues",
    "queue_up": "queue_up",
    "queue_down": "queue_down",
    "shaper": "shapers",
    "cc": "ccs",
}
"""Keys of a scenario that take several values to compare, and what the options are called in Python."""


def _beside(text: str) -> dict[str, str]:
    """A test beside the first, as `TEST[@START[+LENGTH]]` says it."""
    test, at, times = text.rpartition("@")
    if not at:
        return {"test": text}
    start, plus, length = times.partition("+")
    if not test or not start or (plus and not length):
        raise UsageError(
            f"--beside {text}: write TEST, TEST@START or TEST@START+LENGTH, such as rrul@30s+60s"
        )
    return {"test": test, "start": start} | ({"length": length} if plus else {})


def _parameters(settings: tuple[str, ...]) -> dict[str, int]:
    values: dict[str, int] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        number = reading.whole(value, MAX_NUMBER_DIGITS)
        if not equals or number is None:
            raise UsageError(f"--set {setting}: write NAME=NUMBER, such as streams=8")
        if name in values:
            raise UsageError(f"--set {name} is given twice, as `{values[name]}` and `{value}`: write it once")
        values[name] = number
    return values
