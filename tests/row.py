"""Three routers in a row between a client and a server, in network namespaces that any user may make."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any

import pytest

from live import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SERVER = "10.0.3.2"
"""The last node of the row. Router number n answers as `router(n)`."""

SERVER_6 = "fd00:3::2"

SET_UP = r"""
set -e
mount -t tmpfs none /run
mkdir -p /run/netns
for node in 0 1 2 3 4; do
    ip netns add n$node
    ip -n n$node link set lo up
    nsenter --net=/run/netns/n$node sh -c '
        echo 1 >/proc/sys/net/ipv4/ip_forward
        echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
        echo 0 >/proc/sys/net/ipv4/icmp_ratelimit
        echo 0 >/proc/sys/net/ipv6/icmp/ratelimit'
done
for left in 0 1 2 3; do
    right=$((left + 1))
    ip -n n$left link add right type veth peer name left netns n$right
    ip -n n$left addr add 10.0.$left.1/24 dev right
    ip -n n$right addr add 10.0.$left.2/24 dev left
    ip -n n$left addr add fd00:$left::1/64 dev right nodad
    ip -n n$right addr add fd00:$left::2/64 dev left nodad
    ip -n n$left link set right up
    ip -n n$right link set left up
done
for node in 0 1 2 3; do
    ip -n n$node route add default via 10.0.$node.2
    ip -n n$node route add default via fd00:$node::2
done
for node in 1 2 3 4; do
    last=$((node - 1))
    far=0
    while [ $far -lt $last ]; do
        ip -n n$node route add 10.0.$far.0/24 via 10.0.$last.1
        ip -n n$node route add fd00:$far::/64 via fd00:$last::1
        far=$((far + 1))
    done
done
"""


def router(number: int, ip: int = 4) -> str:
    """The address from which router `number` of the row, from 1, answers the client."""
    return f"10.0.{number - 1}.2" if ip == 4 else str(IPv6Address(f"fd00:{number - 1}::2"))


def need_row() -> None:
    """Skips a test where there are no such tools, or users may not make namespaces."""
    for tool in ("unshare", "nsenter", "ip"):
        if shutil.which(tool) is None:
            pytest.skip(f"`{tool}` is not installed")
    done = subprocess.run([*NEW, "true"], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        pytest.skip(f"this user may make no namespaces: {done.stderr.strip()}")


def in_row(
    folder: Path, *commands: Sequence[str], before: str = "", server: Sequence[str] = ()
) -> list[subprocess.CompletedProcess[str]]:
    """Runs `weir` with each of `commands` at the client, one after another, without any right of root.

    Args:
        folder: where they run.
        commands: the words of each.
        before: shell commands that root of the namespaces does first. The client is `n0`, routers are `n1` to
            `n3`, and the server `n4`.
        server: words of a `weir` that runs at the server meanwhile.
    """
    text = folder / "row.sh"
    weir = [sys.executable, "-m", "weirlab"]
    lines = [SET_UP, before]
    if server:
        lines.append(f"nsenter --net=/run/netns/n4 {shlex.join([*weir, *server])} >serve 2>&1 & server=$!")
        lines.append("until grep -q address serve || ! kill -0 $server; do sleep 0.1; done")
    for number, words in enumerate(commands):
        command = shlex.join([*ORDINARY, *weir, *words])
        lines.append(f"nsenter --net=/run/netns/n0 {command} >out{number} 2>err{number} && code=0 || code=$?")
        lines.append(f"echo $code >code{number}")
    lines.append('[ -z "$server" ] || kill $server' if server else "true")
    text.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(
        [*NEW, "bash", str(text)],
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = []
    for number, words in enumerate(commands):
        out, err, code = ((folder / f"{name}{number}").read_text() for name in ("out", "err", "code"))
        found.append(subprocess.CompletedProcess(list(words), int(code), out, err))
    return found


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What a command has printed as JSON."""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


NEW = ("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child")
"""Before a command that is to be root in namespaces of its own."""

ORDINARY = ("unshare", "--user")
"""Before a command there that is to be an ordinary user: 65534, without any right over these namespaces."""
