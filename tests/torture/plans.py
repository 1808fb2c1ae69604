"""What is tried: each plan is drawn from a number of its own, so that any can be had again."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torture.call import LIMIT_S, Call
from torture.values import KEYS, PLACES, VALUES

if TYPE_CHECKING:
    from random import Random

SHORT = ("--idle", "200ms", "--load", "300ms", "--cooldown", "0s", "--no-charts")

USUAL: dict[tuple[str, ...], tuple[str, ...]] = {
    ("run",): ("ping", *SHORT),
    ("validate",): ("ping", "--worlds", "sim", *SHORT[:-1]),
    ("conformance",): (".",),
    ("show",): ("rec",),
    ("compare",): ("rec", "rec"),
    ("plot",): ("rec",),
    ("report",): ("rec",),
    ("list",): ("queues",),
    ("test",): ("localhost:1",),
    ("ping",): ("127.0.0.1", "--count", "3", "--ping", "1ms"),
    ("shape", "start"): ("no-such-device0",),
    ("shape", "status"): ("no-such-device0",),
    ("shape", "stop"): ("no-such-device0",),
    ("lab", "exec"): ("--", "true"),
}
"""How a command is usually called where it takes little time and touches nothing of the machine's network."""

ALONE = {
    ("serve",),
    ("ui",),
    ("test",),
    ("ping",),
    ("shape", "start"),
    ("lab", "exec"),
    ("lab", "shell"),
    ("doctor",),
}
"""Commands whose own words would ask names of others, or take hours: only their options are tried."""

SERVER = ("--listen", "127.0.0.1:0", "--irtt-port", "0")


@dataclass(frozen=True)
class Command:
    """A command as its help shows it: its words and options."""

    words: tuple[str, ...]
    options: tuple[str, ...]


def commands(program: list[str], words: tuple[str, ...] = ()) -> list[Command]:
    """Every command and subcommand, read from the help, so that new ones join by themselves."""
    told = subprocess.run(
        [*program, *words, "--help"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
        env=os.environ | {"COLUMNS": "200"},
    ).stdout
    _, listed, below = told.partition("\nCommands:\n")
    names = re.findall(r"^  ([a-z][a-z-]*) ", below, re.MULTILINE) if listed else []
    found = [command for name in names for command in commands(program, (*words, name))]
    if words == ("study",):
        # Of studies with the same options one stands for all: there are many experiments in the gallery.
        found = list({command.options: command for command in found}.values())
    options = sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", told)) - {"--help", "--version"})
    return [*found, Command(words, tuple(options))] if words and not names else found


def draw(chance: Random, known: list[Command]) -> Call:
    """A call of one of the ways to be clumsy."""
    ways = [_option] * 8 + [_argument] * 3 + [_twice] * 2 + [_file] * 6
    ways += [_damaged] * 4 + [_pressed] * 4 + [_rules] * 2 + [_python] * 3 + [_full] + [_hostile]
    return chance.choice(ways)(chance, chance.choice(known))


def _call(command: Command, *words: str, setting: tuple[str, ...] = ()) -> Call:
    usual = _without(USUAL.get(command.words, ()), words[0] if words else "")
    # What is passed on to a program stands at the end.
    ordered = (*words, *usual) if "--" in usual else (*usual, *words)
    if command.words == ("serve",):
        return Call(words=(*command.words, *SERVER, *words), interrupts_s=(8.0, 10.0), setting=setting)
    if command.words[0] in ("study", "ping", "ui"):
        # It may be right, and would take minutes or hours.
        return Call(words=(*command.words, *ordered), interrupts_s=(8.0, 10.0), setting=setting)
    return Call(words=(*command.words, *ordered), setting=setting)


def _without(usual: tuple[str, ...], option: str) -> tuple[str, ...]:
    """The usual words without an option, which may be given once, and its value."""
    if option not in usual:
        return usual
    at = usual.index(option)
    return (*usual[:at], *usual[at + 2 :])


def _option(chance: Random, command: Command) -> Call:
    if not command.options:
        return _argument(chance, command)
    return _call(command, chance.choice(command.options), chance.choice(VALUES))


def _twice(chance: Random, command: Command) -> Call:
    if not command.options:
        return _argument(chance, command)
    option = chance.choice(command.options)
    return _call(command, option, chance.choice(VALUES), option, chance.choice(VALUES))


def _argument(chance: Random, command: Command) -> Call:
    if command.words in ALONE or command.words[0] == "study":
        return _option(chance, command) if command.options else Call(words=command.words)
    values = [chance.choice(VALUES) for _ in range(chance.choice((1, 1, 2, 3)))]
    return Call(words=(*command.words, *values))


def _file(chance: Random, command: Command) -> Call:
    """A scenario, a link or a test of which something is otherwise than it should be."""
    del command
    kind = chance.choice(("scenario", "link", "test"))
    text = bend(chance, FILES[kind])
    write = (f"cat >{kind}.toml <<'END'\n{text}\nEND",)
    words = {
        "scenario": ("run", "scenario.toml", "--repeat", "1", *SHORT),
        "link": ("run", "tcp_download", "--link", "link.toml", *SHORT),
        "test": ("run", "test.toml", *SHORT),
    }[kind]
    return Call(words=words, setting=write)


def bend(chance: Random, text: str) -> str:
    """`text`, TOML, with one to three lines changed, left out, doubled or added."""
    lines = text.strip().splitlines()
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(lines))
        key = lines[at].split("=")[0].strip() if "=" in lines[at] else chance.choice(KEYS)
        way = chance.randrange(5)
        if way == 0:
            del lines[at]
        elif way == 1:
            lines.insert(at, lines[at])
        elif way == 2:
            lines.insert(at + 1, f"{chance.choice(KEYS)} = {_literal(chance)}")
        else:
            lines[at] = f"{key} = {_literal(chance)}"
        lines = lines or [""]
    return "\n".join(lines)


def _literal(chance: Random) -> str:
    text = chance.choice(VALUES)
    quoted = text.encode("ascii", "namereplace").decode().replace("'", "")
    quoted = "".join(sign for sign in quoted if sign.isprintable())
    return chance.choice(
        (f"'{quoted}'", quoted, f"['{quoted}']", "{ x = 1 }", "[[[]]]", "1979-05-27", "true", "-0.0")
    )


def _rules(chance: Random, command: Command) -> Call:
    """A list of rules of which something is otherwise than it should be."""
    del command
    write = f"cat >rules.toml <<'END'\n{bend(chance, FILES['rules'])}\nEND"
    return Call(words=("rules.toml",), setting=(write,), program=READ_RULES)


def _python(chance: Random, command: Command) -> Call:
    """A value of some kind where `weirlab.run`, or another function of the package, takes another."""
    del command
    value = chance.choice(VALUES)
    number = chance.choice(("None", "5", "-1", "0.5", "True", "[]", "{}", "object()", "float('nan')", "b'x'"))
    written = chance.choice((repr(value), repr([value]), repr({value: value}), number, f"[{number}]"))
    if chance.random() < 0.5:
        return Call(words=(chance.choice(PARAMETERS), written), program=RUN)
    return Call(words=(written,), program=ASK.format(call=chance.choice(ASKED)))


def _damaged(chance: Random, command: Command) -> Call:
    """A record of which one file is not as it was."""
    reader = chance.choice(
        [("show", "rec"), ("compare", "rec", "other"), ("plot", "rec"), ("show", "rec", "--json")]
    )
    del command
    pick = f"file=$(find rec -type f | sort | shuf -n 1 --random-source=<(yes {chance.randrange(1000)}))"
    way = chance.choice(
        (
            'truncate -s 50% "$file"',
            ': >"$file"',
            'rm "$file"',
            'head -c 4096 /dev/urandom >"$file"',
            f'printf "\\377" | dd of="$file" bs=1 seek={chance.randrange(600)} conv=notrunc status=none',
            'rm "$file"; mkfifo "$file"',
            'rm "$file"; mkdir "$file"',
            'chmod 0 "$file"',
            'ln -sf /dev/zero "$file"',
            'cp "$(find rec -name "*.parquet" | sort | tail -n 1)" "$file" || true',
            "printf '[%.0s' $(seq 100000) >rec/manifest.json",
        )
    )
    return Call(words=reader, setting=(pick, way))


def _pressed(chance: Random, command: Command) -> Call:
    """Ctrl-C at some moment, and perhaps again."""
    del command
    words = chance.choice(
        (
            ("run", "rrul", "--load", "3s", "--repeat", "2000", "--no-charts"),
            ("run", "ping", *SHORT[:-1]),
            ("show", "rec"),
            ("plot", "rec"),
            ("list", "queues"),
            ("study", "linux", "--repeat", "50"),
            ("validate", "ping", "--worlds", "sim", *SHORT[:-1]),
            ("serve", *SERVER),
            ("ping", "127.0.0.1", "--method", "udp", "--port", "9"),
        )
    )
    first = chance.choice((0.05, 0.2, 0.5, 1.0, 2.0, 4.0)) * chance.uniform(0.5, 1.5)
    again = (first + chance.uniform(0.3, 2.0),) if chance.random() < 0.5 or words[0] == "serve" else ()
    return Call(words=words, interrupts_s=(first, *again))


def _full(chance: Random, command: Command) -> Call:
    """Output that cannot be written."""
    usual = _call(command)
    if command.words in ALONE or command.words[0] == "study":
        usual = Call(words=(*command.words, "--help"))
    if chance.random() < 0.5:
        return Call(words=usual.words, interrupts_s=usual.interrupts_s, output="/dev/full")
    return Call(
        words=usual.words, interrupts_s=usual.interrupts_s, errors=chance.choice(("/dev/full", "/dev/null"))
    )


def _hostile(chance: Random, command: Command) -> Call:
    """Bytes that no client sends, at the ports of a server that is started for it."""
    del command
    return Call(words=(str(chance.randrange(1_000_000)), str(chance.choice((2, 5, 20)))), program=HOSTILE)


HOSTILE = (
    "import sys\nfrom torture.hostile import assault\n"
    "serve = [sys.executable, '-m', 'weirlab', 'serve']\n"
    "assault(serve, int(sys.argv[1]), float(sys.argv[2]))"
)
"""A program that ends with a traceback if the server does not withstand; it needs `PYTHONPATH=tests`."""

REFUSED = """
except weirlab.WeirError as error:
    sys.exit(str(error))
"""

READ_RULES = (
    "import sys, weirlab\nfrom weirlab.shape.rules import read_rules\n"
    "try:\n    read_rules(sys.argv[1])" + REFUSED
)

RUN = (
    "import sys, weirlab\nshort = {'idle': '200ms', 'load': '300ms', 'cooldown': '0s'}\n"
    "words = {'test': 'ping', 'phases': short, 'out': 'o', sys.argv[1]: eval(sys.argv[2])}\n"
    "try:\n    weirlab.run(**words)" + REFUSED
)

PARAMETERS = (
    *("test", "link", "queue", "queue_up", "shaper", "cc", "world", "seed", "repeat", "phases", "parameters"),
    *("tcp", "sampling", "methods", "start_jitter", "ip", "assertions", "name", "out"),
)
"""Of `weirlab.run`."""

ASK = (
    "import sys, weirlab\nshort = {{'idle': '200ms', 'load': '300ms', 'cooldown': '0s'}}\n"
    "plan = {{'test': 'ping', 'link': 'cable-20-8', 'phases': short}}\nvalue = eval(sys.argv[1])\n"
    "record = weirlab.open_record('rec')\n"
    "try:\n    {call}" + REFUSED
)

ASKED = (
    "weirlab.open_record(value)",
    "weirlab.summarise(value)",
    "weirlab.compare(value)",
    "weirlab.frame(value)",
    "weirlab.frame(record, by=value)",
    "weirlab.view(value)",
    "weirlab.view(record, title=value)",
    "weirlab.plot(value, 'cdf')",
    "weirlab.plot(record, value)",
    "weirlab.draw(value, record, 'chart.svg')",
    "weirlab.draw('cdf', value, 'chart.svg')",
    "weirlab.draw('cdf', record, value)",
    "weirlab.draw('cdf', record, 'chart.svg', title=value)",
    "weirlab.draw('cdf', record, 'chart.svg', whole=value)",
    "weirlab.draw('three-plot', record, 'chart.svg', span_s=value)",
    "weirlab.draw('cdf', record, 'chart.svg', look=value)",
    "weirlab.sweep(value, store='store', jobs=1)",
    "weirlab.sweep(plan, axes={'link': ['cable-20-8']}, store=value, jobs=1)",
    "weirlab.sweep(plan, axes=value, store='store', jobs=1)",
    "weirlab.sweep(plan, axes={'link': value}, store='store', jobs=1)",
    "weirlab.sweep(plan, axes={'link': ['cable-20-8']}, store='store', jobs=value)",
    "weirlab.sweep(plan, axes={'link': ['cable-20-8']}, store='store', jobs=1, repeat=value)",
    "weirlab.sweep(plan, axes={'link': ['cable-20-8']}, store='store', jobs=1, where=value)",
    "weirlab.sweep(plan, axes={'link': ['cable-20-8']}, store='store', scheduler=value)",
)
"""What `value` is passed to; each is to end or to be refused in one sentence."""

FILES = {
    "scenario": """
test = "tcp_download"
link = "cable-20-8"
queue = ["default", "htb rate 95% fq_codel"]
seed = 1
assert = ["latency.p99 < 10s"]
[phases]
idle = "200ms"
load = "300ms"
[tcp]
congestion_control = "cubic"
ecn = true
[sampling]
ping = "20ms"
""",
    "link": """
name = "line"
title = "A line"
source = "nobody"
[[up]]
name = "modem"
rate = "8mbit"
delay = "5ms"
queue = "bfifo limit 250000"
[[down]]
name = "modem"
rate = "20mbit"
delay = "5ms"
jitter = "1ms"
queue = "pfifo"
""",
    "rules": """
mark = true
[[rule]]
name = "games"
protocol = ["udp"]
port = [3074, "5060-5061"]
host = ["192.0.2.0/24"]
class = "voice"
[class.bulk]
up-max = "2mbit"
""",
    "test": """
name = "mine"
title = "A test"
[phases]
idle = "200ms"
load = "300ms"
cooldown = "0s"
[[hosts]]
name = "server"
delay = "1ms"
[[flows]]
name = "load"
direction = "down"
host = "server"
count = 2
bytes = "100kb"
[[probes]]
name = "ping"
kind = "icmp"
host = "server"
""",
}
"""Sound ones, of which something will be changed."""

assert PLACES  # they are made by `torture.__main__`
