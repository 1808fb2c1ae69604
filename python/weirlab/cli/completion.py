"""Shell completion of names: tests, links, queues, congestion controls, rules and devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

from weirlab import _native
from weirlab.cli.schemas import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import click


def tests(context: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of tests, and files."""
    from weirlab.scenario import shipped_tests  # noqa: PLC0415 - only for this

    del context
    return _or_file(shipped_tests(), begun)


def flent_tests(context: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of Flent's tests that can be run."""
    from weirlab.flent.tests import flent_tests  # noqa: PLC0415 - only for this

    del context
    return _beginning([one.name for one in flent_tests().values() if one.runs], begun)


def links(context: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of links, and files."""
    from weirlab.scenario import shipped_links  # noqa: PLC0415 - only for this

    del context
    return _or_file(shipped_links(), begun)


def queues(context: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of disciplines and presets, with which a queue spec begins."""
    del context
    return _beginning(["default", *(one["name"] for one in _native.disciplines())], begun)


def congestion_controls(context: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of congestion controls."""
    del context
    return _beginning([one["name"] for one in _native.congestion_controls()], begun)


def listed(context: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of what `weir list` was asked for."""
    from weirlab.flent.plots import flent_plots  # noqa: PLC0415 - only for this
    from weirlab.flent.tests import flent_tests as flent_names  # noqa: PLC0415 - only for this
    from weirlab.scenario import shipped_links, shipped_tests  # noqa: PLC0415 - only for this

    names: Mapping[str, Callable[[], list[str]]] = {
        "tests": shipped_tests,
        "links": shipped_links,
        "queues": lambda: [one["name"] for one in _native.disciplines()],
        "markers": lambda: [one["name"] for one in _native.markers()],
        "congestion-controls": lambda: [one["name"] for one in _native.congestion_controls()],
        "flent-plots": lambda: list(flent_plots()),
        "flent-tests": lambda: list(flent_names()),
        "schemas": lambda: list(SCHEMAS),
    }
    what = names.get(context.params.get("what", ""))
    return _beginning(what() if what else [], begun)


def rules(context: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Names of shipped lists of priority rules, and files."""
    from weirlab.shape.rules import shipped_rules  # noqa: PLC0415 - only for this

    del context
    return _or_file(shipped_rules(), begun)


def devices(context: click.Context, _param: click.Parameter | None, begun: str) -> list[CompletionItem]:
    """Names of this machine's network interfaces."""
    del context
    return _beginning(sorted(one.name for one in DEVICES.iterdir()) if DEVICES.is_dir() else [], begun)


def _or_file(names: Iterable[str], begun: str) -> list[CompletionItem]:
    """Those of `names` that begin so, or a file: bash drops what it was given before it hears of files."""
    return [CompletionItem(begun, type="file"), *_beginning(names, begun)]


def _beginning(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(begun)]


DEVICES = Path("/sys/class/net")
