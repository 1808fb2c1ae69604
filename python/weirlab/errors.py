"""Errors that a person sees: one sentence each, and an exit code for scripts."""

from __future__ import annotations


class WeirError(Exception):
    """Something is wrong that the user can mend.

    Attributes:
        exit_code: what `weir` exits with (see docs/cli.md).
    """

    exit_code = 1


class UsageError(WeirError):
    """A name, value or file that Weir was given cannot be used."""

    exit_code = 2


class RecordError(WeirError):
    """A record cannot be read."""

    exit_code = 3


class Interrupted(WeirError):
    """The user ended a run; what was measured until then is kept."""

    exit_code = 130


class AssertionBroken(WeirError):
    """What a scenario asserts of its runs does not hold."""


class LabError(WeirError):
    """The lab could not do what was asked."""


class NetError(WeirError):
    """A server elsewhere cannot be reached, refuses, or went away."""


class ShapeError(WeirError):
    """An interface cannot be shaped, or its shaper did not help."""
