"""Takes pictures of every component of the style sheet in every state, as a part of `make gallery`.

python -m tests.http.pages.specimen [FOLDER]
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from tests.http.pages.browser import open_chromium

DOCS = Path(__file__).resolve().parents[3] / "docs"
FOLDER = DOCS / "images" / "design"
PAGE = DOCS / "explanation" / "design-system.md"
SHEET = Path(str(files("payments_core_http.pages"))) / "static" / "style.css"
SPECIMEN = Path(__file__).with_name("specimen.html")
LOOKS: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("light", "ltr", {"width": 1000, "height": 640}),
    ("dark", "rtl", {"width": 390, "height": 700}),
)


def name_picture(scheme: str, direction: str) -> str:
    """The file of one look."""
    return f"components-{scheme}-{direction}.png"


def show_specimen(page: Page, direction: str) -> None:
    """Every component in every state, in the page."""
    html = SPECIMEN.read_text(encoding="utf-8").replace(
        'dir="ltr" class', f'dir="{direction}" class'
    )
    page.set_content(html)
    page.add_style_tag(path=SHEET)
    page.keyboard.press("Tab")  # what has the focus from now on shows it
    page.focus("#focused")


def take_pictures(browser: Browser, folder: Path) -> None:
    """The specimen, in each look."""
    for scheme, direction, size in LOOKS:
        given: dict[str, Any] = {"color_scheme": scheme, "viewport": size}
        context = browser.new_context(**given)
        page = context.new_page()
        show_specimen(page, direction)
        path = folder / name_picture(scheme, direction)
        page.screenshot(path=path, full_page=True, animations="disabled")
        context.close()


def main(folder: Path = FOLDER) -> None:
    """All pictures, in place of those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    with open_chromium() as browser:
        take_pictures(browser, folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
