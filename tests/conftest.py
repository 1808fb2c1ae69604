"""What several tests share."""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

import realtime
import weirlab
from here import weir_here as run_here
from live import lab_refusal, weir_in

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Generator, Iterable, Iterator

    from matplotlib.figure import Figure
    from playwright.sync_api import Browser, Playwright

    from weirlab.record import Record

for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    # Whoever starts the tests may ignore signals, as a shell does for its jobs in the background. Every child
    # would inherit that, and wait for ever for the signal that is to end it.
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

# Shapers of tests learn nothing from each other, nor does this machine's own from them.
os.environ["WEIR_SHAPE_STATE"] = "none"

# No test asserts how long something takes.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

SHORT = {"idle": "1s", "load": "4s", "cooldown": "1s"}
"""Phases that are long enough to see something and short enough to wait for."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Ends a test that waits for ever, with its fixtures, and refuses work in real time without its mark."""

    def late(number: int, frame: object) -> None:
        del number, frame
        raise TimeoutError(f"the test has taken {MAX_TEST_S} s: something in it waits for ever")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(MAX_TEST_S)
    marked = item.get_closest_marker(realtime.MARK) is not None
    try:
        with nullcontext() if marked else realtime.refused():
            return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


MAX_TEST_S = 1800
"""How long a test may take: five times longer than the longest on a busy machine."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test that needs a lab where there is none. Asked when the first of them runs, and once."""
    if item.get_closest_marker("needs_lab") and (refusal := lab_refusal()):
        pytest.skip(f"no lab here: {refusal}")


@pytest.fixture(scope="session")
def rrul(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """A short RRUL on the cable line: bloated, and cured."""
    return weirlab.run(
        "rrul",
        link="cable-20-8",
        queue=["pfifo_fast", "htb rate 95% fq_codel"],
        phases=SHORT,
        out=tmp_path_factory.mktemp("rrul") / "out",
    )


@pytest.fixture(scope="session")
def longer(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The bloated run of `rrul` with a longer load, so that their phases differ."""
    (record,) = weirlab.run(
        "rrul",
        link="cable-20-8",
        phases=SHORT | {"load": "8s"},
        out=tmp_path_factory.mktemp("longer") / "out",
    )
    return record


@pytest.fixture(scope="session")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Downloads with 8 flows, two configurations of two repetitions each, without cooldown."""
    return weirlab.run(
        "tcp_ndown",
        queue=["pfifo_fast", "htb rate 95% fq_codel"],
        repeat=2,
        parameters={"streams": 8},
        phases={"idle": "1s", "load": "2s", "cooldown": "0s"},
        out=tmp_path_factory.mktemp("repeated") / "out",
    )


@pytest.fixture(scope="session")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Pings and nothing else."""
    (record,) = weirlab.run("ping", phases={"idle": "2s"}, out=tmp_path_factory.mktemp("idle") / "out")
    return record


@pytest.fixture(scope="session")
def one_page(rrul: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The viewer's page of one record."""
    return _page_of(rrul[:1], tmp_path_factory.mktemp("page") / "one.html")


@pytest.fixture(scope="session")
def two_page(rrul: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The viewer's page of two records, beside each other."""
    return _page_of(rrul, tmp_path_factory.mktemp("page") / "two.html")


def _page_of(records: list[Record], file: Path) -> Path:
    from weirlab.viewer import report_page  # noqa: PLC0415 - only tests of pages need it

    file.write_text(report_page(records), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def driver() -> Iterator[Playwright]:
    """What drives browsers; a process can have one."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only tests of pages need it

    with sync_playwright() as found:
        yield found


@pytest.fixture(scope="session")
def browser(driver: Playwright) -> Iterator[Browser]:
    """A browser for all tests of pages."""
    from browsing import PAGES_ONLY, started  # noqa: PLC0415 - only these tests need the driver

    with started(driver, PAGES_ONLY) as found:
        yield found


@pytest.fixture(scope="session")
def touched_browser(driver: Playwright) -> Iterator[Browser]:
    """A browser for tests of touches."""
    from browsing import WHOLE, started  # noqa: PLC0415 - only these tests need the driver

    with started(driver, WHOLE) as found:
        yield found


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The words of each chart of records that the test draws."""
    from matplotlib.text import Text  # noqa: PLC0415 - only these tests need Matplotlib

    from weirlab import plots  # noqa: PLC0415 - only these tests draw

    found: list[set[str]] = []
    of_records = plots._figure

    def read(*words: Any) -> Figure:
        chart = of_records(*words)
        found.append({text.get_text() for text in chart.findobj(Text)})
        return chart

    monkeypatch.setattr(plots, "_figure", read)
    return found


@pytest.fixture
def weir(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command `weir`, run in an empty folder as a process of its own."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return weir_in(tmp_path, *words)

    return run


@pytest.fixture
def weir_here(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command `weir`, run in an empty folder within this process: see `here`."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return run_here(tmp_path, *words)

    return run


MAX_SKIPPED = "WEIR_MAX_SKIPPED"
"""Environment variable: how many tests may skip before the whole run fails. `.ci/run` sets it."""

SKIPPED = "WEIR_SKIPPED"
"""Environment variable: file with the reasons of tests that skipped, a line each. `make test` runs the tests
in several parts, and what skipped in one counts in the next."""


def skip_reasons(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> Counter[str]:
    """How many tests skipped for which reason."""
    return Counter(
        " ".join(report.longrepr[2].removeprefix("Skipped: ").split())
        for report in reports
        if report.skipped and isinstance(report.longrepr, tuple)
    )


def too_many_skipped(skipped: int, allowed: str | None) -> str | None:
    """What is wrong when more tests skipped than allowed, or nothing. No limit where `allowed` is not set."""
    if allowed is None or skipped <= int(allowed):
        return None
    return f"{skipped} tests skipped, but {MAX_SKIPPED}={allowed}: this run shows too little"


def _all_skipped(config: pytest.Config) -> Counter[str]:
    """What skipped in this run, and before it in others that kept their reasons in the same file."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    here = skip_reasons(reporter.stats.get("skipped", [])) if reporter else Counter[str]()
    return here + config.stash.get(SKIPPED_BEFORE, Counter())


SKIPPED_BEFORE = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Reads what skipped in the parts before this one."""
    if file := os.environ.get(SKIPPED):
        config.stash[SKIPPED_BEFORE] = Counter(Path(file).read_text(encoding="utf-8").splitlines())


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fails a run that skipped more than it may."""
    skipped = _all_skipped(session.config).total()
    if exitstatus == pytest.ExitCode.OK and too_many_skipped(skipped, os.environ.get(MAX_SKIPPED)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Counts the tests that skipped, by reason, so that nobody takes them for passed."""
    reasons = _all_skipped(config)
    if reasons:
        terminalreporter.section(f"{reasons.total()} skipped")
    for reason, number in reasons.most_common():
        terminalreporter.line(f"{number:4}  {reason}")
    if wrong := too_many_skipped(reasons.total(), os.environ.get(MAX_SKIPPED)):
        terminalreporter.line(f"FAILED: {wrong}", red=True)
    if file := os.environ.get(SKIPPED):
        Path(file).write_text("".join(f"{reason}\n" for reason in reasons.elements()), encoding="utf-8")
