"""What click finds wrong with a command line, as one sentence that says what to write."""

from __future__ import annotations

import re

import click

from weirlab import _native

__all__ = ["sentence"]


def sentence(error: click.ClickException) -> str:
    """The error in one sentence, with the option or argument in front."""
    match error:
        case click.MissingParameter():
            said = f"{_named(error)} is missing{_example(error.ctx)}"
        case click.BadParameter():
            name = _named(error)
            said = f"{name}: {error.message}" if name else error.message
        case click.NoSuchOption():
            said = f"there is no option `{error.option_name}`: {_instead(error)}"
        case click.BadOptionUsage():
            takes = "it takes no value" if "not take" in error.message else "its value is missing"
            said = f"{error.option_name}: {takes}"
        case _:
            found = re.fullmatch(r"Got unexpected extra arguments? \((.+)\)", error.format_message())
            said = f"`{found[1]}` is too much{_more(_of(error))}" if found else error.format_message()
    return " ".join(said.split()).removesuffix(".")


def _of(error: click.ClickException) -> click.Context | None:
    return error.ctx if isinstance(error, click.UsageError) else None


def _named(error: click.BadParameter) -> str:
    """The option or argument; empty where it is not known."""
    if isinstance(error.param, click.Option):
        return error.param.opts[-1]
    return error.param.make_metavar(error.ctx) if error.param and error.ctx else ""


def _instead(error: click.NoSuchOption) -> str:
    """The option that is nearest to one that there is not, or where all stand."""
    if error.ctx is None:
        return "`--help` lists all"
    shown = [one for one in error.ctx.command.get_params(error.ctx) if not getattr(one, "hidden", False)]
    names = [name for one in shown for name in (*one.opts, *one.secondary_opts) if name.startswith("--")]
    near = _native.nearest(error.option_name, names)
    return f"did you mean `{near}`?" if near else f"`{error.ctx.command_path} --help` lists all"


def _example(ctx: click.Context | None) -> str:
    """The first example of the help of a command, and where more is."""
    if ctx is None:
        return ""
    lines = map(str.strip, (ctx.command.help or "").splitlines())
    example = next((line for line in lines if line.startswith(f"{ctx.command_path} ")), "")
    return (f", as in `{example}`" if example else "") + _more(ctx)


def _more(ctx: click.Context | None) -> str:
    return f"; `{ctx.command_path} --help` has more" if ctx else ""
