"""Updates the catalogs of the pages from the texts of the code: `make catalogs`.

python -m docs.catalogs

New texts are added to every catalog with an empty translation, and unused texts are removed.
A test verifies that no translation is missing.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from babel.messages import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from payments_core_http.pages.languages import DEFAULT_LANGUAGE, LANGUAGES, get_locale

PAGES = Path(__file__).resolve().parent.parent / "payments_core_http" / "pages"
_HEADER = r"""msgid ""
msgstr ""
"Language: {tag}\n"
"Content-Type: text/plain; charset=utf-8\n"
"Plural-Forms: {plural_forms}\n"

"""
_METHODS = [("**.py", "python"), ("templates/**.html", "jinja2.ext:babel_extract")]
_KEYWORDS: dict[str, tuple[int, ...] | None] = {
    "_": None,
    "N_": None,
    "translate": None,
    "translate_count": (1, 2),
}


def extract_texts() -> Catalog:
    """The texts of the code, each once, in the order in which a reader of the code finds them."""
    catalog = Catalog()
    for _, _, text, _, _ in extract_from_dir(PAGES, _METHODS, keywords=_KEYWORDS):
        catalog.add(text)
    return catalog


def read_catalog(tag: str) -> Catalog:
    """The catalog of a language, as it is stored."""
    with catalog_path(tag).open("rb") as lines:
        return read_po(lines, locale=get_locale(tag))


def catalog_path(tag: str) -> Path:
    """The path of a language's catalog."""
    return PAGES / "locale" / f"{tag}.po"


def render_updated(tag: str) -> bytes:
    """The catalog with the texts of the code, in their order."""
    locale = get_locale(tag)
    known = read_catalog(tag) if catalog_path(tag).exists() else Catalog(locale=locale)
    updated = Catalog(locale=locale, fuzzy=False)
    for message in extract_texts():
        if message.id:
            old = known.get(message.id)
            updated.add(message.id, old.string if old else "")
    out = BytesIO()
    write_po(out, updated, omit_header=True, no_location=True)
    header = _HEADER.format(tag=locale, plural_forms=updated.plural_forms)
    return header.encode() + out.getvalue()


def main() -> None:
    """Write all catalogs."""
    for tag in LANGUAGES:
        if tag != DEFAULT_LANGUAGE:
            catalog_path(tag).write_bytes(render_updated(tag))


if __name__ == "__main__":
    main()
