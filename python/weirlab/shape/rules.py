"""Priority rules of a shaper, as the compiled part reads them."""

from __future__ import annotations

import json
from typing import Any

from weirlab import _native
from weirlab.shape.asked import asked


def shipped_rules() -> list[str]:
    """The names of the shipped lists."""
    return _native.shipped_rules()


def rules_text(name: str) -> str:
    """The text of the shipped list of that name, or of the file.

    Raises:
        UsageError: if there is neither.
    """
    return asked(lambda: _native.shaper_rules_text(name))


def read_rules(name: str) -> dict[str, Any]:
    """The rules of a shipped list or of a file, as the settings of a shaper have them.

    Raises:
        UsageError: if something is wrong: the file, the line, and what is allowed.
    """
    rules: dict[str, Any] = json.loads(asked(lambda: _native.read_shaper_rules(name)))
    return rules
