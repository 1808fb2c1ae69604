"""The documentation keeps up with what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from weirlab import _native
from weirlab.cli import COMMANDS
from weirlab.record.manifest import Manifest

ROOT = Path(__file__).parent.parent
QUEUE_PAGES = "\n".join(page.read_text() for page in (ROOT / "docs/queues").glob("*.md"))


@pytest.mark.parametrize("discipline", _native.disciplines(), ids=lambda one: one["name"])
def test_every_discipline_and_parameter_is_documented(discipline: _native.Discipline) -> None:
    assert discipline["name"] in QUEUE_PAGES
    for param in [*discipline["params"], *discipline["class_params"]]:
        assert f"`{param['name']}`" in QUEUE_PAGES, param["name"]


@pytest.mark.parametrize("marker", _native.markers(), ids=lambda one: one["name"])
def test_every_marker_and_parameter_is_documented(marker: _native.Marker) -> None:
    page = (ROOT / "docs/markers.md").read_text()
    assert marker["name"] in page
    for param in marker["params"]:
        assert f"`{param['name']}`" in page, param["name"]


@pytest.mark.parametrize("page", sorted((ROOT / "docs/queues").glob("*.md")), ids=lambda p: p.stem)
def test_every_page_has_the_same_headings(page: Path) -> None:
    text = page.read_text()
    for heading in ("## Model", "## Parameters", "## References", "## Validation", "## Limits"):
        assert heading in text or (heading == "## Parameters" and "## Parameters of" in text)


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs/cli.md").read_text()
    for name in COMMANDS:
        assert f"`weir {name}" in text


def test_every_key_of_the_manifest_is_documented() -> None:
    text = (ROOT / "docs/record.md").read_text()
    for name in Manifest.model_fields:
        assert f"`{name}`" in text, name


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page}: {target}"
