"""The pages in a real browser: the system's chromium, on a real server of their own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any, Literal
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN_AXE = "tags => axe.run(document, {runOnly: {type: 'tag', values: tags}})"
RUN_RULES = "rules => axe.run(document, {runOnly: {type: 'rule', values: rules}})"
# A dark page has other colours and nothing else: the rest is judged once, in the light.
CHECKS: tuple[tuple[Literal["light", "dark"], str, list[str]], ...] = (
    ("light", RUN_AXE, AXE_TAGS),
    ("dark", RUN_RULES, ["color-contrast", "link-in-text-block"]),
)

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
        for scheme, run, rules in CHECKS:
            page.emulate_media(color_scheme=scheme)
            found = page.evaluate(run, rules)["violations"]
            seen = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
            assert seen == [], (width, scheme)
