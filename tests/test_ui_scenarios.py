"""The editor of scenario files in `weir ui`: checked while they are written, kept, and run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from browsing import PHONE, SCREENS, WAIT_MS, opened
from local_ui import Served, begun, ended
from weirlab.errors import UsageError
from weirlab.webapp.keys import scenario_keys
from weirlab.webapp.scenarios import FIRST, Scenarios, mark_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.realtime

WITH_FAULTS = 'test = "rrul"\nlink = "cable-20-8"\nquue = ["fq_codel"]\n[phases]\nload = "60"\n'

HOSTILE = "<img src=x onerror=\"window.harmed = 'yes'\">"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("scenarios")
    (folder / "mine.toml").write_text(FIRST, encoding="utf-8")
    one = begun(folder)
    yield one
    ended(one)


def form(**change: Any) -> dict[str, Any]:
    return {"file": "new.toml", "text": FIRST, "world": "sim", "mark": ""} | change


def test_every_key_of_a_scenario_is_explained() -> None:
    keys = {one.place: one for one in scenario_keys()}
    assert {"test", "link", "queue", "phases.load", "seed", "repeat"} <= set(keys)
    assert all(one.meaning and one.kind for one in keys.values())
    assert len(keys) == len(scenario_keys())


def test_what_is_written_is_checked_with_its_lines_and_the_command_told(tmp_path: Path) -> None:
    scenarios = Scenarios(tmp_path)
    command, total = scenarios.command(form(), None)
    assert (command, total) == (f"weir run {tmp_path}/new.toml --no-charts", 2)
    command, _ = scenarios.command(form(world="lab"), "/out")
    assert command == f"weir run {tmp_path}/new.toml --world lab --out /out --no-charts"
    # What is wrong with the text is told first, even before the file has a name.
    with pytest.raises(UsageError, match=r"line 3.*spede"):
        scenarios.command(form(file="", text='test = "rrul"\nlink = "cable-20-8"\nspede = 3\n'), None)
    # And not as that of a file that is not there.
    with pytest.raises(UsageError, match="test") as faulty:
        scenarios.command(form(file="", text="queue = 5\n"), None)
    assert "scenario.toml" not in str(faulty.value)
    assert str(tmp_path) not in str(faulty.value)
    # What was written there is told as it was written.
    written = f"{tmp_path}/scenario.toml"
    with pytest.raises(UsageError, match="test") as slip:
        scenarios.command(form(file="", text=FIRST.replace('"rrul"', f'"{written}"')), None)
    assert str(slip.value).startswith("the scenario")
    assert f"`{written}`" in str(slip.value)
    with pytest.raises(UsageError, match=r"give the file a name that ends in \.toml, such as my-line\.toml"):
        scenarios.command(form(file=""), None)
    with pytest.raises(UsageError, match=r"new\.toml.*line 3.*spede"):
        scenarios.command(form(text='test = "rrul"\nlink = "cable-20-8"\nspede = 3\n'), None)


def test_lines_end_as_they_did(tmp_path: Path) -> None:
    """Pages tell no carriage returns: a file of an editor that writes them keeps them."""
    scenarios, file = Scenarios(tmp_path), tmp_path / "mine.toml"
    for before, after in ((b"# a\r\n# b\r\n", b"# a\r\n# c\r\n"), (b"# a\n# b\n", b"# a\n# c\n")):
        file.write_bytes(before)
        text = scenarios.text("mine.toml")
        mark = scenarios.keep(form(file="mine.toml", text=text.replace("b", "c"), mark=mark_of(text)))
        assert file.read_bytes() == after
        assert mark == mark_of(scenarios.text("mine.toml"))


@pytest.mark.parametrize(
    "file",
    ["", "a", "../a.toml", "/etc/a.toml", "a/b.toml", ".toml", ".a.toml", "ä.toml", "x" * 99 + ".toml"],
)
def test_a_file_lies_in_the_folder_and_has_a_plain_name(tmp_path: Path, file: str) -> None:
    with pytest.raises(UsageError, match="write a name of letters" if file else "give the file a name"):
        Scenarios(tmp_path).keep(form(file=file))
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_others_wrote_is_lost(tmp_path: Path) -> None:
    scenarios = Scenarios(tmp_path)
    mark = scenarios.keep(form())
    assert scenarios.text("new.toml") == FIRST
    with pytest.raises(UsageError, match="is there already: choose another name"):
        scenarios.keep(form(text="# mine"))
    (tmp_path / "new.toml").write_text("# theirs\n")
    with pytest.raises(UsageError, match="was changed by somebody else since it was opened"):
        scenarios.keep(form(mark=mark))
    (tmp_path / "new.toml").unlink()
    with pytest.raises(UsageError, match="is no longer there"):
        scenarios.keep(form(mark=mark))
    assert mark_of(FIRST) == mark


def test_files_elsewhere_are_neither_read_nor_written(tmp_path: Path) -> None:
    folder, secret = tmp_path / "out", tmp_path / "secret.toml"
    folder.mkdir()
    secret.write_text('password = "tango"\n')
    (folder / "link.toml").symlink_to(secret)
    scenarios = Scenarios(folder)
    assert scenarios.files() == []
    for place in ("link.toml", "../secret.toml", str(secret)):
        with pytest.raises(UsageError, match="there is no such file"):
            scenarios.text(place)
    with pytest.raises(UsageError, match="there is no such file"):
        scenarios.keep(form(file="link.toml", mark=mark_of("")))
    for key in ("test", "link"):
        text = FIRST.replace({"test": '"rrul"', "link": '"cable-20-8"'}[key], json.dumps(str(secret)))
        with pytest.raises(UsageError) as told:
            scenarios.command(form(text=text), None)
        assert "tango" not in str(told.value)
        assert "password" not in str(told.value)
    assert secret.read_text() == 'password = "tango"\n'


def test_a_scenario_is_written_explained_kept_and_run(browser: Browser, served: Served) -> None:
    with opened(browser, f"{served.link}scenarios", within=served.link) as shown:
        page = shown.page
        expect(page.get_by_role("link", name="mine.toml")).to_be_visible()
        page.get_by_role("link", name="Write a new one").click()
        text = page.get_by_role("textbox", name="Scenario, in TOML")
        assert text.input_value() == FIRST
        expect(page.get_by_role("alert")).to_contain_text("give the file a name")
        page.get_by_label("File").fill("short.toml")
        expect(page.get_by_role("alert")).to_be_hidden()
        expect(page.locator("#command")).to_have_text(f"weir run {served.folder}/short.toml --no-charts")
        text.focus()
        page.keyboard.press("Control+End")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        expect(page.locator("#key")).to_contain_text("phases.load (")
        text.fill(FIRST + "nonsense = 1\n")
        expect(page.get_by_role("alert")).to_contain_text("nonsense")
        expect(page.get_by_role("button", name="Keep and run")).to_be_disabled()
        text.fill(FIRST.replace('"10s"', '"2s"'))
        expect(page.get_by_role("alert")).to_be_hidden()
        page.get_by_role("button", name="Keep", exact=True).click()
        expect(page.locator("#kept")).to_have_text("Kept.")
        page.get_by_role("searchbox").fill("cooldown")
        expect(page.locator("#keys tr:visible")).not_to_have_count(0)
        assert "phases.cooldown" in page.locator("#keys").inner_text()
        page.get_by_role("button", name="Keep and run").click()
        page.wait_for_url("**/runs/*")
        expect(page.get_by_text("done", exact=True)).to_be_visible(timeout=WAIT_MS)
        assert f"weir run {served.folder}/short.toml" in page.locator("pre").first.inner_text()


def test_why_a_file_is_not_kept_stays_to_be_read(browser: Browser, served: Served) -> None:
    """Also where it was written in so shortly before that a check of it was still to come."""
    file = served.folder / "theirs.toml"
    file.write_text(FIRST, encoding="utf-8")
    with opened(browser, f"{served.link}scenario?file=theirs.toml", within=served.link) as shown:
        page = shown.page
        text, alert = page.get_by_role("textbox", name="Scenario, in TOML"), page.get_by_role("alert")
        keep = page.get_by_role("button", name="Keep", exact=True)
        expect(page.locator("#command")).to_contain_text("theirs.toml")
        # What was kept is checked nevertheless.
        text.fill(FIRST + "nonsense = 1\n")
        keep.click()
        expect(page.locator("#kept")).to_have_text("Kept.")
        expect(alert).to_contain_text("nonsense")
        file.write_text("# theirs\n", encoding="utf-8")
        shown.provoked = "400"
        text.fill(FIRST)
        keep.click()
        expect(alert).to_contain_text("was changed by somebody else since it was opened")
        page.wait_for_timeout(1000)
        expect(alert).to_contain_text("was changed by somebody else since it was opened")
        expect(page.locator("#kept")).to_have_text("Not kept yet.")
        assert file.read_text(encoding="utf-8") == "# theirs\n"
        text.fill(FIRST + "other = 1\n")
        expect(alert).to_contain_text("other")


def test_faults_stand_one_a_line_and_keys_have_room_on_a_phone(browser: Browser, served: Served) -> None:
    with opened(browser, f"{served.link}scenario", within=served.link, viewport=PHONE) as shown:
        page = shown.page
        page.get_by_label("File").fill("faults.toml")
        page.get_by_role("textbox", name="Scenario, in TOML").fill(WITH_FAULTS)
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("is a time without its unit")
        said = alert.inner_text().splitlines()
        assert [line.split(":")[0] for line in said[1:]] == ["line 3", "line 5"], said
        place = page.get_by_role("group", name="Keys of a scenario")
        assert place.evaluate("it => it.scrollWidth - it.clientWidth") == 0
        expect(page.locator('[data-key="test.stages"] code').last).to_have_text('upload = "10s"')


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
@pytest.mark.parametrize("place", ["scenarios", "scenario", "scenario?file=mine.toml"])
def test_nothing_keeps_anybody_out(
    browser: Browser, served: Served, place: str, viewport: dict[str, int], scheme: str
) -> None:
    with opened(
        browser, f"{served.link}{place}", within=served.link, viewport=viewport, color_scheme=scheme
    ) as shown:
        shown.page.wait_for_load_state("networkidle")
        assert shown.barriers() == []
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_hostile_texts_harm_nothing(browser: Browser, served: Served) -> None:
    (served.folder / "hostile.toml").write_text(
        f"# </textarea>{HOSTILE}\n{json.dumps(HOSTILE)} = 1\n", encoding="utf-8"
    )
    with opened(browser, f"{served.link}scenario?file=hostile.toml", within=served.link) as shown:
        expect(shown.page.get_by_role("alert")).to_contain_text("onerror")
        assert shown.page.evaluate("window.harmed") is None
        assert shown.page.locator("img").count() == 0
        assert (
            shown.page.get_by_role("textbox", name="Scenario, in TOML")
            .input_value()
            .startswith("# </textarea>")
        )


def test_what_is_no_form_is_refused(served: Served) -> None:
    for body in (form(text=3), form(file=["a.toml"]), form(world="moon")):
        status, answer, _ = served.ask("/scenario/start", "POST", body)
        assert status == 400
        assert json.loads(answer)["error"]
    assert served.ask("/scenario?file=../../etc/passwd")[0] == 400
