"""Takes a picture of the checkout page in each state: `make gallery`.

python -m tests.http.pages.gallery [FOLDER]

Each state is seen once light in English and once dark in Arabic, as on a telephone. More pictures
show what a sandbox adds, and a wide screen.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Route

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import Checkout
from tests.http.pages.browser import DESKTOP, PHONE, open_chromium, serve
from tests.http.pages.scenes import LOGO, LOGO_URL, SCENES, make_page

DOCS = Path(__file__).resolve().parents[3] / "docs"
FOLDER = DOCS / "images" / "checkout"
PAGE = DOCS / "explanation" / "checkout-gallery.md"
LOOKS = (("light", "en"), ("dark", "ar"))

PANEL = "sandbox"
WIDE = "desktop"
SCREENS = {
    WIDE: make_page,
    PANEL: lambda: make_page(checkout=Checkout(MemoryStorage())),
    "testnet": lambda: make_page(checkout=Checkout(MemoryStorage()).declare_network("testnet")),
}
"""Pictures of a state that another picture shows as well."""

PICTURES = (*SCENES, *SCREENS)


def show_logo(route: Route) -> None:
    """Answer for the partner's site, which there is not."""
    route.fulfill(body=LOGO, content_type="image/svg+xml")


def name_picture(name: str, scheme: str, tag: str) -> str:
    """The file of one state in one look."""
    return f"{name}-{scheme}-{tag}.png"


def take_pictures(browser: Browser, name: str, folder: Path) -> None:
    """The page of one state, in each look."""
    page = SCENES[name]() if name in SCENES else SCREENS[name]()
    if name != PANEL:  # where others share a sandbox, its page is as it is elsewhere
        page.checkout.api.service.tenants.create_app("Other", "other")
    with serve(page.checkout.api.app) as url:
        for scheme, tag in LOOKS:
            device: Any = DESKTOP if name == WIDE else PHONE
            context = browser.new_context(**device, color_scheme=scheme)
            context.route(LOGO_URL, show_logo)
            shown = context.new_page()
            shown.goto(f"{url}/pay/{page.code}?lang={tag}")
            # A picture of more than the screen would be one of a screen without touch.
            height = shown.evaluate("document.documentElement.scrollHeight")
            shown.set_viewport_size({"width": device["viewport"]["width"], "height": height})
            path = folder / name_picture(name, scheme, tag)
            shown.screenshot(path=path, animations="disabled")
            context.close()


def main(folder: Path = FOLDER) -> None:
    """All pictures, in place of those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    with open_chromium() as browser:
        for name in PICTURES:
            take_pictures(browser, name, folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
