"""Faults in scenario files: each in a sentence, with the line on which its key stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel

from weirlab import _native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        path: keys and places in lists that lead to it.
        says: what is wrong there.
    """

    path: Path
    says: str

    def __str__(self) -> str:
        """The place, and what is wrong there."""
        place = _shortened(".".join(str(part) for part in self.path))
        says = _shortened(self.says)
        return f"{place}: {says}" if place else says


def _shortened(text: str) -> str:
    """`text`, or the start of a long one: what was written may be of any length."""
    return text if len(text) <= MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS]}..."


def faults(error: ValidationError, kind: type[BaseModel], data: object) -> list[Fault]:
    """All that is wrong with `data`, which should be a `kind`."""
    found = [_Found.of(one, data) for one in error.errors(include_url=False)]
    return list(dict.fromkeys(Fault(one.path, one.says or _says(one.error, kind)) for one in _meant(found)))


def told(
    where: str, found: Sequence[Fault], text: str | None = None, names: Mapping[str, str] | None = None
) -> str:
    """The faults of what is called `where`, in a sentence.

    With the text of the file several are a line each, in the order of their lines, and each says its line.
    Keys that have a name of their own, such as an option of the command line, are called so.
    """
    first, rest = found[:MAX_FAULTS], len(found) - MAX_FAULTS
    more = [f"and {rest} more"] if rest > 0 else []
    if text is not None:
        lines = sorted((line_of(one.path, text), str(one)) for one in first)
        said = [f"line {line}: {one}" for line, one in lines]
        if len(said) == 1:
            return f"{where}, {said[0]}"
        return "\n  ".join([f"{where} has {len(found)} faults:", *said, *more])
    own = [(names or {}).get(".".join(str(part) for part in one.path)) for one in first]
    said = [f"{name}: {one.says}" if name else str(one) for name, one in zip(own, first, strict=True)]
    return ("" if all(own) else f"{where}: ") + "; ".join([*said, *more])


def line_of(path: Path, text: str) -> int:
    """The line, from 1, on which the value at `path` begins, or what holds it if it is not there.

    The TOML parser itself finds it: it is the first line of the statement with which the document has a value
    there.
    """
    whole = _parse(text)
    while not _holds(whole, path):
        path = path[:-1]
    lines = statements(text)
    first, last = 0, len(lines) - 1
    while first < last:
        middle = (first + last) // 2
        if _holds(_parse(text[: lines[middle].end]), path):
            last = middle
        else:
            first = middle + 1
    return lines[first].line


class Statement(NamedTuple):
    """A line of TOML, with those into which its value goes on."""

    line: int
    """Its first line, from 1."""
    end: int
    """Where in the text the next one begins."""


def statements(text: str) -> list[Statement]:
    """The statements of a text that is TOML, lines without one among them."""
    found: list[Statement] = []
    start = line = 1
    depth = 0
    for token in _TOKEN.finditer(text):
        word = token[0]
        line += word.count("\n")
        depth += (word in "[{") - (word in "]}")
        if word == "\n" and depth == 0:
            found.append(Statement(start, token.end()))
            start = line
    return [*found, Statement(start, len(text))]


def _parse(text: str) -> object:
    return tomllib.loads(text)


def _holds(data: Any, path: Path) -> bool:
    for part in path:
        if not _has(data, part):
            return False
        data = data[part]
    return True


def _has(data: Any, part: str | int) -> bool:
    if isinstance(data, Mapping):
        return part in data
    return isinstance(data, list) and isinstance(part, int) and part < len(data)


@dataclass(frozen=True)
class _Found:
    """One of pydantic's errors.

    Attributes:
        error: the error itself.
        path: where it is in the data.
        branches: where several kinds of value are allowed, the length of the path to there, and the kind by
            which the value was tried.
        values: what stands there.
        says: what it says, if not what the error says.
    """

    error: ErrorDetails
    path: Path
    branches: tuple[tuple[int, str], ...]
    values: tuple[Any, ...]
    says: str | None = None

    @classmethod
    def of(cls, error: ErrorDetails, data: Any) -> _Found:
        """An error with the parts of its place told apart: those that the data has, and kinds of values."""
        path: list[str | int] = []
        branches: list[tuple[int, str]] = []
        values: list[Any] = []
        for place, part in enumerate(error["loc"]):
            missing = error["type"] == "missing" and place == len(error["loc"]) - 1
            if missing or _has(data, part):
                path.append(part)
                data = None if missing else data[part]
            elif part != "[key]":
                branches.append((len(path), str(part)))
                values.append(data)
        return cls(error, tuple(path), tuple(branches), tuple(values))


def _meant(found: Iterable[_Found], depth: int = 0) -> Iterator[_Found]:
    """The errors by that kind of each value which was meant, where several are allowed."""
    places: dict[object, list[_Found]] = {}
    for number, one in enumerate(found):
        branch = one.branches[depth : depth + 1]
        places.setdefault(one.path[: branch[0][0]] if branch else number, []).append(one)
    for several in places.values():
        if len(several[0].branches) <= depth:
            yield from several
            continue
        kinds = list(dict.fromkeys(one.branches[depth][1] for one in several))
        value = several[0].values[depth]
        suiting = [kind for kind in kinds if len(kinds) == 1 or _suits(kind, value)]
        if suiting:
            yield from _meant((one for one in several if one.branches[depth][1] == suiting[0]), depth + 1)
        else:
            names = list(dict.fromkeys(_kind_name(kind) for kind in kinds))
            yield replace(several[0], says=f"{_shown(value)}: write {_either(names)}")


def _suits(kind: str, value: object) -> bool:
    """Whether a value looks like it was meant to be of the kind that pydantic calls so."""
    if isinstance(value, (Mapping, BaseModel)):
        return kind[:1].isupper()
    if isinstance(value, list):
        return kind.startswith("list[")
    return isinstance(value, str) and kind.startswith(("str", "constrained-str", "literal["))


def _kind_name(kind: str) -> str:
    if kind[:1].isupper():
        return "a table"
    if kind.startswith("list["):
        return "a list"
    if kind.startswith("literal["):
        return "one of " + kind.removeprefix("literal[").removesuffix("]").replace(",", ", ")
    return {"int": "a whole number", "float": "a number", "bool": "true or false"}.get(kind, "a text")


def _says(error: ErrorDetails, kind: type[BaseModel]) -> str:
    """The fault in a sentence, without the place."""
    what, place = error["type"], error["loc"]
    context: Mapping[str, Any] = error.get("ctx", {})
    if what == "extra_forbidden":
        return _unknown(str(place[-1]), _keys(kind, place[:-1]))
    if what == "literal_error" and place[-1] == "[key]":
        return _unknown(
            str(place[-2]), context["expected"].replace(" or ", ", ").replace("'", "").split(", ")
        )
    if what in _ALONE:
        return _ALONE[what](error["msg"])
    if what in _WANTED:
        return f"{_shown(error['input'])}: write {_WANTED[what](context)}"
    return f"{_shown(error['input'])}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _unknown(name: str, known: Sequence[str]) -> str:
    near = _native.nearest(name, list(known))
    meant = f", did you mean `{near}`?" if near else ""
    return f"unknown key{meant} (known: {', '.join(known)})"


def _keys(kind: type[BaseModel], place: Path) -> list[str]:
    """The keys that may stand at a place of a model."""
    candidates: list[Any] = [kind]
    for part in place:
        # What is no step to somewhere else is the name of a kind that was tried.
        candidates = [to for one in candidates for to in _steps(one, part)] or candidates
    models = [one for of in candidates for one in _kinds(of) if _is_model(one)]
    # What a model shares with others comes last.
    bases = [base for one in models for base in one.__mro__[1:] if _is_model(base)]
    inherited = {name for base in bases for name in base.model_fields}
    fields = [field for one in models for field in one.model_fields.items()]
    fields.sort(key=lambda field: field[0] in inherited)
    return list(dict.fromkeys(field.alias or name for name, field in fields))


def _steps(of: Any, part: str | int) -> Iterator[Any]:
    for one in _kinds(of):
        if _is_model(one):
            if part == one.__name__:
                yield one
            for name, field in one.model_fields.items():
                if part == (field.alias or name):
                    yield field.annotation
        elif get_origin(one) in {list, dict} and (isinstance(part, int) or get_origin(one) is dict):
            yield get_args(one)[-1]


def _kinds(of: Any) -> list[Any]:
    """The alternatives of an annotation."""
    if _is_model(of) or get_origin(of) in {list, dict}:
        return [of]
    return [kind for part in get_args(of) for kind in _kinds(part)]


def _is_model(of: Any) -> bool:
    return isinstance(of, type) and issubclass(of, BaseModel)


def _shown(value: object) -> str:
    text = f"`{value}`" if isinstance(value, str) else repr(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 3]}..."


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


_ALONE: Mapping[str, Callable[[str], str]] = {
    "value_error": lambda message: message.removeprefix("Value error, "),
    "missing": lambda _: "this key is missing",
    "string_too_short": lambda _: "it is empty: write at least one letter",
    "too_short": lambda _: "the list is empty: write at least one",
}
"""Sentences of errors without the value, by pydantic's name of the error."""

_WANTED: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "string_type": lambda _: "a text in quotes",
    "bool_type": lambda _: "true or false",
    "bool_parsing": lambda _: "true or false",
    "int_type": lambda _: "a whole number",
    "int_parsing": lambda _: "a whole number",
    "int_from_float": lambda _: "a whole number",
    "float_type": lambda _: "a number",
    "float_parsing": lambda _: "a number",
    "finite_number": lambda _: "a number",
    "list_type": lambda _: "a list: put brackets around it",
    "dict_type": lambda _: "a table",
    "model_type": lambda _: "a table",
    "model_attributes_type": lambda _: "a table",
    "literal_error": lambda context: str(context["expected"]),
    "union_tag_invalid": lambda context: f"{context['discriminator']} = {_any_of(context['expected_tags'])}",
    "union_tag_not_found": lambda context: f"it with {context['discriminator']}",
    "greater_than_equal": lambda context: f"{context['ge']:g} or more",
    "greater_than": lambda context: f"more than {context['gt']:g}",
    "less_than_equal": lambda context: f"{context['le']:g} or less",
    "less_than": lambda context: f"less than {context['lt']}",
}
"""Forms that are allowed, by pydantic's name of the error."""


def _any_of(tags: str) -> str:
    return _either(tags.split(", "))


_TOKEN = re.compile(
    r"""
    \"{3}(?:\\.|[^\\])*?\"{3,5}  # strings of several lines, which may end in two quotes of their own
    | '{3}.*?'{3,5}
    | "(?:\\.|[^"\\\n])*"
    | '[^'\n]*'
    | \#[^\n]*
    | [\[\]{}\n]
    """,
    re.DOTALL | re.VERBOSE,
)
"""Tokens that tell where a statement ends: strings and comments are skipped, brackets join lines."""

MAX_QUOTED_CHARS = _native.bounds()["max_quoted_chars"]
"""Characters of a place, and of what is wrong there, that a message has at most: a list of all keys fits."""

MAX_FAULTS = _native.bounds()["max_faults"]
"""That are told; who has more has another kind of file."""
MAX_SHOWN_CHARS = _native.bounds()["max_shown_chars"]
"""Letters of a value that is shown."""
