"""Takes a picture of each page of the dashboard, as a part of `make gallery`.

Each page is seen once light on a wide screen, and once dark on a telephone's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from tests.http.dashboard.served_dashboard import HOME, PAGES, ServedDashboard, serve_dashboard
from tests.http.dashboard.served_office import OFFICE_PAGES, ServedOffice, serve_office
from tests.http.pages.browser import open_chromium

DOCS = Path(__file__).resolve().parents[3] / "docs"
FOLDER = DOCS / "images" / "dashboard"
PAGE = DOCS / "explanation" / "dashboard-gallery.md"
LOOKS: tuple[tuple[str, dict[str, int]], ...] = (
    ("light", {"width": 1200, "height": 640}),
    ("dark", {"width": 390, "height": 700}),
)
LOGIN = "login"
PICTURES = (LOGIN, *PAGES, *OFFICE_PAGES)


def name_picture(name: str, scheme: str) -> str:
    """The file of one page in one look."""
    return f"{name}-{scheme}.png"


def take_pictures(
    browser: Browser, dashboard: ServedDashboard | ServedOffice, folder: Path
) -> None:
    """Every page, in each look."""
    for scheme, size in LOOKS:
        given: dict[str, Any] = {"color_scheme": scheme, "viewport": size}
        context = browser.new_context(**given)
        page = context.new_page()
        page.goto(f"{dashboard.url}/dashboard/login")
        page.screenshot(path=folder / name_picture(LOGIN, scheme), full_page=True)
        dashboard.log_in(page)
        page.wait_for_url(f"**{HOME}")
        for name, path in dashboard.pages.items():
            page.goto(dashboard.url + path)
            page.screenshot(path=folder / name_picture(name, scheme), full_page=True)
        context.close()


def main(folder: Path = FOLDER) -> None:
    """All pictures, in place of those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    with open_chromium() as browser:
        with serve_dashboard() as dashboard:
            take_pictures(browser, dashboard, folder)
        with serve_office() as office:
            take_pictures(browser, office, folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
