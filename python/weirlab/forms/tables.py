"""One table of a TOML file taken out of its text, so that another reader gets the rest with its lines."""

from __future__ import annotations

from weirlab import reading
from weirlab.forms.faults import statements


def without_table(text: str, name: str) -> str:
    """A TOML text without its table `name`: the lines of it are empty, so that all others keep their numbers.

    Args:
        text: a text that is TOML.
        name: a key of the root, as `[name]`, `[name.part]`, `name = {}` or `name.part = 1` write it.
    """
    kept, start, dropping_table, in_root = [], 0, False, True
    for one in statements(text):
        words = text[start : one.end]
        start = one.end
        header = words.lstrip().startswith("[")
        if header:
            in_root, dropping_table = False, name in reading.parse_toml(words)
        dropped = dropping_table or (in_root and name in reading.parse_toml(words))
        kept.append("\n" * words.count("\n") if dropped else words)
    return "".join(kept)
