"""The element with which a shop's own page shows the checkout: its script, with its texts.

The script asks for the Payment's link with the client secret, and shows the link's page in a frame.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from payments_core_http.pages.languages import LANGUAGES, get_language
from payments_core_http.pages.words import N_

ELEMENT_WORDS: Mapping[str, str] = {
    "pay": N_("Pay"),
    "payment": N_("Payment"),
    "close": N_("Close"),
    "alone": N_("Open in a new tab"),
    "refused": N_("This payment cannot be shown"),
    "unreachable": N_("The page cannot be shown at present"),
}
"""The texts of the element in a shop's own page; all others are in the page that it shows."""


@cache
def build_element() -> bytes:
    """The module `element.js`; its texts, by language, are the constant before it."""
    texts = {
        tag: {name: get_language(tag).translate(text) for name, text in ELEMENT_WORDS.items()}
        for tag in LANGUAGES
    }
    script = (files(__package__) / "static" / "element.js").read_text(encoding="utf-8")
    return f"const TEXTS = {json.dumps(texts, ensure_ascii=False)};\n{script}".encode()
