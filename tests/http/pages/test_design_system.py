"""The style sheet: its size, its tokens, and a specimen of each component for everybody."""

from __future__ import annotations

import gzip
import re

import pytest

from tests.http.pages.browser import needs_chromium, open_chromium, require_accessible
from tests.http.pages.specimen import (
    FOLDER,
    LOOKS,
    PAGE,
    SHEET,
    SPECIMEN,
    name_picture,
    show_specimen,
)

MAX_BYTES, MAX_COMPRESSED_BYTES = 12_000, 4_096
FROM_ELSEWHERE = {"--accent"}
"""A token that a sheet of its own sets."""
NOT_SHOWN = {
    "checkout", "logo", "merchant", "open", "ways", "codes", "facts", "qr", "back", "receipt",
    "languages", "login", "narrow", "skip", "copy", "only-narrow", "js",
    "script", "no-script", "balances", "other", "way",
}  # fmt: skip
"""Classes of a place and not of a component: the galleries show them."""


def test_it_is_small() -> None:
    sheet = SHEET.read_bytes()
    assert len(sheet) <= MAX_BYTES
    assert len(gzip.compress(sheet)) <= MAX_COMPRESSED_BYTES


def test_the_page_names_every_token_and_no_other() -> None:
    set_in_sheet = set(re.findall(r"(--[a-z0-9-]+):", SHEET.read_text(encoding="utf-8")))
    named = set(re.findall(r"`(--[a-z0-9-]+)`", PAGE.read_text(encoding="utf-8")))
    assert named - FROM_ELSEWHERE == set_in_sheet - {"--tone", "--on", "--mark"}


def test_only_tokens_have_colors() -> None:
    _, _, components = SHEET.read_text(encoding="utf-8").partition("/* Tones")
    assert re.findall(r"#[0-9a-f]{3,8}\b(?!\s*\{)", components) == []


def test_the_specimen_has_every_component() -> None:
    _, _, components = SHEET.read_text(encoding="utf-8").partition("/* Tones")
    selectors = re.findall(r"(?:^|\})([^{}]+)\{", components)
    classes = {name for one in selectors for name in re.findall(r"\.([a-z][a-z-]*)", one)}
    html = SPECIMEN.read_text(encoding="utf-8")
    shown = {name for one in re.findall(r'class="([^"]+)"', html) for name in one.split()}
    assert classes - NOT_SHOWN <= shown


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize("direction", ["ltr", "rtl"])
def test_the_specimen_is_for_everybody_on_every_screen(direction: str) -> None:
    with open_chromium() as chromium:
        page = chromium.new_page()
        show_specimen(page, direction)
        require_accessible(page, 320, 1280)


def test_there_is_a_picture_of_each_look() -> None:
    pictures = {name_picture(scheme, direction) for scheme, direction, _ in LOOKS}
    assert {path.name for path in FOLDER.glob("*.png")} == pictures
    shown = re.findall(r"\(\.\./images/design/([^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert set(shown) == pictures
