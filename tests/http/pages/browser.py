"""The pages in a real browser: the system's chromium, on a real server of their own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any, Literal
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
DESKTOP: Mapping[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: Mapping[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "is_mobile": True,
    "has_touch": True,
}
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
WCAG = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
Checks = tuple[tuple[Literal["light", "dark"], Mapping[str, Any]], ...]
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
# A dark page has other colours and nothing else: the rest is judged once, in the light.
CHECKS: Checks = (
    ("light", WCAG),
    ("dark", COLOURS),
)
# What is wrong and nothing of what is right: the answer in full costs three times as much.
_RUN_AXE = """rules => axe.run(document, {
  runOnly: rules, resultTypes: ['violations'], selectors: false, preload: false,
}).then(found => found.violations.map(one => [one.id, one.nodes.map(node => node.html)]))"""

# CI installs it, and must not pass without it.
needs_chromium = pytest.mark.skipif(
    shutil.which(CHROMIUM) is None and not os.environ.get("CI"), reason="needs chromium"
)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the address holds a code."""


@contextmanager
def serve(app: Any) -> Iterator[str]:
    """The app on a port of its own; its URL."""
    server = make_server("127.0.0.1", 0, app, server_class=_Server, handler_class=_Silent)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """The system's browser; no other is downloaded."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            yield browser
        finally:
            browser.close()


def require_accessible(page: Page, *widths: int) -> None:
    """The page that is open meets WCAG 2.2 AA, and fits each of these widths without scrolling."""
    page.evaluate(AXE)
    for width in widths:
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # No width changes a colour.
        require_no_violation(page, CHECKS if width == widths[-1] else CHECKS[:1])


def require_no_violation(page: Page, checks: Checks = CHECKS) -> None:
    """The page, which has axe, meets WCAG 2.2 AA in the light and in the dark."""
    for scheme, rules in checks:
        page.emulate_media(color_scheme=scheme)
        assert find_violations(page, rules) == [], scheme


def find_violations(page: Page, rules: Mapping[str, Any] = WCAG) -> list[tuple[str, list[str]]]:
    """What axe finds wrong: each rule with the elements that break it."""
    found: list[tuple[str, list[str]]] = page.evaluate(_RUN_AXE, rules)
    return found
