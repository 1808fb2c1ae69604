"""The base of all that a scenario file can say, as objects of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import model_validator

from weirlab import _native
from weirlab.errors import UsageError
from weirlab.forms import Model
from weirlab.scenario.quantities import READ

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import ModelWrapValidatorHandler, ValidationInfo


class Spec(Model):
    """A part of a scenario; the compiled part reads it, and knows its keys, bounds and defaults.

    Quantities are written with their units, such as `5ms`, and kept in base units, such as nanoseconds.
    """

    __test__ = False  # none of them is a test of ours: keeps pytest from collecting `TestSpec`

    if not TYPE_CHECKING:  # pydantic's plugin for mypy writes a better signature

        def __init__(self, /, **written: object) -> None:
            """Checks what is written.

            Raises:
                UsageError: if something is wrong with it.
            """
            said = read(type(self), written, type(self).__name__)
            self.__pydantic_validator__.validate_python(said, self_instance=self, context=READ)

        # Specifications within others are validated as these are.
        __init__.__pydantic_base_init__ = True

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, written: object, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        if info.context is READ or isinstance(written, cls):
            return handler(written)
        try:
            said = read(cls, written, cls.__name__)
        except UsageError as error:
            raise ValueError(str(error)) from error
        return cls.known(said)

    @classmethod
    def known(cls, said: object) -> Self:
        """The specification with keys that the compiled part has read."""
        return cls.model_validate(said, context=READ)

    def written(self) -> dict[str, Any]:
        """The keys that were written, as a scenario file has them: quantities with units, and no defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)

    def over(self, other: Self) -> Self:
        """These settings, and where they say nothing those of `other`."""
        return other.model_copy(update=self.model_dump(exclude_none=True))


def read(
    kind: type[Spec], written: object, where: str, names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The keys of what was written, in base units.

    Args:
        kind: what it should be.
        written: what was written.
        where: what a message calls it.
        names: what a message calls its keys, such as `--load` for `phases.load`.

    Raises:
        UsageError: all that is wrong with it.
    """
    try:
        return _native.read_spec(kind.__name__, written, where, list((names or {}).items()))
    except _native.NativeError as error:
        raise UsageError(str(error)) from error
