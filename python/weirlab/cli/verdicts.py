"""Whether runs are as they should be: files of assertions, a baseline, and reports that CI systems read."""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirlab import reading
from weirlab.errors import AssertionBroken, UsageError, cannot_write
from weirlab.record.configurations import configurations, run_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from weirlab.record import Record
    from weirlab.scenario import ResolvedRun
    from weirlab.stats.assertions import Assertion, Outcome
    from weirlab.stats.repetition import NotWorse, NotWorseOutcome


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a rule holds for a run or configuration.

    Attributes:
        of: the run or configuration.
        rule: the assertion.
        found: the figures, in words.
        holds: whether it holds.
    """

    of: str
    rule: str
    found: str
    holds: bool


def rules_in(file: Path) -> list[str]:
    """The rules in a file, one a line; what stands behind `#` is a remark.

    Raises:
        UsageError: if it cannot be read, or has none.
    """
    try:
        text = reading.read_text(file, reading.MAX_TOML_BYTES)
    except reading.Unreadable as error:
        raise UsageError(f"assertions `{file}` cannot be read: {error}") from error
    found = [line.partition("#")[0].strip() for line in text.splitlines()]
    if not any(found):
        raise UsageError(f"`{file}` has no assertion: write one a line, such as latency.p99 < 50ms")
    return [line for line in found if line]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Rules that must hold.

    Attributes:
        asserted: assertions about single runs.
        compared: rules that compare configurations with the baseline.
        baseline: the repetitions of the baseline; empty if there is none.
    """

    asserted: list[Assertion]
    compared: list[NotWorse]
    baseline: list[Record]

    def check(self, runs: Sequence[ResolvedRun], world: str = "sim") -> None:
        """Refuses rules about what the runs do not have, that need more repetitions or another baseline.

        Args:
            runs: what is to run.
            world: the name of the world in which.

        Raises:
            UsageError: which rule, and why.
        """
        for run in runs:
            for asserted in self.asserted:
                asserted.check(run.scenario)
            for compared in self.compared:
                compared.check(run.scenario)
        repeats = min(len({one.seed for one in runs}), len(self.baseline))
        if self.compared and repeats < 2:
            text = self.compared[0].text
            raise UsageError(f"`{text}`: 95 % need two repetitions or more of the runs and of the baseline")
        for run in runs if self.compared else ():
            self._check_baseline(run, world)

    def _check_baseline(self, run: ResolvedRun, world: str) -> None:
        """Refuses a baseline that tells of something else than what changed.

        Raises:
            UsageError: in what it differs from `run`, or which of its runs was cut short.
        """
        text = self.compared[0].text
        for before in self.baseline:
            manifest = before.manifest
            if not manifest.complete:
                raise UsageError(f"`{text}`: the run `{before.path}` of the baseline was cut short")
            sides = {
                "test": (f"`{manifest.scenario['name']}`", f"`{run.scenario['name']}`"),
                "world": (f"`{manifest.world}`", f"`{world}`"),
                "link": (_line(manifest.link, manifest.world), _line(run.link_part.words, world)),
                "load of": (_load(manifest.scenario), _load(run.scenario)),
            }
            for what, (theirs, ours) in sides.items():
                if theirs != ours:
                    raise UsageError(
                        f"`{text}`: the baseline `{before.path}` has the {what} {theirs}, what is to run "
                        f"{ours}: give records of the same"
                    )

    def verdicts(self, records: Sequence[Record], *, whole: bool) -> Verdicts:
        """Judges all rules: assertions for each run, comparisons for each configuration.

        Of runs that are not `whole`, since they were interrupted, configurations are not compared.
        """
        return Verdicts(
            runs=run_names(records),
            outcomes=[[one.of(record) for one in self.asserted] for record in records],
            compared=list(self._compared(records)) if self.compared and whole else [],
        )

    def _compared(self, records: Sequence[Record]) -> Iterator[Verdict]:
        for group in configurations(records):
            for rule in self.compared:
                result = rule.of(group.records, self.baseline)
                yield Verdict(of=group.name, rule=rule.text, found=_found(result), holds=result.holds)


def _line(link: Mapping[str, Any], world: str) -> str:
    """Which line it is: a path that is measured as it is has a title of its own, and no name."""
    return f"`{link['title'] if world == 'net' else link['name']}`"


def _load(scenario: Mapping[str, Any]) -> str:
    """How long the phase `load` lasts, in words."""
    spans = [one["end_ns"] - one["start_ns"] for one in scenario["phases"] if one["name"] == "load"]
    return f"{sum(spans) / 1e9:g} s"


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """Outcomes of all rules.

    Attributes:
        runs: the names of the runs.
        outcomes: those of all assertions, a list for each run.
        compared: those of comparisons with the baseline, for each configuration.
    """

    runs: list[str]
    outcomes: list[list[Outcome]]
    compared: list[Verdict]

    @property
    def each(self) -> list[Verdict]:
        """All of them, one for each rule and run or configuration."""
        asserted = [
            Verdict(
                of=name,
                rule=one.text,
                found=_sides(one),
                holds=one.holds,
            )
            for name, outcomes in zip(self.runs, self.outcomes, strict=True)
            for one in outcomes
        ]
        return asserted + self.compared

    def by_record(self, records: Sequence[Record]) -> dict[str, list[dict[str, Any]]]:
        """The outcomes of assertions as JSON has them, by the paths of the records that were judged."""
        return {
            str(record.path): [one.as_dict() for one in outcomes]
            for record, outcomes in zip(records, self.outcomes, strict=True)
        }


def check_held(found: Sequence[Verdict]) -> None:
    """Fails if an assertion does not hold.

    Raises:
        AssertionBroken: how many of them do not.
    """
    broken = sum(not one.holds for one in found)
    if broken:
        raise AssertionBroken(f"{broken} of {len(found)} assertions do not hold")


def _sides(one: Outcome) -> str:
    """The figures of an assertion, and why it has none."""
    from weirlab.ui.numbers import four_digits  # noqa: PLC0415 - loads Rich, which no run waits for

    found = f"left {four_digits(one.left)}, right {four_digits(one.right)} {one.unit}".rstrip()
    return found if one.remark is None else f"{found}. {one.remark}"


def _found(result: NotWorseOutcome) -> str:
    """The figures of a comparison with a baseline, with their units."""
    from weirlab.ui.numbers import four_digits  # noqa: PLC0415 - loads Rich, which no run waits for

    unit = f" {result.unit}" if result.unit else ""
    of = ""
    if result.share is not None:
        of = f", {100 * result.share:.4g} % of the baseline's {four_digits(result.baseline)}{unit}"
    return (
        f"worse by {result.worse_by:+.4g}{unit}, with 95 % by no more than {result.bound:+.4g}{unit}; "
        f"allowed {four_digits(result.margin)}{unit}{of}"
    )


def rules_of(texts: Sequence[str], file: Path | None, baseline: Path | None) -> Rules:
    """The rules on the line, in the scenario and in a file.

    Raises:
        UsageError: if one is none, there is no baseline for it, or a file cannot be used.
        RecordError: if the baseline cannot be read.
    """
    asserted: list[Assertion] = []
    compared: list[NotWorse] = []
    rules = (*texts, *(rules_in(file) if file else []))
    for text in rules:
        # Most runs have none, and do not wait for NumPy.
        from weirlab.stats.assertions import Assertion  # noqa: PLC0415
        from weirlab.stats.repetition import NotWorse  # noqa: PLC0415

        if not _is_about_a_baseline(text):
            asserted.append(Assertion(text))
        elif baseline is not None:
            compared.append(NotWorse(text))
        else:
            raise UsageError(f"`{text}`: there is no baseline: give one with --baseline RECORD")
    if baseline is not None and not compared:
        raise UsageError(
            f"--baseline {baseline}: no assertion compares with it: write one such as "
            "`latency.p95 not worse than baseline by 2ms`, or leave it out"
        )
    before = baseline_of(baseline) if baseline else []
    return Rules(asserted=asserted, compared=compared, baseline=before)


def _is_about_a_baseline(text: str) -> bool:
    """Whether a rule compares with a baseline; a probe, flow or phase in brackets may be called so too."""
    return "baseline" in re.sub(r"\[[^\]]*\]", "", text)


def rules_without_baseline(texts: Sequence[str], runs: Sequence[ResolvedRun], command: str) -> Rules:
    """The rules of a scenario that a command runs which takes no baseline.

    Raises:
        UsageError: if one is none, is about a baseline, or is about what the runs do not have.
    """
    for text in texts:
        if _is_about_a_baseline(text):
            raise UsageError(
                f"`{text}`: `weir {command}` takes no baseline: leave it out, or run the scenario by "
                "`weir run --baseline RECORD`"
            )
    rules = rules_of(texts, None, None)
    rules.check(runs)
    return rules


def baseline_of(path: Path) -> list[Record]:
    """The repetitions of the baseline, which is one configuration.

    Raises:
        UsageError: if there are several configurations.
        RecordError: if there is no record, or one cannot be read.
    """
    from weirlab.record import find_records  # noqa: PLC0415 - only where there is one

    groups = configurations(find_records(path))
    if len(groups) > 1:
        names = ", ".join(f"`{one.name}`" for one in groups[:4])
        raise UsageError(
            f"--baseline {path} has {len(groups)} configurations ({names}): give the folder of one"
        )
    return groups[0].records


def remove_junit(file: Path) -> None:
    """Removes the report of an earlier run, which would be taken for that of one that does not end.

    One that a link leads to, or that cannot be removed, such as a file that is mounted into a container, is
    emptied. Devices and pipes, such as `/dev/stdout`, keep no report and stay.

    Raises:
        UsageError: if it can be neither removed nor emptied, or is a folder.
        WriteError: if the disk is read-only or broken.
    """
    try:
        kind = file.stat().st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(kind):
            return
        if not file.is_symlink():
            with suppress(OSError):
                file.unlink()
                return
        os.truncate(file, 0)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise cannot_write(f"--junit {file} cannot be written", error) from error


def write_junit(found: Sequence[Verdict], file: Path, ended: str | None = None) -> None:
    """Writes verdicts as JUnit XML, which CI systems show: a test case for each.

    Args:
        found: the verdicts.
        file: where to.
        ended: why the runs ended early, which is an error; None if they did not.

    Raises:
        UsageError: if the file cannot be written.
    """
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - only where one is asked for

    failures = sum(not one.holds for one in found)
    errors = 0 if ended is None else 1
    counts = {"tests": len(found) + errors, "failures": failures, "errors": errors}
    suite = ET.Element("testsuite", {"name": "weir", **{name: str(of) for name, of in counts.items()}})
    for one in found:
        case = ET.SubElement(suite, "testcase", classname=_plain(one.of), name=_plain(one.rule))
        if not one.holds:
            ET.SubElement(case, "failure", message=_plain(f"{one.rule}: {one.found}"))
        ET.SubElement(case, "system-out").text = _plain(one.found)
    if ended is not None:
        case = ET.SubElement(suite, "testcase", classname="weir run", name="runs come to their end")
        ET.SubElement(case, "error", message=_plain(ended))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(ET.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n")
    except OSError as error:
        raise cannot_write(f"--junit {file} cannot be written", error) from error


def _plain(text: str) -> str:
    """`text` without what XML cannot hold."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)
