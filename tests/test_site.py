"""What the site is made of: all pages, links that lead somewhere, and pages written from what is declared."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import weirlab
from weirlab.cli import COMMANDS, weir
from weirlab.cli.schemas import described_schemas

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What MkDocs makes the site of, with a page in each place of what takes long to make."""
    made = tmp_path_factory.mktemp("site") / "pages"
    gallery = (ROOT / "docs/studies/gallery.md").read_text(encoding="utf-8")
    crates = [f"weir_{path.name.replace('-', '_')}" for path in (ROOT / "crates").iterdir()]
    slow = {
        "playground": ["index.html"],
        "studies": [f"{name}.html" for name in re.findall(r"^## ([\w-]+): ", gallery, re.MULTILINE)],
        "rustdoc": [f"{crate}/index.html" for crate in crates],
    }
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in slow}
    for kind, names in slow.items():
        for name in names:
            page = folders[kind] / name
            page.parent.mkdir(exist_ok=True)
            page.write_text(kind)
    command = [sys.executable, str(ROOT / "site/assemble.py"), *map(str, folders.values()), str(made)]
    subprocess.run(command, check=True, timeout=300)
    return made


def pages(folder: Path) -> dict[str, str]:
    return {str(page.relative_to(folder)): page.read_text(encoding="utf-8") for page in folder.rglob("*.md")}


def test_the_menu_has_every_page_once(folder: Path) -> None:
    menu = (ROOT / "site/mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert sorted(re.findall(r"([\w/.-]+\.md)$", menu, re.MULTILINE)) == sorted(pages(folder))


def test_links_lead_to_pages_of_the_site_or_to_other_sites(folder: Path) -> None:
    count = 0
    for name, text in pages(folder).items():
        for target in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            if "://" in target or target.startswith("mailto:"):
                assert not re.match(r"https://github.com/weir-bench/weir/blob/main/docs/", target), (
                    name,
                    target,
                )
                continue
            assert (folder / name).parent.joinpath(target).exists(), (name, target)
            count += 1
    assert count > 100


def test_files_of_the_repository_that_pages_link_to_are_there(folder: Path) -> None:
    links = re.compile(r"https://github.com/weir-bench/weir/(?:blob|tree)/main/([^)\s#]+)")
    found = {target for text in pages(folder).values() for target in links.findall(text)}
    assert found
    assert [target for target in sorted(found) if not (ROOT / target).exists()] == []


def test_the_page_of_the_playground_leads_to_it(folder: Path) -> None:
    assert "](play/index.html)" in pages(folder)["playground.md"]
    assert (folder / "play/index.html").exists()


def test_every_command_and_option_has_its_row(folder: Path) -> None:
    text = pages(folder)["reference/commands.md"]
    context = click.Context(weir, info_name="weir")
    for name in COMMANDS:
        assert f"## weir {name}\n" in text
        command = weir.get_command(context, name)
        assert command is not None
        for param in command.get_params(click.Context(command, info_name=name, parent=context)):
            if isinstance(param, click.Option) and not param.hidden:
                assert f"`{param.opts[0]}" in text, (name, param.opts)


def test_every_key_of_every_kind_of_file_has_its_row(folder: Path) -> None:
    text = pages(folder)["reference/files.md"]
    for kind in described_schemas():
        schema = kind["schema"]
        for definition in [schema, *schema.get("$defs", {}).values()]:
            for key in definition.get("properties", {}):
                assert f"\n| `{key}` |" in text, (kind["name"], key)
    headings = set(re.findall(r"^## (.*)$", text, re.MULTILINE))
    links = {name for name, place in re.findall(r"\[([^\]]+)\]\(#([^)]+)\)", text)}
    assert links <= headings


def test_all_that_the_package_offers_is_in_the_reference(folder: Path) -> None:
    found = re.findall(r"^::: .*\.(\w+)$", pages(folder)["reference/python.md"], re.MULTILINE)
    assert found == weirlab.__all__
