"""What `weir lab exec` is told of its lines: that of one link, or one for each path of the client."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.cli import completion
from weirlab.cli.options import option
from weirlab.cli.scenario_words import DEFAULT_LINK
from weirlab.errors import UsageError
from weirlab.scenario import DEFAULT_QUEUE, MAX_CLIENT_PATHS, join_paths, resolve
from weirlab.scenario.files import Files, told

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from weirlab.scenario import ResolvedRun

    Option = Callable[[Callable[..., None]], Callable[..., None]]

__all__ = ["line_options", "resolved"]


def line_options() -> list[Option]:
    """The options that say what the lines are."""
    queue = "NAME=TC is for the path of that name."
    return [
        option(
            "--link",
            shell_complete=completion.links,
            help=f"Link, by name or .toml file.  [default: {DEFAULT_LINK}]",
        ),
        option(
            "--path",
            "paths",
            multiple=True,
            metavar="NAME=LINK",
            help="A path of a client that has several, in place of --link; repeat it for each, up to "
            f"{MAX_CLIENT_PATHS}. The first is device `weir0`, by which everything goes that is not bound to "
            "another.",
        ),
        option(
            "--queue",
            "queues",
            multiple=True,
            shell_complete=completion.queues,
            metavar="TC",
            help=f"Queue spec, in tc syntax. {queue}",
        ),
        option(
            "--queue-up",
            "queues_up",
            multiple=True,
            shell_complete=completion.queues,
            metavar="TC",
            help=f"Queue for the upload direction only. {queue}",
        ),
        option(
            "--queue-down",
            "queues_down",
            multiple=True,
            shell_complete=completion.queues,
            metavar="TC",
            help=f"Queue for the download direction only. {queue}",
        ),
    ]


def resolved(words: dict[str, Any]) -> ResolvedRun:
    """The run without loads and probes, as long as a program may take, over the lines that `words` tell.

    Raises:
        UsageError: if they cannot be had so.
    """
    if not words["paths"]:
        return _resolved(words, words["link"] or DEFAULT_LINK, None, ())
    if words["link"] is not None:
        raise UsageError(
            f"--link `{words['link']}` and --path exclude each other: write `--path NAME={words['link']}`"
        )
    paths = [_path(written) for written in words["paths"]]
    names = [name for name, _ in paths]
    return join_paths([(name, _resolved(words, link, name, names)) for name, link in paths])


def _path(written: str) -> tuple[str, str]:
    """Name and link of a path."""
    name, equals, link = written.partition("=")
    if not (name and equals and link):
        raise UsageError(
            f"--path `{written}`: write a name and the path's link, such as `wifi={DEFAULT_LINK}`"
        )
    return name, link


def _resolved(words: dict[str, Any], link: str, path: str | None, paths: Collection[str]) -> ResolvedRun:
    """The run over `link`, with the queues of that path.

    Raises:
        UsageError: if the link or a queue cannot be used; of several paths it says which.
    """
    said = {
        "test": {"name": "exec", "title": "A program on the line", "phases": {"load": "86400s"}},
        "link": link,
        "queue": [queue_of(words["queues"], "--queue", path, paths) or DEFAULT_QUEUE],
        "queue_up": queue_of(words["queues_up"], "--queue-up", path, paths),
        "queue_down": queue_of(words["queues_down"], "--queue-down", path, paths),
        "seed": words["seed"],
        "ip": int(words["ip"]),
    }
    try:
        _refuse_routes(link, path)
        told(lambda: _native.read_spec("ScenarioSpec", said, "command line", []))
        return resolve(said)[0]
    except UsageError as error:
        raise error if path is None else UsageError(f"path `{path}`: {error}") from None


def _refuse_routes(link: str, path: str | None) -> None:
    """Refuses a link that has routes: a program has no test to choose one by.

    Raises:
        UsageError: what can be done instead; also if there is no such link.
    """
    routes = list(told(lambda: _native.load_link(link, Files())).get("routes", {}))
    if not routes:
        return
    instead = "give a link of one of its routes" if path else "give a link for each as `--path NAME=LINK`"
    raise UsageError(
        f"link `{link}` has routes ({', '.join(routes)}), by which the servers of a test are reached, and "
        f"here is none: leave `routes` out, or {instead}"
    )


def queue_of(given: Sequence[str], option: str, path: str | None, paths: Collection[str]) -> str | None:
    """The queue spec of `path` among those `given` to `option`: its own, or that of all; None without one.

    Raises:
        UsageError: if there are several for it, or one is empty or for a path that is none.
    """
    own, of_all = [], []
    for written in given:
        name, equals, queue = written.partition("=")
        if not equals or not NAME.fullmatch(name):
            of_all.append(written)
        elif name not in paths:
            known = f"known: {', '.join(paths)}" if paths else f"there are none: write `--path {name}=LINK`"
            raise UsageError(f"{option} `{written}`: no path is called `{name}` ({known})")
        elif not queue.strip():
            raise UsageError(f"{option} `{written}`: write the path's queue, such as `{name}=fq_codel`")
        elif name == path:
            own.append(queue)
    for found in (own, of_all):
        if len(found) > 1:
            several = " and ".join(f"`{queue}`" for queue in found)
            of = f" for path `{path}`" if found is own else ""
            raise UsageError(f"{option} is given {len(found)} times{of}, as {several}: write it once")
    return [*own, *of_all, None][0]


NAME = re.compile(r"[\w-]+")
"""What may be the name of a path; a queue spec has no `=` in its first word."""
