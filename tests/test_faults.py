"""What is wrong with a file: all of it, each with its line, and what may stand there."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import weirlab
from weirlab.cli import weir
from weirlab.errors import UsageError
from weirlab.forms import faults
from weirlab.forms.faults import line_of
from weirlab.scenario import ScenarioSpec, TestSpec, load_link, load_scenario
from weirlab.scenario.catalogue import check
from weirlab.shape import read_config, read_rules, rules_text, shipped_rules

LINK = """\
name = "l"
titel = "Mine"          # 2

[[up]]
name = "a"
rate = 20               # 6
framing = "atmm"        # 7

[[up]]                  # 9: no name
framing = { overhead = -1 }
loss = { model = "random", probability = 2 }
changes = [             # 12
    { at = "1s", rate = "20mbit" },
    { at = 5, down = true },
]

[[down]]
name = ""               # 18
"""

TOLD = [
    "line 1: title: this key is missing",
    (
        "line 2: titel: unknown key, did you mean `title`? "
        "(known: name, title, summary, source, mtu, up, down, routes)"
    ),
    "line 6: up.0.rate: `20` is a rate without its unit: write `20mbit` or `20kbit`",
    "line 7: up.0.framing: `atmm`: write 'none', 'ethernet', 'ptm', 'atm' or 'docsis'",
    "line 9: up.1.name: this key is missing",
    "line 10: up.1.framing.overhead: -1: write 0 or more",
    "line 11: up.1.loss.probability: 2: write 1 or less",
    "line 14: up.1.changes.1.at: `5` is a time without its unit: write `5s`, `5ms` or `5us`",
    "line 18: down.0.name: it is empty: write at least one letter",
]


def test_all_faults_of_a_file_are_told_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "link.toml"
    file.write_text(LINK)
    with pytest.raises(UsageError) as caught:
        load_link(str(file))
    head, *lines = str(caught.value).splitlines()
    assert head == f"{file} has {len(TOLD)} faults:"
    assert [line.strip() for line in lines] == TOLD


def test_one_fault_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('test = "rrul"\nlink = "cable-20-8"\n\n[phases]\n# how long\nlode = "5s"\n')
    with pytest.raises(UsageError) as caught:
        load_scenario(file)
    said = f"{file}, line 6: phases.lode: unknown key, did you mean `load`? (known: idle, load, cooldown)"
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"link": 5}, "link: 5: write a text, a table or a list"),
        ({"link": {"name": "l"}}, "link.title: this key is missing"),
        ({"link": ["a", {"title": "l"}]}, "link.1.name: this key is missing"),
        ({"assert": "codel"}, "assert: `codel`: write a list: put brackets around it"),
        ({"queue": 5}, "queue: 5: write a text or a list"),
        ({"queue_up": 5}, "queue_up: 5: write a text or a list"),
        ({"ip": 5}, "ip: 5: write 4 or 6"),
        ({"repeat": "many"}, "repeat: `many`: write a whole number"),
        ({"repeat": 1.5}, "repeat: 1.5: write a whole number"),
        ({"tcp": {"sack": "maybe"}}, "tcp.sack: `maybe`: write true or false"),
        ({"tcp": "bbr"}, "tcp: `bbr`: write a table"),
        ({"shaper": [{"control": "x"}]}, "shaper.0.control: `x`: write 'auto', 'cake-autorate' or 'fixed'"),
        ({"methods": [{"name": "m", "kind": 5}]}, "methods.0.kind: 5: write a text in quotes"),
        (
            {"link": {"name": "l", "title": "l", "up": [{"name": "a", "loss": {"model": "x"}}]}},
            "link.up.0.loss: {'model': 'x'}: write 'model' = 'random' or 'gilbert_elliott'",
        ),
        (
            {"link": {"name": "l", "title": "l", "up": [{"name": "a", "loss": {}}]}},
            "link.up.0.loss: {}: write it with 'model'",
        ),
        ({"qeue": []}, "qeue: unknown key, did you mean `queue`? (known: name, test, link,"),
    ],
)
def test_every_kind_of_fault_has_its_words(written: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(ScenarioSpec, {"test": "rrul", "link": "line-50"} | written, "scenario")
    text = str(caught.value)
    assert text.startswith(f"scenario: {said}"), text
    assert "input" not in text.lower()


def test_several_faults_of_a_call_are_told_as_well() -> None:
    with pytest.raises(UsageError) as caught:
        check(TestSpec, {"name": "t", "phases": {"load": 5}}, "test")
    assert str(caught.value) == (
        "test: title: this key is missing; "
        "phases.load: `5` is a time without its unit: write `5s`, `5ms` or `5us`"
    )


def test_faults_of_the_command_line_name_its_options() -> None:
    with pytest.raises(UsageError) as caught:
        weir.main(["run", "rrul", "--load", "30", "--ping", "0s"], standalone_mode=False)
    said = str(caught.value)
    assert "--load: `30` is a time without its unit: write `30s`, `30ms` or `30us`" in said
    assert "--ping: `0s`: write a time above 0" in said


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 1),
        (("text",), 2),
        (("list",), 5),
        (("list", 1), 5),
        (("t",), 9),
        (("t", "b", "c"), 10),
        (("t", "quoted key"), 11),
        (("x", 0), 13),
        (("x", 1, "y"), 16),
        (("gone",), 1),
        (("t", "gone"), 9),
        (("t", "b", "gone", 3), 10),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_line_of_a_key_is_found(path: tuple[str | int, ...], line: int, end: str) -> None:
    text = [
        "a = 1",
        'text = """',
        "a = 2",
        '[x]"""',
        "list = [ # ]",
        "    1,",
        "    2,",
        "]",
        "[t]",
        "b.c = 1",
        '"quoted key" = 1',
        "",
        "[[x]]",
        "y = 1",
        "[[x]]",
        "y = 1",
    ]
    assert line_of(path, end.join(text)) == line


def test_what_is_no_file_of_ours_is_called_so(tmp_path: Path) -> None:
    for name in ("/etc/passwd", "./rrul", str(tmp_path)):
        with pytest.raises(
            UsageError, match=r"is not a \.toml file: write the name of a test or a path to one"
        ):
            weir.main(["run", name], standalone_mode=False)
    with pytest.raises(
        UsageError, match=r"unknown test `rrull`, did you mean `rrul`\? \(known: bursts, bursts_11e, "
    ):
        weir.main(["run", "rrull"], standalone_mode=False)
    with pytest.raises(UsageError, match="unknown link `cable-20-9`, did you mean `cable-20-8`"):
        weir.main(["run", "rrul", "--link", "cable-20-9"], standalone_mode=False)


def test_brackets_without_end_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "deep.toml"
    file.write_text("a = " + "[" * 100_000)
    with pytest.raises(UsageError, match="its brackets are nested too deep"):
        load_link(str(file))


def test_a_file_full_of_faults_is_told_in_part(tmp_path: Path) -> None:
    file = tmp_path / "many.toml"
    file.write_text("\n".join(f"key{number} = 1" for number in range(50)))
    with pytest.raises(UsageError) as caught:
        load_link(str(file))
    assert len(str(caught.value).splitlines()) == 22
    assert str(caught.value).endswith("and 32 more")


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("x = 1\n" + "y = [\n" + "  1,\n" * 3000 + "]\n" + "z = 2\n", ("y", 2990), 2),
        ('note = """\n' + "words\n" * 3000 + '"""\n' + "up = 3\n", ("up",), 3003),
        ("".join(f"k{number} = {number}\n" for number in range(3000)), ("k2990",), 2991),
        ("[[up]]\n" * 3000, ("up", 2990), 2991),
        ("[[up]]\n" * 3000 + "a = [\n" + "1,\n" * 3000 + "]\n", ("up", 2999, "a", 5), 3001),
    ],
)
def test_a_line_is_found_with_work_that_grows_as_the_text_does(
    text: str, path: tuple[str | int, ...], line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work is counted in bytes that the TOML parser is given, and not in seconds."""
    parsed = 0

    def counted(part: str) -> dict[str, object]:
        nonlocal parsed
        parsed += len(part)
        return tomllib.loads(part)

    monkeypatch.setattr(faults, "_parse", counted)
    assert line_of(path, text) == line
    assert parsed <= 40 * len(text), parsed / len(text)


SCHEMAS = {
    name: json.loads(CliRunner().invoke(weir, ["list", "schemas", name]).output)
    for name in ("rules", "shaper")
}


def said_of(schema: dict[str, Any], value: object, whole: dict[str, Any]) -> list[str]:
    """What a schema says against a value, as far as schemas of models go."""
    if "$ref" in schema:
        return said_of(whole["$defs"][schema["$ref"].rpartition("/")[2]], value, whole)
    if "anyOf" in schema:
        found = [said_of(one, value, whole) for one in schema["anyOf"]]
        return [] if [] in found else found[0]
    kinds = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
    names = schema.get("type", "string")
    kind = tuple(kinds[name] for name in ([names] if isinstance(names, str) else names))
    if not isinstance(value, kind) or (int in kind and isinstance(value, bool)):
        return [f"{value!r} is no {names}"]
    if isinstance(value, list):
        return [told for one in value for told in said_of(schema["items"], one, whole)]
    if not isinstance(value, dict):
        return [] if value in schema.get("enum", [value]) else [f"{value!r} is none of {schema['enum']}"]
    properties, more = schema.get("properties", {}), schema["additionalProperties"]
    allowed = schema.get("propertyNames", {}).get("enum", value)
    told = [f"`{key}` is missing" for key in schema.get("required", []) if key not in value]
    for key, one in value.items():
        of = properties.get(key, more)
        told += said_of(of, one, whole) if of and key in allowed else [f"`{key}` is unknown"]
    return told


def test_schemas_of_a_shaper_take_what_is_read_and_nothing_else(tmp_path: Path) -> None:
    for name in shipped_rules():
        assert said_of(SCHEMAS["rules"], tomllib.loads(rules_text(name)), SCHEMAS["rules"]) == []
    for kind, text, fault in (
        ("rules", 'mark = true\n[class.bulk]\nup_max = "2mbit"', None),
        ("rules", 'rule = [{name = "a", class = "bulk", port = [53, "80-90"]}]', None),
        ("rules", 'rule = [{name = "a"}]', "`class` is missing"),
        ("rules", 'rule = [{name = "a", class = "fast", acks = true}]', "'fast' is none of"),
        ("rules", '[class.fast]\nup_max = "2mbit"', "`fast` is unknown"),
        ("rules", "marks = true", "`marks` is unknown"),
        ("shaper", 'up = "8mbit"\nreflectors = ["192.0.2.1"]\nmode = "bandwidth"', None),
        ("shaper", "up = 8", "8 is no string"),
        ("shaper", 'mode = "fast"', "'fast' is none of"),
    ):
        value = tomllib.loads(text)
        told = said_of(SCHEMAS[kind], value, SCHEMAS[kind])
        file = tmp_path / "file.toml"
        file.write_text(text)
        if fault is None:
            assert told == []
            read_shaper_file(kind, file)
        else:
            assert told[0].startswith(fault)
            with pytest.raises(UsageError):
                read_shaper_file(kind, file)


def read_shaper_file(kind: str, file: Path) -> object:
    return read_rules(str(file)) if kind == "rules" else read_config(file)


def test_schemas_of_a_shaper_say_of_every_key_what_it_means() -> None:
    for schema in SCHEMAS.values():
        for one in (schema, *schema.get("$defs", {}).values()):
            assert one["description"]
            for key, of in one.get("properties", {}).items():
                assert of.get("description"), key
                assert "null" not in str(of)


def test_schemas_are_those_of_each_kind_of_file() -> None:
    listed = json.loads(CliRunner().invoke(weir, ["list", "schemas", "--json"]).output)
    assert [one["name"] for one in listed] == ["scenario", "test", "link", "rules", "shaper"]
    for one in listed:
        assert one["schema"]["$schema"].startswith("https://json-schema.org/")
        if "$ref" in one["schema"]:
            name = one["schema"]["$ref"].removeprefix("#/$defs/")
            assert name == f"{one['name'].capitalize()}Spec"
            assert "name" in one["schema"]["$defs"]["LinkSpec"]["properties"]


def test_a_path_that_leads_nowhere_is_told_with_the_folder_from_which_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a file names is told with both places where it was looked for, other names with one."""
    (tmp_path / "mine").mkdir()
    scenario = tmp_path / "mine" / "one.toml"
    scenario.write_text('test = "ping"\n[[beside]]\ntest = "ping"\n[[beside]]\ntest = "gone.toml"\n')
    monkeypatch.chdir(tmp_path)
    where = f"relative paths are those from the working folder `{tmp_path}`"
    both = f"lies neither in `mine`, beside what names it, nor in the working folder `{tmp_path}`"
    with pytest.raises(UsageError) as caught:
        weirlab.run(Path("mine/one.toml"), link="line-50")
    assert str(caught.value) == f"mine/one.toml, line 5: beside.1.test: `gone.toml` {both}"
    hop = '[[{}]]\nname = "a"\ntrace = "gone.trace"\n'
    link = 'name = "l"\ntitle = "L"\n' + hop.format("up") + hop.format("down")
    (tmp_path / "mine" / "line.toml").write_text(link)
    with pytest.raises(UsageError) as caught:
        weirlab.run("ping", link="mine/line.toml")
    assert str(caught.value).startswith("mine/line.toml has 2 faults:\n")
    assert f"line 5: up.0.trace: `gone.trace` {both}\n" in str(caught.value)
    with pytest.raises(UsageError) as caught:
        weirlab.run("ping", link="gone.toml")
    assert str(caught.value) == f"gone.toml cannot be read: No such file or directory: {where}"
    given = {"name": "a", "trace": "gone.trace"}
    with pytest.raises(UsageError) as caught:
        weirlab.run("ping", link={"name": "l", "title": "L", "up": [given], "down": [given]})
    assert str(caught.value).endswith(f"No such file or directory: {where}")
    with pytest.raises(UsageError) as caught:
        weirlab.run("ping", link="/gone.toml")
    assert str(caught.value) == "/gone.toml cannot be read: No such file or directory"
    (tmp_path / "mine" / "away").mkdir()
    monkeypatch.chdir(tmp_path / "mine" / "away")
    (tmp_path / "mine" / "away").rmdir()
    with pytest.raises(UsageError) as caught:
        weirlab.run("ping", link="gone.toml")
    assert str(caught.value) == "gone.toml cannot be read: No such file or directory"
