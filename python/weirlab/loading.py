"""What is loaded only when it is asked for.

Most of what a command waits for are modules. Two rules keep that short: a package does not load what only
some of its users need, such as models of scenarios or bars of progress (`asked_for`), and nothing is searched
for garbage while modules are loaded (`uncollected`). `tests/test_loading.py` says what each command loads.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from logging import LogRecord


def asked_for(package: str, home: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """The function `__getattr__` of a package, which loads modules when one of their names is asked for.

    Args:
        package: name of the package.
        home: the names that it offers in this way, by the modules that have them. No module of the package
            may have one of these names: Python would put it in its place.
    """
    module_of = {name: module for module, names in home.items() for name in names}

    def __getattr__(name: str) -> object:  # noqa: N807 - what Python calls it
        if name not in module_of:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        found = getattr(importlib.import_module(module_of[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return __getattr__


def without_documentation() -> None:
    """Lets Matplotlib load without documentation of its artists, in a process where nobody reads it.

    To write it, it looks through all methods of each kind of artist, a third of its loading.
    """
    from matplotlib import artist  # noqa: PLC0415 - loads Matplotlib

    artist.kwdoc = lambda _: ""  # type: ignore[assignment]
    artist.Artist._update_set_signature_and_docstring = classmethod(lambda _: None)  # type: ignore[attr-defined] # noqa: SLF001


def without_lament() -> None:
    """Lets Matplotlib load without a word where its folder in the home cannot be written.

    It then has a temporary one, which it removes when Python ends.
    """
    import logging  # noqa: PLC0415 - only where Matplotlib is loaded, which does so too

    # Another one of the same function is not added.
    logging.getLogger("matplotlib").addFilter(_is_no_lament)


def _is_no_lament(record: LogRecord) -> bool:
    return record.funcName != "_get_config_or_cache_dir"


@contextmanager
def in_one_thread() -> Iterator[None]:
    """Within it NumPy is loaded without a thread for every processor, unless the user says how many.

    To begin them takes as much time of another processor as all of NumPy takes of this one, and there a
    simulation goes on. Weir computes nothing that would gain by them. Whatever is begun afterwards does not
    inherit it. As it sets a variable of the environment, no other thread may be there yet.
    """
    if BLAS_THREADS in os.environ:
        yield
        return
    os.environ[BLAS_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[BLAS_THREADS]


@contextmanager
def uncollected() -> Iterator[None]:
    """Within it nothing is searched for garbage, and what was made in it never is.

    Modules make many objects and no garbage: to search them again and again takes a fifth of their loading.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


BLAS_THREADS = "OPENBLAS_NUM_THREADS"
"""Variable of the environment: how many threads the linear algebra of NumPy has."""
