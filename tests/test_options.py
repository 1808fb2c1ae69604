"""The options of every command: one value each, nothing empty, and plain words for what is wrong."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import click
import pytest

from weirlab.cli import COMMANDS, weir
from weirlab.cli.options import Argument, Option, Share, Whole
from weirlab.cli.wording import sentence
from weirlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def commands(
    of: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that runs something."""
    if not isinstance(of, click.Group):
        yield path, of
        return
    context = click.Context(of)
    for name in of.list_commands(context):
        command = of.get_command(context, name)
        assert command is not None
        yield from commands(command, (*path, name))


ALL = dict(commands(weir))
OPTIONS = {
    f"{' '.join(path)} {one.opts[-1]}": (command, one)
    for path, command in ALL.items()
    for one in command.params
    if isinstance(one, click.Option)
}
VALUED = [name for name, (_, one) in OPTIONS.items() if not one.is_flag and not one.hidden]
SWITCHES = [name for name, (_, one) in OPTIONS.items() if one.secondary_opts]
ARGUMENTS = {
    f"{' '.join(path)} {one.human_readable_name}": (command, one)
    for path, command in ALL.items()
    for one in command.params
    if isinstance(one, click.Argument)
}
WHOLE = [name for name in VALUED if isinstance(OPTIONS[name][1].type, click.IntRange)]


def written(one: click.Parameter) -> list[str]:
    """Two values that differ and can be read."""
    if isinstance(one.type, click.Choice):
        return [str(choice) for choice in one.type.choices][:2]
    return ["1", "2"]


def refused(command: click.Command, words: list[str]) -> str:
    with pytest.raises((UsageError, click.ClickException)) as caught:
        command.make_context("weir", list(words))
    error = caught.value
    return sentence(error) if isinstance(error, click.ClickException) else str(error)


def test_all_commands_are_walked() -> None:
    assert {path[0] for path in ALL} == set(COMMANDS)
    assert len(OPTIONS) > 80


@pytest.mark.parametrize("which", OPTIONS)
def test_every_option_is_of_the_kind_that_refuses(which: str) -> None:
    _, one = OPTIONS[which]
    assert isinstance(one, Option), "declare it with weirlab.cli.options.option"
    if not one.is_flag:
        assert not isinstance(one.type, (click.IntRange, click.FloatRange)) or isinstance(
            one.type, (Whole, Share)
        )
        assert not isinstance(one.type, (click.types.IntParamType, click.types.FloatParamType)) or isinstance(
            one.type, (Whole, Share)
        )


@pytest.mark.parametrize("which", VALUED)
def test_no_option_keeps_the_last_of_two_values(which: str) -> None:
    command, one = OPTIONS[which]
    name, [first, second] = one.opts[-1], written(one)
    words = [name, first, f"{name}={second}"]
    if one.multiple:
        context = command.make_context("weir", words, resilient_parsing=True)
        assert len(context.params[one.name or ""]) == 2
        return
    assert refused(command, words) == f"{name} is given twice, as `{first}` and `{second}`: write it once"
    assert "is given 3 times" in refused(command, [*words, name, first])


@pytest.mark.parametrize("which", VALUED)
def test_no_option_takes_an_empty_value(which: str) -> None:
    command, one = OPTIONS[which]
    assert refused(command, [one.opts[-1], ""]).startswith(f"{one.opts[-1]}: its value is empty")


@pytest.mark.parametrize("which", ARGUMENTS)
def test_no_argument_is_empty_but_the_words_of_a_program(which: str) -> None:
    command, one = ARGUMENTS[which]
    assert isinstance(one, Argument), "declare it with weirlab.cli.options.argument"
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    words = [*(written(each)[0] for each in arguments[: arguments.index(one)]), ""]
    if one.type is not click.UNPROCESSED:
        assert re.fullmatch(r".+ is empty: write what is meant", refused(command, words))
    else:
        assert command.make_context("weir", words, resilient_parsing=True).params[one.name or ""] == ("",)


@pytest.mark.parametrize("path", [path for path in ALL if path != ("serve",)], ids=" ".join)
def test_every_command_has_examples_that_can_be_read(path: tuple[str, ...]) -> None:
    """All but that whose words are read by the program that serves."""
    command, begins = ALL[path], f"weir {' '.join(path)} "
    lines = [line.strip() + " " for line in (command.help or "").splitlines()]
    # What an example does may stand behind it.
    examples = [line.partition("   ")[0] for line in lines if line.startswith(begins)]
    assert examples
    for example in examples:
        words = shlex.split(re.split(r"(?:^| )> ", example.removeprefix(begins))[0])
        try:
            command.make_context(begins.strip(), words)
        except click.BadParameter as error:
            assert "does not exist" in error.message  # noqa: PT017 - most files of examples are made up


def test_arguments_that_are_not_there_are_asked_for() -> None:
    """Of `weir import --out --`, whose option has taken the word that ends options."""
    said = refused(ALL["import",], ["--out", "--"])
    assert re.fullmatch(r"FILE\.\.\. is missing, as in `.+ [^-]\S+`; `.+ --help` has more", said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rrul", "--repeet", "2"], "there is no option `--repeet`: did you mean `--repeat`?"),
        (["rrul", "--wurst"], "there is no option `--wurst`: `weir run --help` lists all"),
        (["rrul", "--load"], "--load: its value is missing"),
        (["rrul", "--no-charts=1"], "--no-charts: it takes no value"),
        (["rrul", "more"], "`more` is too much; `weir run --help` has more"),
        (["rrul", "more", "yet"], "`more yet` is too much; `weir run --help` has more"),
        (["rrul", "--world", "lap"], "--world: `lap`: did you mean `lab`?"),
        (["rrul", "--world", "wurst"], "--world: `wurst`: write one of sim, lab, net, kernel"),
    ],
)
def test_what_cannot_be_read_is_told_in_the_words_of_all_errors(words: list[str], said: str) -> None:
    command = ALL["run",]
    with pytest.raises(click.ClickException) as caught:
        command.make_context("weir run", words)
    assert sentence(caught.value) == said


@pytest.mark.parametrize("which", SWITCHES)
def test_switches_do_not_contradict_each_other(which: str) -> None:
    command, one = OPTIONS[which]
    yes, no = one.opts[-1], one.secondary_opts[-1]
    assert refused(command, [yes, no]) == f"{yes} and {no} exclude each other: write one of them"
    assert command.make_context("weir", [yes, yes], resilient_parsing=True).params[one.name or ""] is True


@pytest.mark.parametrize("which", WHOLE)
def test_whole_numbers_are_refused_in_plain_words(which: str) -> None:
    command, one = OPTIONS[which]
    for wrong in ("1.5", "x", "1e3", "nan", "--", "\u0661", "1_0", "9" * 5000):
        said = refused(command, [one.opts[-1], wrong])
        assert re.fullmatch(rf"{one.opts[-1]}: `{re.escape(wrong)}` is not a whole number: write .+", said), (
            said
        )
    assert isinstance(one.type, click.IntRange)
    assert one.type.min is not None
    below = str(int(one.type.min) - 1)
    assert refused(command, [one.opts[-1], below]).startswith(f"{one.opts[-1]}: `{below}`: write ")


def test_a_share_is_no_other_number() -> None:
    for wrong in ("nan", "1.1", "-0.1", "x", "inf"):
        with pytest.raises(click.BadParameter, match=f"`{wrong}` is not a share: write a number from 0 to 1"):
            Share().convert(wrong, None, None)
    assert Share().convert("0.25", None, None) == 0.25


@pytest.mark.parametrize(
    ("words", "present"),
    [
        ("shape lo --egress 5mbit", "--up"),
        ("shape lo --ingress=5mbit", "--down"),
        ("shape lo --egress-max 5mbit", "--up-max"),
        ("shape lo --ingress-max 5mbit", "--down-max"),
        ("shape lo --egress-queue cake", "--queue-up"),
        ("shape lo --ingress-queue", "--queue-down"),
        ("shape lo --prove --measure 5s", "--load"),
        ("shape lo --prove --most-cost 0.2", "--max-cost"),
        ("test lo --most-flows 4", "--max-flows"),
        ("lab exec --record folder -- true", "--out"),
        ("study linux --seeds 5", "--repeat"),
        ("study cfosspeed --span 5s", "--idle and --load"),
    ],
)
def test_a_former_name_is_refused_with_the_present_one(words: str, present: str) -> None:
    old = next(word for word in words.split() if word.startswith("--") and word != "--prove").split("=")[0]
    with pytest.raises(UsageError) as caught:
        weir.main(words.split(), standalone_mode=False)
    assert str(caught.value) == f"{old} has another name now: write {present}"


def test_what_only_another_command_has_is_refused_with_that_command() -> None:
    for words, says in (
        (
            "run rrul --path lte=lte-verizon",
            "--path: a scenario has one path; a client with several is a lab",
        ),
        ("lab exec --datapath kernel -- true", "--datapath: programs run over the userspace data path"),
    ):
        with pytest.raises(UsageError) as caught:
            weir.main(words.split(), standalone_mode=False)
        assert str(caught.value).startswith(says)


@pytest.mark.parametrize("proving", [["--prove"], []])
@pytest.mark.parametrize("program", ["iperf3", "iperf3 -c 192.0.2.1 -t 60", "./load.sh"])
def test_a_program_is_no_time(proving: list[str], program: str) -> None:
    with pytest.raises(UsageError) as caught:
        weir.main(["shape", "lo", *proving, "--load", program], standalone_mode=False)
    assert str(caught.value) == (
        f"--load `{program}` has another name now: write --run; --load takes a time, such as `5s`"
    )


def test_a_time_that_cannot_be_is_no_program() -> None:
    cases = [("5", "without its unit"), ("0.5s", "write 1s or more"), ("90000s", "write 86400s or less")]
    for written, said in [*cases, ("5parsec", "parsec")]:
        with pytest.raises(UsageError, match=said) as caught:
            weir.main(["shape", "lo", "--prove", "--load", written], standalone_mode=False)
        assert "--run" not in str(caught.value)


def test_former_keys_of_files_are_refused_with_the_present_ones(tmp_path: Path) -> None:
    config = tmp_path / "shape.toml"
    config.write_text('egress_queue = "cake"\n')
    with pytest.raises(UsageError, match="line 1: egress_queue: this key is now called `queue_up`"):
        weir.main(["shape", "lo", "--config", str(config)], standalone_mode=False)
    rules = tmp_path / "rules.toml"
    rules.write_text('[class.bulk]\ningress_max = "2mbit"\n')
    with pytest.raises(UsageError, match=r"class\.bulk\.ingress_max: this key is now called `down_max`"):
        weir.main(["shape", "lo", "--rules", str(rules)], standalone_mode=False)


def test_one_idea_has_one_option() -> None:
    """What options with the same name take, over all commands."""
    metavars: dict[str, set[str]] = {}
    for _, one in OPTIONS.values():
        if not one.is_flag and not one.hidden:
            taken = one.make_metavar(click.Context(click.Command("weir")))
            metavars.setdefault(one.opts[-1], set()).add(taken)
    for name in ("--idle", "--load", "--cooldown", "--ping", "--time"):
        assert metavars[name] == {"TIME"}, name
    assert metavars["--run"] == {"SHELL"}
    assert metavars["--queue"] == metavars["--queue-up"] == metavars["--queue-down"] == {"TC"}
    assert metavars["--up"] == metavars["--down"] == metavars["--up-max"] == {"RATE"}
    assert metavars["--out"] == {"PATH"}
    assert len(metavars["--ip"]) == len(metavars["--repeat"]) == len(metavars["--seed"]) == 1, metavars


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "rrul", "--tag", "a", "--tag", "b c"], "--tag: `b c`: write a word without spaces"),
        (["test", "localhost", "--tag", "b c"], "--tag: `b c`: write a word without spaces"),
        (["run", "rrul", "--load", "0s"], "--load: 0 leaves the loads of the test no time"),
        (["run", "rrul", "--load", "30"], "--load: `30` is a time without its unit"),
        (["validate", "rrul", "--load", "0s"], "--load: 0 leaves the loads of the test no time"),
        (["run", "rrul", "--set", "streams=3"], "--set streams: test `rrul` has no parameter `streams`"),
    ],
)
def test_what_is_wrong_is_told_by_the_option_that_says_it(
    weir_here: Any, words: list[str], said: str
) -> None:
    done = weir_here(*words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"weir: {said}")


def test_of_a_file_the_key_is_told(weir_here: Any, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('test = "rrul"\nlink = "line-50"\nphases = { load = "0s" }\n')
    said = weir_here("run", "s.toml", "--idle", "1s", "--out", "out").stderr
    assert said.startswith("weir: phases.load: 0 leaves the loads of the test no time")


def test_a_tag_for_a_record_that_is_there_is_told_by_its_option(weir_here: Any, rrul: Any) -> None:
    said = weir_here("note", str(rrul[0].path), "--tag", "b c").stderr
    assert said == "weir: --tag: `b c`: write a word without spaces\n"
