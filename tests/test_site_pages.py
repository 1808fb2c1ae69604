"""The site of the documentation in a real browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browsing import PHONE, SCREENS, opened, served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

SITE = os.environ.get("WEIR_SITE")
"""Environment variable: the folder that `make site` made of the present source."""

if SITE is None:
    pytest.skip("the site is made for these tests alone: make test-site", allow_module_level=True)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site, on a server of files on this machine."""
    with served(Path(str(SITE))) as place:
        yield place


def test_a_reader_finds_a_queue_by_searching(browser: Browser, address: str) -> None:
    with opened(browser, address, within=address) as shown:
        shown.page.get_by_role("textbox", name="Search").click()
        shown.page.get_by_role("textbox", name="Search").fill("dualpi2")
        shown.page.locator(".md-search-result__item a").first.click()
        expect(shown.page.get_by_role("heading", level=1)).to_contain_text("dualpi2")


def test_the_playground_is_a_click_away_and_its_way_back_leads_home(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}playground/", within=address) as shown:
        shown.page.get_by_role("link", name="Open the playground").click()
        shown.page.wait_for_selector("html[data-ready]", state="attached")
        shown.page.get_by_role("link", name="Weir's documentation").click()
        expect(shown.page.get_by_role("heading", level=1)).to_contain_text("Weir")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("reference/commands/", "weir sweep show"),
        ("reference/files/", "GilbertElliottLossSpec"),
        ("reference/python/", "open_record"),
        ("reference/crates/", "weir-rate-control"),
    ],
)
def test_pages_that_are_written_have_their_headings(
    browser: Browser, address: str, page: str, text: str
) -> None:
    with opened(browser, f"{address}{page}", within=address) as shown:
        expect(shown.page.get_by_role("heading", name=text).first).to_be_attached()
        assert "\\|" not in shown.page.locator("article").inner_text()


@pytest.mark.parametrize(
    "page", ["", "cli/", "tcp/", "queues/cake/", "reference/files/", "reference/crates/"]
)
def test_no_page_is_wider_than_a_phone(browser: Browser, address: str, page: str) -> None:
    with opened(browser, f"{address}{page}", within=address, viewport=PHONE) as shown:
        wide = shown.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{wide} px beyond the screen"


@pytest.mark.parametrize(("viewport", "scheme"), SCREENS)
@pytest.mark.parametrize("page", ["", "scenarios/", "studies/thesis/", "reference/commands/"])
def test_nothing_keeps_anybody_out(
    browser: Browser, address: str, page: str, viewport: dict[str, int], scheme: str
) -> None:
    """Contrast, links told by more than colour, tables that a keyboard reaches, headings of tables."""
    place = f"{address}{page}"
    with opened(browser, place, within=address, viewport=viewport, color_scheme=scheme) as shown:
        # On a phone the theme has its own menu twice under one name.
        assert [one for one in shown.barriers() if one[0] != "landmark-unique"] == []


def test_the_gallery_leads_to_the_records_of_each_experiment(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}studies/gallery/", within=address) as shown:
        links = shown.page.get_by_role("link", name="Look at the records in your browser")
        names = [str(links.nth(at).get_attribute("href")) for at in range(links.count())]
        assert sorted(names) == sorted(set(names))
        assert len(names) == shown.page.locator("article h2[id*='-']").filter(has_text=": ").count()
        shown.page.locator("a[href$='yurtlab.html']").click()
        shown.page.wait_for_selector("html[data-ready]", state="attached")
        assert shown.chart("Ping, all runs").count() == 1
        assert "HTB + nfq_codel" in shown.page.locator("body").inner_text()


def test_the_items_of_a_crate_are_found(browser: Browser, address: str) -> None:
    with opened(browser, f"{address}reference/crates/", within=address) as shown:
        links = shown.page.get_by_role("link", name="All items")
        assert links.count() == shown.page.locator("article h2").count() - 1
        shown.page.locator("a[href$='rustdoc/weir_qdisc/']").click()
        shown.page.get_by_role("link", name="QueueSpec", exact=True).first.click()
        expect(shown.page.get_by_role("heading", level=1)).to_contain_text("QueueSpec")
