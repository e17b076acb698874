"""In the dark a page has other colours and nothing else, so what is judged in the light holds."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

PAGES = Path(str(files("payments_core_http")))
SHEETS = [
    sheet
    for sheet in sorted(PAGES.rglob("*.css"))
    if "prefers-color-scheme" in sheet.read_text(encoding="utf-8")
]
DARK = re.compile(r"@media \(prefers-color-scheme: dark\) \{\s*:root \{([^{}]*)\}\s*\}")


def test_there_are_sheets_for_the_dark() -> None:
    assert {sheet.name for sheet in SHEETS} >= {"style.css"}


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_the_dark_sets_colours_alone(sheet: Path) -> None:
    text = sheet.read_text(encoding="utf-8")
    [colours] = DARK.findall(text)
    declared = [one.strip() for one in colours.split(";") if one.strip()]
    assert declared
    assert all(re.fullmatch(r"--[a-z-]+: #[0-9a-f]{3,8}", one) for one in declared)
    assert text.count("prefers-color-scheme") == 1
