"""What a scenario compares: links, queues, shapers and congestion controls, each with each, none twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import weirlab
from weirlab.errors import UsageError
from weirlab.scenario import ScenarioSpec, load_link, resolve
from weirlab.scenario.catalogue import check

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Weir = Callable[..., subprocess.CompletedProcess[str]]

BRIEFLY: dict[str, Any] = {"phases": {"idle": "0s", "load": "200ms", "cooldown": "0s"}}
SHORT = ("--idle", "0s", "--load", "300ms", "--cooldown", "0s", "--no-charts")


def scenario(**words: Any) -> ScenarioSpec:
    return check(ScenarioSpec, {"test": "rrul", "link": "cable-20-8"} | words, "scenario")


def controls(run: Any) -> set[str]:
    return {flow["tcp"]["congestion_control"] for flow in run.scenario["flows"]}


def test_links_queues_and_congestion_controls_multiply() -> None:
    runs = resolve(
        scenario(
            link=["cable-20-8", load_link("vdsl-100-40")],
            queue=["pfifo", "codel"],
            cc=["cubic", "bbr"],
            repeat=2,
        )
    )
    assert [(run.link.name, run.queue, run.cc, run.seed) for run in runs] == [
        (link, queue, cc, seed)
        for link in ("cable-20-8", "vdsl-100-40")
        for queue in ("pfifo", "codel")
        for cc in ("cubic", "bbr")
        for seed in (1, 2)
    ]
    assert all(controls(run) == {run.cc} for run in runs)
    rates = {run.link.name: run.scenario["path"]["down"][0]["reference_rate_bps"] for run in runs}
    assert rates == {"cable-20-8": 20_000_000, "vdsl-100-40": 109_341_000}


def test_each_direction_has_queues_to_compare() -> None:
    both = resolve(scenario(queue_up=["codel", "pie"], queue_down=["red limit 1mb avpkt 1000", "fq_codel"]))
    assert [run.queue for run in both] == [
        "up codel, down red limit 1mb avpkt 1000",
        "up codel, down fq_codel",
        "up pie, down red limit 1mb avpkt 1000",
        "up pie, down fq_codel",
    ]
    one = resolve(scenario(queue=["pfifo", "default"], queue_down=["codel", "fq_codel"]))
    assert [run.queue for run in one] == [
        "up pfifo, down codel",
        "up pfifo, down fq_codel",
        "up default, down codel",
        "up default, down fq_codel",
    ]
    assert [run.scenario["path"]["up"][0]["queue"] for run in one] == ["pfifo"] * 2 + ["pfifo_fast"] * 2


def test_one_congestion_control_is_that_of_all_loads() -> None:
    [run] = resolve(scenario(cc="bbr"))
    assert controls(run) == {"bbr"}
    with pytest.raises(UsageError, match=r"`cc` and `tcp\.congestion_control` say the same"):
        scenario(cc="bbr", tcp={"congestion_control": "cubic"})


def test_what_is_given_twice_counts_once_and_is_said(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="queue `fq_codel` is given 2 times: it counts once"):
        records = weirlab.run("ping", queue=["fq_codel", " fq_codel  "], out=tmp_path / "a", **BRIEFLY)
    assert len(records) == 1
    with pytest.warns(UserWarning, match="link `line-50` is given 2 times"):
        assert len(weirlab.run("ping", link=["line-50"] * 2, out=tmp_path / "b", **BRIEFLY)) == 1
    with pytest.warns(UserWarning, match="cc `bbr` is given 3 times"):
        assert len(weirlab.run("tcp_upload", cc=["bbr"] * 3, out=tmp_path / "c", **BRIEFLY)) == 1


def test_folders_tell_configurations_apart(tmp_path: Path) -> None:
    records = weirlab.run(
        "tcp_upload", link=["cable-20-8", "line-50"], cc=["cubic", "bbr"], out=tmp_path / "out", **BRIEFLY
    )
    assert [record.path.name for record in records] == [
        "01-cable-20-8-default-cubic",
        "02-cable-20-8-default-bbr",
        "03-line-50-default-cubic",
        "04-line-50-default-bbr",
    ]
    assert [record.manifest.link["name"] for record in records] == ["cable-20-8"] * 2 + ["line-50"] * 2


def test_the_command_line_compares_links_and_congestion_controls(weir_here: Weir, tmp_path: Path) -> None:
    words = ("--link", "cable-20-8", "--link", "vdsl-100-40", "--cc", "cubic", "--cc", "bbr")
    done = weir_here("run", "tcp_upload", *words, *SHORT, "--json", "--out", "o")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["configurations"]) == 4
    assert len([one for one in (tmp_path / "o").iterdir() if one.is_dir()]) == 4
    again = weir_here("run", "tcp_upload", "--queue", "codel", "--queue", "codel", *SHORT, "--out", "p")
    assert again.returncode == 0, again.stderr
    assert "queue `codel` is given 2 times: it counts once" in again.stderr


def test_the_command_line_stands_in_for_the_file(weir_here: Weir, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'test = "tcp_upload"\nlink = "line-50"\nqueue_up = ["codel", "pie"]\n[tcp]\n'
        'congestion_control = "reno"\necn = true\n[phases]\nidle = "0s"\nload = "300ms"\ncooldown = "0s"\n'
    )
    done = weir_here(
        "run", "s.toml", "--cc", "bbr", "--queue-up", "fq_codel", "--no-charts", "--json", "--out", "o"
    )
    assert done.returncode == 0, done.stderr
    [folder] = [one for one in (tmp_path / "o").iterdir() if one.is_dir()]
    [flow] = json.loads((folder / "manifest.json").read_text())["scenario"]["flows"]
    assert flow["tcp"]["congestion_control"] == "bbr"
    assert flow["tcp"]["overrides"]["ecn"] is True


def flow(**words: Any) -> dict[str, Any]:
    return _test(flows=[{"name": "f", "direction": "up", **words}])


def probe(**words: Any) -> dict[str, Any]:
    return _test(probes=[{"name": "p", "kind": "udp", **words}])


def _test(**words: Any) -> dict[str, Any]:
    return {"test": {"name": "t", "title": "t", "phases": {"load": "1s"}, **words}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"seed": 2**63 - 1, "repeat": 2}, f"write a seed of {2**63 - 2} or less"),
        ({"seed": True}, "seed"),
        ({"repeat": True}, "repeat"),
        ({"cc": ""}, "cc"),
        ({"cc": []}, "cc"),
        ({"cc": ["cubic", ""]}, "cc"),
        ({"tcp": {"congestion_control": ""}}, "tcp.congestion_control"),
        ({"tcp": {"profile": ""}}, "tcp.profile"),
        ({"link": []}, "link"),
        ({"queue_up": []}, "queue_up"),
        ({"queue": [""]}, "queue"),
        (flow(count=0), "0: write a whole number from 1 to 10000"),
        (flow(count=-1), "-1: write a whole number from 1 to 10000"),
        (flow(count=10**9), "1000000000: write a whole number from 1 to 10000"),
        (flow(count=2.0), "2.0: write a whole number from 1 to 10000"),
        (flow(count=True), "true: write a whole number from 1 to 10000"),
        (flow(count=""), "``: write a whole number from 1 to 10000"),
        (flow(bytes=0), "`0`: write 1 or more"),
        (flow(name=""), "name"),
        (probe(payload=65_508), "`65508`: write 65507 bytes or less"),
        (probe(payload=100_000), "`100000`: write 65507 bytes or less"),
        (_test(hosts=[{"name": ""}]), "hosts.0.name"),
    ],
)
def test_what_means_nothing_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(scenario(**words))
    assert message in str(caught.value)


def test_a_parameter_makes_no_more_flows_than_a_number() -> None:
    wide = {"default": 10_001, "minimum": 0, "maximum": 10**9, "meaning": "flows"}
    test = flow(count="n")["test"] | {"parameters": {"n": wide}}
    for count in (0, 10_001):
        with pytest.raises(UsageError, match=f"parameter `n` is {count}: write a number from 1 to 10000"):
            resolve(scenario(test=test, parameters={"n": count}))


def test_a_secret_needs_a_server(weir_here: Weir, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("open sesame, it is me\n")
    done = weir_here("run", "rrul", "--auth", "secret")
    assert done.returncode == 2
    assert "auth: only the world net has a server that asks for a secret, not world `sim`" in done.stderr


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -0.1])
def test_no_probability_is_no_number(number: float) -> None:
    hop = {"name": "a", "rate": "1mbit", "duplicate": number}
    with pytest.raises(UsageError, match=r"duplicate"):
        scenario(link={"name": "l", "title": "l", "up": [hop], "down": [hop]})
