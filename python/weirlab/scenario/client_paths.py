"""A client with several paths: the run of each, resolved by itself, joined to one.

The compiled part joins what a world runs (`crates/scenario/src/client_paths.rs`); here the words of link and
test are joined in the same way, so that a record tells of a link with a route for each path.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from weirlab import _native
from weirlab.errors import UsageError
from weirlab.scenario.files import told
from weirlab.scenario.plain import queue_words
from weirlab.scenario.resolving import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weirlab.scenario.models import LinkSpec, TestSpec
    from weirlab.scenario.resolving import ResolvedRun

__all__ = ["MAX_CLIENT_PATHS", "join_paths"]


def join_paths(paths: Sequence[tuple[str, ResolvedRun]]) -> ResolvedRun:
    """The run of a client that has all of `paths`, each a name and a run without loads or probes.

    Hops have the path's name in front of theirs: `lte/cell`. Seed and note are the first path's.

    Raises:
        UsageError: if there are none or more than `MAX_CLIENT_PATHS`, if a name cannot be one or is given
            twice, if a run is more than a path, or if their MTUs differ.
    """
    scenario = told(lambda: _native.join_paths([(name, json.dumps(run.scenario)) for name, run in paths]))
    first = paths[0][1]
    link, test = _link(paths), _test(paths)
    return replace(
        first,
        link_part=Part(link, partial(_link_model, link)),
        test_part=Part(test, partial(_test_model, test)),
        queue=_queue(paths),
        scenario=json.loads(scenario),
        traces=_traces(paths),
    )


def _link(paths: Sequence[tuple[str, ResolvedRun]]) -> dict[str, Any]:
    """The link that has a route for each path."""
    links = [(name, run.link_part.words) for name, run in paths]
    hops = {
        direction: [_hop(name, hop) for name, link in links for hop in link[direction]]
        for direction in ("up", "down")
    }
    routes = {
        name: {direction: [f"{name}/{hop['name']}" for hop in link[direction]] for direction in hops}
        for name, link in links
    }
    told_of = {
        "name": "+".join(link["name"] for _, link in links),
        "title": "; ".join(f"{name}: {link['title']}" for name, link in links),
        "summary": "; ".join(f"{name}: {link['summary']}" for name, link in links if link["summary"]),
        "source": "\n".join(f"{name}: {link['source']}" for name, link in links if link["source"]),
    }
    return {**links[0][1], **told_of, **hops, "routes": routes}


def _hop(path: str, hop: dict[str, Any]) -> dict[str, Any]:
    """A hop of a path."""
    airtime = hop["airtime"]
    if airtime and airtime["medium"] is not None:
        airtime = {**airtime, "medium": f"{path}/{airtime['medium']}"}
    return {**hop, "name": f"{path}/{hop['name']}", "airtime": airtime}


def _test(paths: Sequence[tuple[str, ResolvedRun]]) -> dict[str, Any]:
    """The test that has a server for each path."""
    words = paths[0][1].test_part.words
    [server] = words["hosts"]
    return {**words, "hosts": [{**server, "name": f"server-{name}", "route": name} for name, _ in paths]}


def _link_model(words: dict[str, Any]) -> LinkSpec:
    from weirlab.scenario.models import LinkSpec  # noqa: PLC0415 - loads pydantic

    return LinkSpec.model_validate(words)


def _test_model(words: dict[str, Any]) -> TestSpec:
    from weirlab.scenario.models import TestSpec  # noqa: PLC0415 - loads pydantic

    return TestSpec.model_validate(words)


def _queue(paths: Sequence[tuple[str, ResolvedRun]]) -> str:
    """The queue spec of all paths, or in words that of each."""
    queues = {run.queue for _, run in paths}
    if len(queues) == 1:
        return queues.pop()
    return "; ".join(f"{name}: {queue_words(run.queue)}" for name, run in paths)


def _traces(paths: Sequence[tuple[str, ResolvedRun]]) -> dict[str, str]:
    """The recordings of all paths, by name.

    Raises:
        UsageError: if a file was another when it was read again.
    """
    traces: dict[str, str] = {}
    for name, run in paths:
        for trace, text in run.traces.items():
            if traces.setdefault(trace, text) != text:
                raise UsageError(
                    f"path `{name}`: the recording `{trace}` has changed while it was read: try again"
                )
    return traces


MAX_CLIENT_PATHS = _native.bounds()["max_client_paths"]
