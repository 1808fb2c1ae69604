"""The package of OpenWrt: its scripts run, with the functions of OpenWrt that they call."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from weirlab import _native

PACKAGE = Path(__file__).parent.parent / "packaging" / "openwrt"

OPENWRT = r"""
# As /lib/functions.sh has them. Settings are variables there: CONFIG_<section>_<option>.
config_load() {
    [ "$1" = weir ]
    for one in $OPTIONS; do option_cb "$one" ""; done
    for one in $LISTS; do list_cb "$one" ITEM; done
}
config_foreach() { [ "$2" = shaper ]; for one in $SECTIONS; do "$1" "$one"; done; }
config_get() { eval "$1=\${CONFIG_${2}_${3}:-\$4}"; }
config_get_bool() { config_get "$@"; eval "case \$$1 in 1|on|true|yes|enabled) $1=1;; *) $1=0;; esac"; }
# Of a list there are its length and its items; of an option there is neither.
config_list_foreach() {
    local at=1 most item
    config_get most "$1" "$2_LENGTH" 0
    while [ $at -le "$most" ]; do config_get item "$1" "$2_ITEM$at"; "$3" "$item"; at=$((at + 1)); done
}
logger() { echo "log: $3"; }
procd_open_instance() { echo "instance $1"; }
procd_close_instance() { echo end; }
procd_set_param() { echo "$*"; }
procd_add_reload_trigger() { echo "reload on $1"; }
"""

NETWORK = 'network_get_device() { eval "$1=\\$DEVICE_$2"; eval "[ -n \\"\\$$1\\" ]"; }\n'


# What the package includes, as far as it asks for it: of the SDK, and of the feed with Rust.
SDK = {
    "rules.mk": "INCLUDE_DIR := $(TOPDIR)/include\n",
    "include/package.mk": "define BuildPackage\ncompile:\n\t$(Build/Compile)\nendef\n",
    "feeds/packages/lang/rust/rust-package.mk": (
        "CARGO_PKG_ARGS = --locked\n"
        "Build/Compile/Cargo = @echo $(1): $(RUST_PKG_FEATURES) $(CARGO_PKG_ARGS) $(2)\n"
        "define RustBinPackage\nendef\n"
    ),
}


def shells() -> list[list[str]]:
    """Shells that are there: OpenWrt's own is that of busybox."""
    return [["sh"], *([["busybox", "ash"]] if shutil.which("busybox") else [])]


def run(folder: Path, shell: list[str], function: str, **variables: str) -> list[str]:
    """The lines that a function of the script says, with these variables set; files go into `folder`."""
    network = folder / "lib" / "functions" / "network.sh"
    network.parent.mkdir(parents=True, exist_ok=True)
    network.write_text(NETWORK)
    script = f'set -e\n{OPENWRT}\n. "$SCRIPT"\nFOLDER="$OUT"\n{function}\n'
    given = [name.split("_", 2)[2] for name in variables if name.startswith("CONFIG_")]
    options = [name for name in given if not re.search("_(LENGTH|ITEM[0-9]+)$", name)]
    lists = [name.removesuffix("_LENGTH") for name in given if name.endswith("_LENGTH")]
    done = subprocess.run(
        [*shell, "-c", script],
        env={
            "PATH": os.environ["PATH"],
            "IPKG_INSTROOT": str(folder),
            "OUT": str(folder / "out"),
            "SCRIPT": str(PACKAGE / "files" / "weir.init"),
            "OPTIONS": " ".join(options),
            "LISTS": " ".join(lists),
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", shells(), ids=" ".join)
def test_each_section_that_is_enabled_is_a_shaper_with_its_settings(tmp_path: Path, shell: list[str]) -> None:
    said = run(
        tmp_path,
        shell,
        "start_service",
        SECTIONS="off wan lan gone",
        DEVICE_wan="pppoe-wan",
        CONFIG_off_interface="wan",
        CONFIG_wan_enabled="1",
        CONFIG_wan_up="18mbit",
        CONFIG_wan_queue_up="cake diffserv4",
        CONFIG_wan_reflectors_LENGTH="2",
        CONFIG_wan_reflectors_ITEM1="192.0.2.1",
        CONFIG_wan_reflectors_ITEM2="udp:[2001:db8::1]",
        CONFIG_lan_enabled="on",
        CONFIG_lan_device="br-lan.2",
        CONFIG_lan_rules='/etc/weir/a "b" \\c\nd\n.toml',
        CONFIG_gone_enabled="1",
        CONFIG_gone_interface="wan6",
    )
    out = tmp_path / "out"

    def instance(section: str, device: str) -> list[str]:
        file = out / f"{section}.toml"
        command = f"command /usr/bin/weir-agent shape {device} --quiet --config {file}"
        rest = [f"file {file}", f"netdev {device}", "respawn 3600 5 5", "stderr 1", "end"]
        return [f"instance {section}", command, *rest]

    assert said == [
        *instance("wan", "pppoe-wan"),
        *instance("lan", "br-lan.2"),
        "log: interface wan6 has no device yet: its shaper starts when it comes up",
    ]
    assert sorted(file.name for file in out.iterdir()) == ["lan.toml", "wan.toml"]
    assert (out / "wan.toml").read_text().splitlines() == [
        'up = "18mbit"',
        'queue_up = "cake diffserv4"',
        'reflectors = ["192.0.2.1", "udp:[2001:db8::1]"]',
    ]
    assert (out / "lan.toml").read_text() == 'rules = "/etc/weir/a \\"b\\" \\\\c\\nd\\n.toml"\n'


@pytest.mark.parametrize("shell", shells(), ids=" ".join)
def test_one_reflector_may_be_an_option_and_an_option_that_there_is_not_is_told(
    tmp_path: Path, shell: list[str]
) -> None:
    said = run(
        tmp_path,
        shell,
        "start_service",
        SECTIONS="wan",
        DEVICE_wan="eth0",
        CONFIG_wan_enabled="1",
        CONFIG_wan_reflectors="192.0.2.1",
        CONFIG_wan_upmax="35mbit",
    )
    assert said[0] == "log: there is no option upmax: it is left out"
    assert (tmp_path / "out" / "wan.toml").read_text() == 'reflectors = ["192.0.2.1"]\n'


@pytest.mark.parametrize("shell", shells(), ids=" ".join)
def test_a_list_that_there_is_not_is_told(tmp_path: Path, shell: list[str]) -> None:
    said = run(
        tmp_path,
        shell,
        "start_service",
        SECTIONS="wan",
        DEVICE_wan="eth0",
        CONFIG_wan_enabled="1",
        CONFIG_wan_reflector_LENGTH="1",
        CONFIG_wan_reflector_ITEM1="192.0.2.1",
        CONFIG_wan_reflectors_LENGTH="1",
        CONFIG_wan_reflectors_ITEM1="192.0.2.2",
    )
    assert [line for line in said if line.startswith("log: ")] == [
        "log: there is no list reflector: its ITEM is left out"
    ]
    assert (tmp_path / "out" / "wan.toml").read_text() == 'reflectors = ["192.0.2.2"]\n'


@pytest.mark.parametrize("shell", shells(), ids=" ".join)
def test_a_shaper_reads_what_the_script_writes(tmp_path: Path, shell: list[str]) -> None:
    """Every setting of the shaper's, and no other, as its own reader has them."""
    values = {
        "up": "auto",
        "down": "auto",
        "up_max": "20mbit",
        "down_max": "90mbit",
        "mode": "bandwidth",
        "queue_up": "cake diffserv4",
        "queue_down": "fq_codel",
        "framing": "docsis",
        "auth": "/etc/weir/secret",
        "backend": "userspace",
        "rules": "usual",
        "state": "/etc/weir/wan.json",
        "time": "3600s",
        "reflectors": "192.0.2.1",
    }
    script = (PACKAGE / "files" / "weir.init").read_text()
    named = re.search(r'SETTINGS="([\w ]+)"', script)
    assert named is not None
    assert (
        {*named[1].split(), "reflectors"}
        == set(values)
        == set(_native.shaper_schemas()["shaper"]["properties"])
    )
    settings = {f"CONFIG_wan_{name}": value for name, value in values.items()}
    settings |= {"SECTIONS": "wan", "DEVICE_wan": "eth0", "CONFIG_wan_enabled": "1"}
    run(tmp_path, shell, "start_service", **settings)
    read = _native.read_shaper_config(tmp_path / "out" / "wan.toml")
    assert set(read) == set(values)


@pytest.mark.parametrize("shell", shells(), ids=" ".join)
def test_a_change_of_the_settings_starts_the_shapers_anew(tmp_path: Path, shell: list[str]) -> None:
    assert run(tmp_path, shell, "service_triggers") == ["reload on weir"]


@pytest.mark.parametrize("shell", shells(), ids=" ".join)
def test_only_an_interface_that_comes_up_concerns_the_shapers(tmp_path: Path, shell: list[str]) -> None:
    service = tmp_path / "weir"
    service.write_text('#!/bin/sh\necho "$1"\n')
    service.chmod(0o755)
    hotplug = (PACKAGE / "files" / "weir.hotplug").read_text().replace("/etc/init.d/weir", str(service))
    assert str(service) in hotplug
    for action, said in (("ifup", "enabled\nreload\n"), ("ifdown", "")):
        done = subprocess.run(
            [*shell, "-c", hotplug],
            env={"ACTION": action, "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert done.stdout == said


def test_cargo_gets_the_features_of_a_router_and_no_argument_twice(tmp_path: Path) -> None:
    """A feed's Rust begins its arguments anew when it is included, and asks for the lock file itself."""
    for name, text in SDK.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["make", "-s", "-f", str(PACKAGE / "Makefile"), f"TOPDIR={tmp_path}", "compile"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == "crates/agent: test --locked --no-default-features\n"


def test_the_package_installs_the_files_that_are_there() -> None:
    makefile = (PACKAGE / "Makefile").read_text()
    installed = set(re.findall(r"\./files/([\w.]+) ", makefile))
    assert installed == {file.name for file in (PACKAGE / "files").iterdir()}
