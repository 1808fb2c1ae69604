"""`weir flent`, and what `weir list` says of Flent's tests."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click import BadParameter
from click.testing import CliRunner

from weirlab.cli import weir as group
from weirlab.cli.flent_command import command
from weirlab.errors import UsageError
from weirlab.flent import read_document
from weirlab.flent.tests import flent_tests
from weirlab.plots import KINDS
from weirlab.record import find_records

FLENT = Path(__file__).parent / "clients/.flent"


def translated(*words: str) -> list[str]:
    """The line into which a line of Flent's is translated, without where it writes to."""
    done = CliRunner().invoke(group, ["flent", *words, "--dry-run"])
    if done.exception is not None:
        raise done.exception
    line = next(line for line in " ".join(done.stderr.split()).split("note: ") if "weir run" in line)
    found = shlex.split(line[line.index("weir run") :])
    return found[1 : found.index("--out")]


@pytest.mark.parametrize(
    ("flent", "ours"),
    [
        (
            "rrul -l 60 -H server -t note -x",
            "run rrul --world net --host server --idle 5s --load 60s --cooldown 5s --note note",
        ),
        (
            "tcp_4up --link fios-25-25 -l 30 -d 2",
            "run tcp_nup --set streams=4 --link fios-25-25 --idle 2s --load 30s --cooldown 2s",
        ),
        (
            "rrul_be_nflows --link fios-25-25 --te upload_streams=3 --te download_streams=4",
            (
                "run rrul_be_nflows --link fios-25-25 --idle 5s --load 60s --cooldown 5s "
                "--set upload_streams=3 --set download_streams=4"
            ),
        ),
        ("voip --link fios-25-25 -l 10", "run voip --link fios-25-25 --idle 10s"),
        ("tcp_4up_squarewave --link fios-25-25", "run tcp_4up_squarewave --link fios-25-25"),
        ("bursts --link fios-25-25", "run bursts --link fios-25-25 --idle 5s --load 60s"),
        ("ping -H server -l 10 -6", "run ping --world net --host server --idle 10s --ip 6"),
        ("ping server -l 10 --ipv4", "run ping --world net --host server --idle 10s --ip 4"),
        (
            "rtt_fair -l 9 -H a -H b,::1 -H c -H d:80",
            (
                "run rtt_fair --world net --host a --host b,::1 --host c --host d:80 "
                "--idle 5s --load 9s --cooldown 5s"
            ),
        ),
        (
            "tcp_ndown -H s --te download_streams=8 --test-parameter tcp_cong_control=bbr -n b -t a",
            (
                "run tcp_ndown --world net --host s --idle 5s --load 60s --cooldown 5s --set streams=8 "
                "--cc bbr --note 'a: b'"
            ),
        ),
    ],
)
def test_options_of_flent_are_translated(flent: str, ours: str) -> None:
    assert translated(*shlex.split(flent)) == shlex.split(ours)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("rrull -H s", "did you mean `rrul`"),
        ("RRUL-BE -H s", "did you mean `rrul_be`"),
        ("rrul\udce9 -H s", "did you mean `rrul`"),
        ("sctp_vs_tcp -H s", "Weir has no SCTP"),
        ("udp_flood_var_up_stagger --link fios-25-25 -l 30", "at fixed times: leave -l and -d out"),
        ("rrul", "say where it runs"),
        ("rrul -H a -H b", "`rrul` has one server, and 2 are given .a, b.: give -H once"),
        (
            "rtt_fair -H a",
            "`rtt_fair` has 4 servers .*, and one is given .a.: give -H once for each, in that order",
        ),
        (
            "rtt_fair_var -H a -H b",
            "`rtt_fair_var` has in Flent as many servers as are given, and here 5; 2 are given .a, b.: give",
        ),
        (
            "udp_flood_var_up -H a",
            "and here 5; one is given .a.: give -H 5 times, or write a test of your own",
        ),
        ("rrul -H a --link fios-25-25", "-H and --link exclude each other"),
        (
            "rrul -H a -p all_scaled -o a.png",
            "-p all_scaled: write `weir plot RECORD` with `--kind three-plot` .each",
        ),
        ("rrul -H a --plot=tcp_rtt_cdf", "--plot tcp_rtt_cdf: write .* with `--kind cdf`, .*, `--kind bar`"),
        ("-p power rrul -H a", "-p power: Weir has no such chart: it needs another device or program"),
        (
            "-p ALL-scaled -o a.png",
            "-p ALL-scaled: Flent has no plot of that name: did you mean `all_scaled`?",
        ),
        ("rrul -H a -p", "-p: write `weir plot RECORD --kind CHART`; `weir list flent-plots` has"),
        ("-p moon", "-p moon: Flent has no plot of that name: `weir list flent-plots` names all"),
        (
            "-p box_combine -i a.flent.gz b.flent.gz -o a.png",
            "RECORD is what `weir import` makes of a data file",
        ),
        ("rrul -H a --output a.png", "--output: write `weir plot RECORD"),
        ("-i old.flent.gz", "-i: write `weir import FILE`"),
        (
            "-B batch.ini",
            "-B: write `weir batch`, .* in simulator and lab, or `weir flent` once for each test to",
        ),
        ("-b all -B batch.ini", "-b: write `weir batch`"),
        ("--gui", "--gui: write `weir ui FOLDER`"),
        ("rrul -H a --figure-width 10", "--figure-width: write `weir plot RECORD --kind CHART`"),
        ("rrul -H a --remote-metadata router", "--remote-metadata: a record has no metadata of other"),
        ("--list-tests", "write `weir list flent-tests`"),
        ("--list-plots", "write `weir list flent-plots`"),
        ("rrul -H a --swap-up-down", "--swap-up-down: Weir does not swap"),
        ("rrul -H a --local-bind ::1", "--local-bind: Weir chooses no address"),
        ("rrul -H a -l long", "-l long: write seconds"),
        ("rrul -H a --te bidir_streams=3", "are understood: tcp_cong_control"),
        ("rrul -H a --te x", "write KEY=VALUE"),
        ("rrul -H a -4 -6", "exclude each other"),
        (
            "tcp_4up --te upload_streams=2 --link cable-20-8",
            "^--test-parameter upload_streams=2: `tcp_4up` has 4 always, in Flent too; `tcp_nup` takes other",
        ),
        (
            "tcp_nup --te upload_streams=0 -H a",
            "^--test-parameter upload_streams: parameter `streams` is 0: write a number from 1 to 10000",
        ),
        (
            "rrul_be_nflows --te download_streams=20000 --link cable-20-8",
            "^--test-parameter download_streams: parameter `download_streams` is 20000: write a number",
        ),
        (
            "tcp_nup --te upload_streams=two -H a",
            "^--test-parameter upload_streams=two: write a number of streams, such as upload_streams=8",
        ),
        (
            "tcp_nup --te upload_streams=2 --te upload_streams=3 -H a",
            "^--test-parameter upload_streams is given twice, as `2` and `3`",
        ),
        (
            "rrul --te tcp_cong_control=bbr,cubic -H a",
            "^--test-parameter tcp_cong_control=bbr,cubic: write one of reno, cubic, bbr, .*, for all loads",
        ),
        ("rrul -l 0 -H a", "^-l: 0 leaves the loads of the test no time"),
        ("rrul -l 99999999999999 -H a", "^-l: `99999999999999s` is not a time"),
        ("rrul -d 99999999999999 -H a", "^-d: `99999999999999s` is not a time"),
        ("rrul --link nowhere", "nowhere"),
    ],
)
def test_what_cannot_be_translated_is_refused(words: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        translated(*words.split())


def test_a_data_file_is_no_test_and_is_told_how_to_be_read(tmp_path: Path) -> None:
    file = tmp_path / "rrul.flent.gz"
    file.write_bytes(b"")
    with pytest.raises(UsageError, match="is a file and no test of Flent's: write `weir import FILE`"):
        translated(str(file))


def test_a_test_is_meant_where_a_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = translated("rrul", "-H", "a")
    (tmp_path / "rrul").touch()
    assert translated("rrul", "-H", "a") == expected


def test_every_option_of_flent_is_known() -> None:
    """By Flent's own parsers, which are two: of tests and of plots."""
    sources = [FLENT / f"flent/{name}.py" for name in ("settings", "plotters")]
    if not all(source.is_file() for source in sources):
        pytest.skip("flent is not there: make clients")
    calls = re.findall(
        r"add_argument\(\s*((?:\"-[^\"]+\",\s*)+)", "".join(one.read_text() for one in sources)
    )
    theirs = {name for call in calls for name in re.findall(r"\"(-[^\"]+)\"", call)}
    assert {"-p", "--gui", "--figure-width", "--ipv6"} < theirs
    known = {name for parameter in command.params for name in parameter.opts}
    assert theirs - known == set()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("all_scaled", "write `--kind three-plot` (each flow, probe and their averages over time)"),
        (
            "tcp_rtt_cdf",
            "write `--kind cdf`, `--kind box`, `--kind bar` (with `--of tcp-rtt`: one picture each)",
        ),
        ("power", "it needs another device or program"),
    ],
)
def test_a_plot_of_flent_is_no_chart_and_its_charts_are_told(kind: str, said: str) -> None:
    with pytest.raises(BadParameter, match=re.escape(f"`{kind}` is a plot of Flent's: {said}")):
        group.main(["plot", "record", "--kind", kind], standalone_mode=False)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("three_plot", "there is no chart `three_plot`: did you mean `three-plot`?"),
        ("boxx", "there is no chart `boxx`: did you mean `box`?"),
        (
            "ALL-scaled",
            "did you mean Flent's plot `all_scaled`? For it write `--kind three-plot`",
        ),
        ("moon", "there is no chart `moon`: write one of three-plot, phases, "),
    ],
)
def test_a_chart_that_there_is_not_is_told_with_the_nearest(kind: str, said: str) -> None:
    with pytest.raises(BadParameter, match=re.escape(said)):
        group.main(["plot", "record", "--kind", kind], standalone_mode=False)


def test_a_run_leaves_a_record_and_a_file_for_flent(tmp_path: Path) -> None:
    words = ["tcp_2up", "--link", "cable-20-8", "-l", "2", "-d", "1", "-t", "-before", "-D", str(tmp_path)]
    done = CliRunner().invoke(group, ["flent", *words])
    assert done.exception is None, done.stderr
    (record,) = find_records(next(one for one in tmp_path.iterdir() if one.is_dir()))
    assert record.manifest.note == "-before"
    (file,) = tmp_path.glob("*.flent.gz")
    assert file.name.endswith(".-before.flent.gz")
    document = read_document(file)
    assert document.metadata["TITLE"] == "-before"
    assert (document.name, document.length_s, document.total_s) == ("tcp_nup", 2.0, 4.0)
    assert document.metadata["TEST_PARAMETERS"] == {"upload_streams": "2"}


def test_a_test_with_series_of_its_own_leaves_a_record_and_says_that_no_file_is_written(
    tmp_path: Path,
) -> None:
    words = ["voip", "--link", "cable-20-8", "-l", "2", "-D", str(tmp_path)]
    done = CliRunner().invoke(group, ["flent", *words])
    assert done.exception is None, done.stderr
    assert len(find_records(next(one for one in tmp_path.iterdir() if one.is_dir()))) == 1
    assert "no file for Flent is written" in " ".join(done.stderr.split())
    assert not list(tmp_path.glob("*.flent.gz"))


def test_all_tests_of_flent_are_listed_with_worlds_and_reasons() -> None:
    found = json.loads(CliRunner().invoke(group, ["list", "flent-tests", "--json"]).output)
    assert [one["name"] for one in found] == list(flent_tests())
    assert len(found) == 82
    by_name = {one["name"]: one for one in found}
    assert by_name["rrul"]["worlds"] == {"sim": True, "lab": True, "net": True, "kernel": True}
    assert by_name["rtt_fair"]["worlds"] == {"sim": True, "lab": True, "net": True, "kernel": True}
    assert len(by_name["rtt_fair"]["hosts"]) == 4
    assert by_name["udp_flood"]["worlds"] == {"sim": True, "lab": True, "net": True, "kernel": True}
    assert by_name["voip-1up"]["worlds"] == {"sim": True, "lab": True, "net": True, "kernel": True}
    assert by_name["http"]["worlds"] == {"sim": True, "lab": True, "net": True, "kernel": True}
    assert by_name["http"]["reason"] == ""
    assert by_name["http"]["kernel"] == []
    assert by_name["reno_cubic_westwood_lp"]["kernel"] == ["lp", "westwood"]
    assert by_name["power_usage"]["worlds"] == {"sim": False, "lab": False, "net": False, "kernel": False}
    assert all(one["reason"] for one in found if not all(one["worlds"].values()))
    shown = CliRunner().invoke(group, ["list", "tests"]).output
    assert all(name in shown for name in by_name)
    assert "streams=4" in CliRunner().invoke(group, ["list", "flent-tests", "tcp_4up"]).output


def test_all_plots_of_flent_are_listed_with_charts_that_there_are_or_a_reason() -> None:
    found = json.loads(CliRunner().invoke(group, ["list", "flent-plots", "--json"]).output)
    # Flent 2.3 has 98 names of plots over all its tests.
    assert len({one["name"] for one in found}) == len(found) == 98
    assert all(set(one["charts"]) <= set(KINDS) for one in found)
    assert all(one["note"] for one in found)
    by_name = {one["name"]: one["charts"] for one in found}
    assert by_name["all_scaled"] == ["three-plot"]
    assert by_name["bar_fairness"] == ["bar"]
    assert by_name["power"] == []
    shown = CliRunner().invoke(group, ["list", "flent-plots"]).output
    assert all(name in shown for name in by_name)


def test_options_that_change_nothing_say_what_there_is() -> None:
    done = CliRunner().invoke(
        group, ["flent", "rrul", "-H", "a", "-x", "-s", "0.1", "--socket-stats", "--dry-run"]
    )
    said = " ".join(done.stderr.split())
    assert "-s changes nothing: a record has every sample" in said
    assert "no sysctls, addresses, gateways or qdiscs" in said
    assert "all metadata" not in said
    assert "--socket-stats changes nothing: a record always has the state of TCP senders" in said
