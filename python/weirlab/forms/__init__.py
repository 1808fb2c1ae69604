"""Typed models of input that is no scenario; faults are told with their lines.

Rules and settings of shapers are such, and the experiments of studies. Scenarios, tests and links are read by
the compiled part: see `weirlab.scenario`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from weirlab import reading
from weirlab.errors import UsageError
from weirlab.forms.faults import faults as all_faults
from weirlab.forms.faults import told

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

__all__ = ["Model", "check", "read_toml"]


class Model(BaseModel):
    """The base of all models: unknown keys are errors, nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    if not TYPE_CHECKING:  # pydantic's plugin for mypy writes a better signature

        def __init__(self, /, **written: object) -> None:
            """Checks what is written.

            Raises:
                UsageError: if something is wrong with it.
            """
            try:
                super().__init__(**written)
            except ValidationError as error:
                found = all_faults(error, type(self), written)
                raise UsageError(told(type(self).__name__, found)) from error

        # Models within models are validated as before, and tell their problems to the outermost.
        __init__.__pydantic_base_init__ = True


ModelT = TypeVar("ModelT", bound=Model)


def check(
    kind: type[ModelT],
    data: object,
    where: str,
    *,
    text: str | None = None,
    names: Mapping[str, str] | None = None,
) -> ModelT:
    """`data` as a `kind`.

    Args:
        kind: what it should be.
        data: what was written.
        where: what a message calls it.
        text: the file in which it was written, of which a message tells the lines.
        names: what a message calls its keys, such as `--load` for `phases.load`.

    Raises:
        UsageError: all that is wrong with it.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        found = all_faults(error, kind, data)
        raise UsageError(told(where, found, text, names or {})) from error


def read_toml(source: Traversable, where: str) -> tuple[dict[str, Any], str]:
    """Reads a TOML file: its values, and its text.

    Raises:
        UsageError: if it cannot be read.
    """
    try:
        text = reading.read_text(source, reading.MAX_TOML_BYTES)
        return reading.parse_toml(text), text
    except reading.Unreadable as error:
        raise UsageError(f"{where} cannot be read: {error}") from error
