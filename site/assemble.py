"""Lays out what the site is made of: `python site/assemble.py PLAYGROUND STUDIES RUSTDOC FOLDER`.

The pages of docs/ and those at the root, with their links made to lead within the site or to the
repository; the pages of `written.py`; the playground; the viewer pages of studies; and what rustdoc
made. MkDocs makes the site of that folder.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import written
from written import REPOSITORY, ROOT

AT_THE_ROOT = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages of the repository's root, and where the site has them."""

OPEN = "<!-- open the playground -->"
"""Where docs/playground.md leads to the playground, which only the site has."""


def assemble(playground: Path, studies: Path, rustdoc: Path, folder: Path) -> None:
    """Writes everything into `folder`, which it empties."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.md"))
    for page in [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in AT_THE_ROOT)]:
        place = folder / place_of(page.relative_to(ROOT))
        place.parent.mkdir(parents=True, exist_ok=True)
        text = linked(page.read_text(encoding="utf-8"), page)
        text = text.replace(OPEN, "[Open the playground](play/index.html){ .md-button .md-button--primary }")
        if page == GALLERY:
            text = with_pages(text, studies)
        place.write_text(text, encoding="utf-8")
    for name, text in written.pages().items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    for name in ("site.css", "site.js"):
        shutil.copy(ROOT / "site" / name, folder)
    shutil.copytree(playground, folder / "play")
    shutil.copytree(studies, folder / PAGES)
    shutil.copytree(rustdoc, folder / written.RUSTDOC)


def with_pages(text: str, studies: Path) -> str:
    """The page of the gallery with a link to the viewer page of each experiment below its heading."""
    names = {page.stem for page in studies.glob("*.html")}
    found = {match[1] for match in EXPERIMENT.finditer(text)}
    if found != names:
        raise ValueError(f"the gallery has the experiments {sorted(found)}, and pages of {sorted(names)}")
    look = r"\g<0>\n\n[Look at the records in your browser](pages/\g<1>.html){ .md-button }"
    return EXPERIMENT.sub(look, text)


def place_of(page: Path) -> Path:
    """Where the site has a page of the repository, of its path there."""
    return Path(AT_THE_ROOT[str(page)]) if str(page) in AT_THE_ROOT else page.relative_to("docs")


def linked(text: str, page: Path) -> str:
    """The text of a page with its links made to lead within the site, or to the repository."""
    lines, in_code = [], False
    for line in text.splitlines():
        in_code ^= line.lstrip().startswith("```")
        lines.append(line if in_code else for_mkdocs(line, page))
    return "\n".join(lines) + "\n"


def for_mkdocs(line: str, page: Path) -> str:
    """A line with its links led, and with bars in code as this Markdown has them: they end no cell."""
    line = LINK.sub(lambda found: f"]({target(found[1], page)})", line)
    return CODE.sub(lambda found: found[0].replace("\\|", "|"), line) if line.startswith("|") else line


def target(link: str, page: Path) -> str:
    """Where a link of a page leads on the site."""
    path, mark, part = link.partition("#")
    within = IN_REPOSITORY.match(path)
    if within is not None:
        place = ROOT / within[1]
    elif "://" in path or not path:
        return link
    else:
        place = Path(os.path.normpath(page.parent / path))
    inside = place.relative_to(ROOT)
    if str(inside) not in AT_THE_ROOT and inside.parts[0] != "docs":
        return f"{REPOSITORY}/{'tree' if place.is_dir() else 'blob'}/main/{inside}{mark}{part}"
    here = place_of(page.relative_to(ROOT)).parent
    return os.path.relpath(place_of(inside), here) + mark + part


GALLERY = ROOT / "docs" / "studies" / "gallery.md"

PAGES = "studies/pages"
"""Where the site has the viewer pages of studies, beside the page of the gallery."""

EXPERIMENT = re.compile(r"^## ([\w-]+): .+$", re.MULTILINE)
"""The heading of an experiment in the page of the gallery."""

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`]+`")
IN_REPOSITORY = re.compile(rf"{re.escape(REPOSITORY)}/(?:blob|raw|tree)/main/(.+)")

if __name__ == "__main__":
    match sys.argv[1:]:
        case [playground, studies, rustdoc, folder]:
            assemble(Path(playground), Path(studies), Path(rustdoc), Path(folder))
        case _:
            sys.exit("assemble: give the playground, the studies' pages, rustdoc's, and the folder to write")
