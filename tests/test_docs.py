"""Runs every ```python block of the pages, and follows the links between files.

A page's blocks run in order and share their names, so that a block may continue the one
before it. ```python no-run is skipped, and must stay rare.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
PAGES = sorted([*TOP, *(ROOT / "docs").rglob("*.md")])
NO_RUN_AT_MOST = 3

FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)$", re.M | re.S)
ANCHOR = re.compile(r"\]\((?!\w+:)(?P<target>[^)#\s]*)#(?P<anchor>[^)\s]+)")
HEADING = re.compile(r"^#+ (?P<text>.+)$", re.M)
LINK = re.compile(r"\]\((?!\w+:|#)(?P<target>[^)#\s]+)")


def blocks(page: Path, info: str) -> list[tuple[int, str]]:
    """The line where each block's body starts, and the body."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start("body")), found["body"])
        for found in FENCE.finditer(text)
        if found["info"].strip() == info
    ]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_the_code_on_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__page__"}
    for line, body in blocks(page, "python"):
        # Blank lines before the body make a traceback name the page's own line.
        exec(compile("\n" * line + body, str(page), "exec"), names)


def test_code_that_does_not_run_is_rare() -> None:
    skipped = [
        f"{name(page)}:{line}" for page in PAGES for line, _ in blocks(page, "python no-run")
    ]
    assert len(skipped) <= NO_RUN_AT_MOST, skipped


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_links_on_the_page_lead_to_files(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [found["target"] for found in LINK.finditer(text)]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w\- ]", "", found["text"].lower()).strip().replace(" ", "-")
        for found in HEADING.finditer(text)
    }


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_links_on_the_page_lead_to_headings(page: Path) -> None:
    """Sphinx follows those between its own pages; these are followed on code hosts too."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    wrong = [
        found[0]
        for found in ANCHOR.finditer(text)
        if (aim := page.parent / found["target"] if found["target"] else page).suffix == ".md"
        and found["anchor"] not in anchors(aim)
    ]
    assert wrong == []
