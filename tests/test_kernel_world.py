"""The world kernel where there is no kernel for it: what is refused, and in which words."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from weirlab.errors import LabError, UsageError
from weirlab.lab.client import OwnKernel, ask
from weirlab.scenario import ScenarioSpec, resolve
from weirlab.sweeps.runs import Work, identity
from weirlab.webapp.runs import worlds
from weirlab.worlds import world_named
from weirlab.worlds.kernel import build_of, found_kernel, release_of

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

RUN = ("run", "tcp_download", "--link", "cable-20-8", "--world", "kernel")


def test_without_a_kernel_the_refusal_says_how_to_get_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    weir_here: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    monkeypatch.delenv("WEIR_KERNEL", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("weirlab.worlds.kernel.CHECKOUT", tmp_path)
    done = weir_here(*RUN, "--out", "out")
    said = " ".join(done.stderr.split())
    assert done.returncode == 2
    assert f"there is no `{tmp_path}/data/weir/linux`" in said
    assert "`make kernel`" in said
    assert "WEIR_KERNEL" in said
    assert not (tmp_path / "out").exists()


def test_no_world_is_run_for_nothing_where_another_one_has_no_kernel(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    weir_here: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    monkeypatch.setenv("WEIR_KERNEL", str(tmp_path / "gone"))
    done = weir_here("validate", "tcp_download", "--worlds", "sim,kernel", "--load", "200ms", "--out", "out")
    assert (done.returncode, "there is no file" in done.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


def test_a_kernel_that_is_named_must_be_there_and_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_KERNEL", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match=f"WEIR_KERNEL: there is no file `{tmp_path}/gone`"):
        found_kernel()
    text = tmp_path / "text"
    text.write_text("no program\n")
    for other in (Path("/bin/true"), text):
        monkeypatch.setenv("WEIR_KERNEL", str(other))
        with pytest.raises(UsageError, match=f"`{other}` is no user-mode Linux with time travel"):
            found_kernel()


def test_a_kernel_is_looked_for_where_it_is_built_and_where_a_user_puts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEIR_KERNEL", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("weirlab.worlds.kernel.CHECKOUT", tmp_path)
    own, built = tmp_path / "data/weir/linux", tmp_path / "target/kernel/linux"
    for kernel in (own, built):
        kernel.parent.mkdir(parents=True)
        kernel.write_text(SHOWS_A_CONFIGURATION)
        kernel.chmod(0o700)
        assert found_kernel() == kernel


def test_a_program_that_stops_without_an_answer_is_told_with_its_last_words(tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    kernel.write_text("#!/bin/sh\necho one\necho 'Kernel panic: no root'\nexit 3\n")
    kernel.chmod(0o700)
    said = "the kernel ended without an answer, with code 3: one / Kernel panic: no root"
    with pytest.raises(LabError, match=said):
        ask({"do": "check"}, kernel=OwnKernel(image=kernel, seed=1))
    kernel.unlink()
    with pytest.raises(LabError, match="the kernel ended without an answer, with code 1"):
        ask({"do": "check"}, kernel=OwnKernel(image=kernel, seed=1))


def test_what_a_guest_says_is_told_apart_from_what_its_kernel_says(tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    kernel.write_text(SAYS_THREE_VIEWS)
    kernel.chmod(0o700)
    seen: list[int] = []
    folder = tmp_path / "record, with a comma"

    def on_view(view: object) -> bool:
        assert isinstance(view, dict)
        seen.append(view["t_ns"])
        return True

    request = {"do": "run", "record": {"folder": str(folder), "manifest": {}}}
    answer = ask(request, on_view, kernel=OwnKernel(image=kernel, seed=7))
    assert seen == [1, 2, 3]
    # The guest has its own name for the folder, by a link in the shared one, and its seed.
    assert answer["complete"] is True
    assert answer["record"] == str(folder)
    assert answer["request"]["record"]["folder"] == "/dev/weir-record"
    assert answer["request"]["virtual_time"] is True
    assert answer["seed"] == 7
    assert not Path(answer["folder"]).exists()


def test_the_data_path_is_the_kernels_unless_another_is_asked_for() -> None:
    assert vars(world_named("kernel")) == {"datapath": "kernel"}
    assert vars(world_named("kernel", "userspace")) == {"datapath": "userspace"}
    assert vars(world_named("lab")) == {"datapath": "userspace"}
    with pytest.raises(UsageError, match="world `sim` has no kernel in it"):
        world_named("sim", "kernel")


def test_a_shaper_is_refused() -> None:
    spec = {"test": "tcp_download", "link": "cable-20-8", "shaper": ["auto"]}
    [run] = resolve(ScenarioSpec.model_validate(spec))
    with pytest.raises(UsageError, match="shaper: the world kernel has no NFQUEUE"):
        world_named("kernel").check(run)


def test_a_run_is_refused_before_anything_is_written_if_the_kernel_cannot_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = tmp_path / "linux"
    kernel.write_text(SHOWS_A_CONFIGURATION)
    kernel.chmod(0o700)
    monkeypatch.setenv("WEIR_KERNEL", str(kernel))
    [run] = resolve(ScenarioSpec(test="tcp_download", link="cable-20-8"))
    with pytest.raises(UsageError, match="the kernel ended without an answer, with code 0: # Linux/um 6"):
        world_named("kernel").check(run)


def test_a_file_that_is_no_kernel_is_run_once_until_it_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The web application asks at each form whether there is a kernel."""
    kernel, calls = tmp_path / "linux", tmp_path / "calls"
    kernel.write_text(f"#!/bin/sh\necho called >>'{calls}'\n")
    kernel.chmod(0o700)
    monkeypatch.setenv("WEIR_KERNEL", str(kernel))
    for _ in range(3):
        assert worlds() == ["sim", "lab"]
    assert calls.read_text() == "called\n"
    kernel.write_text(SHOWS_A_CONFIGURATION)
    assert worlds() == ["sim", "lab", "kernel"]


def test_kernels_of_one_release_are_known_by_their_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, found = tmp_path / "linux", []
    [run] = resolve(ScenarioSpec(test="tcp_download", link="cable-20-8"))
    for patch in ("", "# a patch\n"):
        kernel.write_text(SHOWS_A_CONFIGURATION + patch)
        kernel.chmod(0o700)
        assert release_of(kernel) == "6.12.117"
        digest = hashlib.sha256(kernel.read_bytes()).hexdigest()
        assert build_of(kernel) == f"6.12.117 {digest[:12]}"
        found.append(identity(run, {}, Work(world="kernel", kernel=build_of(kernel))))
    assert found[0] != found[1]
    monkeypatch.setenv("WEIR_KERNEL", str(kernel))
    assert Work(world="kernel", kernel=build_of(kernel)).made_world().name == "kernel"
    with pytest.raises(
        UsageError, match=r"here is 6\.12\.117 \w{12}, and 6\.12\.117 0123456789ab is asked for"
    ):
        Work(world="kernel", kernel="6.12.117 0123456789ab").made_world()


SHOWS_A_CONFIGURATION = """#!/bin/sh
echo '# Linux/um 6.12.117 Kernel Configuration'
echo 'CONFIG_UML_TIME_TRAVEL_SUPPORT=y'
"""

SAYS_THREE_VIEWS = """#!/bin/sh
echo '[ 0.1 ] {"view": of the kernel'
printf '{"view": {"t_ns": 1, "queues": {}}}\\r\\n'
printf '{"view": {"t_ns": 2, "que'
sleep 0.1
printf 'ues": {}}}\\r\\nrandom: crng init done\\r\\n{"view": {"t_ns": 3, "queues": {}}}\\r\\n'
echo '{"answer": {"complete": true, "request": '"$(cat request.json)"', "seed": '"$UML_SEED"', "record": "'"$(
    readlink record)"'", "folder": "'"$PWD"'"}}'
sleep 60 &
"""
"""Stands for a kernel that leaves a process behind."""
