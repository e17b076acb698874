"""The reference at /docs: whole without JavaScript, strict about what it loads, readable by all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import payments_core_http.reference
from payments_core.engine.events import CATALOGUE
from payments_core_http.observability import health
from payments_core_http.openapi.document import build_document
from payments_core_http.reference.pages import render_page
from payments_core_http.routes import ROUTES
from tests.http.api_harness import ApiHarness, Seen

STATIC = Path(payments_core_http.reference.__file__).parent / "static"
SCRIPT = (STATIC / "reference.js").read_text(encoding="utf-8")
STYLE = (STATIC / "reference.css").read_text(encoding="utf-8")
VOID = {"meta", "link", "input", "br", "hr", "img"}


class Page(HTMLParser):
    """A page's elements with their attributes, the texts of its headings, and its whole text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, name: str) -> Iterator[dict[str, str | None]]:
        return (attributes for tag, attributes in self.elements if tag == name)


@pytest.fixture(scope="module")
def seen() -> Seen:
    return ApiHarness().call("GET", "/docs", auth=None)


@pytest.fixture(scope="module")
def page(seen: Seen) -> Page:
    return Page(seen.body.decode())


class TestTheAnswer:
    def test_it_is_a_page_that_may_be_kept(self, seen: Seen) -> None:
        assert seen.status == 200
        assert seen.headers["content-type"] == "text/html; charset=utf-8"
        assert seen.headers["cache-control"].startswith("public")
        assert seen.headers["x-request-id"].startswith("req_")

    def test_its_policy_lets_nothing_in_but_its_own_files(self, seen: Seen) -> None:
        policy = dict(
            part.strip().split(" ", 1)
            for part in seen.headers["content-security-policy"].split(";")
        )
        assert policy == {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "connect-src": "'self'",
            "base-uri": "'none'",
            "form-action": "'none'",
            "frame-ancestors": "'none'",
        }

    @pytest.mark.parametrize(
        ("name", "media_type"),
        [("reference.css", "text/css"), ("reference.js", "text/javascript")],
    )
    def test_its_files_are_served(self, name: str, media_type: str) -> None:
        api = ApiHarness()
        file = api.call("GET", f"/docs/{name}", auth=None)
        assert file.body == (STATIC / name).read_bytes()
        assert file.headers["content-type"].startswith(media_type)
        tag = file.headers["etag"]
        again = api.call("GET", f"/docs/{name}", auth=None, headers={"If-None-Match": tag})
        assert again.status == 304

    def test_no_other_file_is_served(self, api: ApiHarness) -> None:
        for path in ("/docs/reference.html", "/docs/../app.py", "/docs/"):
            assert api.call("GET", path, auth=None).status == 404

    def test_it_says_of_which_mode_the_process_is(self) -> None:
        for mode in ("sandbox", "production"):
            assert f'<body data-mode="{mode}">' in render_page(build_document(), mode)


class TestTheContent:
    def test_every_route_is_on_it_with_its_errors(self, page: Page) -> None:
        whole = build_document()
        for route in (*health.ROUTES, *ROUTES):
            name = whole["paths"][route.path][route.method.lower()]["operationId"]
            [article] = [it for it in page.all("article") if it.get("id") == name]
            assert (article["data-method"], article["data-path"]) == (route.method, route.path)
            assert route.summary in page.text
        codes = {code for code, it in whole["components"]["examples"].items() if "summary" in it}
        assert {f"error-{code}" for code in codes} <= ids(page)

    def test_every_event_and_schema_is_on_it(self, page: Page) -> None:
        assert {f"event-{event.name}" for event in CATALOGUE} <= ids(page)
        schemas = build_document()["components"]["schemas"]
        shown = {f"schema-{name}" for name in schemas if not name.endswith("Error")}
        assert shown <= ids(page)

    def test_every_link_inside_leads_somewhere(self, page: Page) -> None:
        targets = {str(link["href"])[1:] for link in page.all("a") if inside(link)}
        assert targets
        assert targets <= ids(page)

    def test_every_id_is_there_once(self, page: Page) -> None:
        found = [str(attributes["id"]) for _, attributes in page.elements if "id" in attributes]
        assert len(found) == len(set(found))

    def test_texts_of_the_document_cannot_become_markup(self) -> None:
        whole = build_document()
        whole["paths"]["/healthz"]["get"]["summary"] = "<script>alert(1)</script>"
        assert "<script>alert" not in render_page(whole, "sandbox")


class TestStrictness:
    def test_nothing_is_inline(self, page: Page) -> None:
        assert [script["src"] for script in page.all("script")] == ["docs/reference.js"]
        assert not list(page.all("style"))
        for tag, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on") or name == "style"], (
                tag
            )

    def test_nothing_comes_from_elsewhere(self, page: Page) -> None:
        loaded = [
            str(attributes[name])
            for tag, attributes in page.elements
            for name in ("src", "href", "action")
            if name in attributes
        ]
        assert all(re.match(r"#|[a-z]+[./]", url) and ":" not in url for url in loaded)
        assert "url(" not in STYLE
        assert "@import" not in STYLE
        assert not re.search(r"https?:", SCRIPT)

    @pytest.mark.parametrize(
        "word",
        [
            "eval", "Function(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
            "localStorage", "sessionStorage", "indexedDB", "document.cookie", "setAttribute(\"on",
        ],
    )  # fmt: skip
    def test_its_script_neither_evaluates_nor_stores(self, word: str) -> None:
        assert word not in SCRIPT

    def test_its_script_sends_no_cookies(self) -> None:
        assert SCRIPT.count("fetch(") == SCRIPT.count('credentials: "omit"')


class TestAccessibility:
    def test_it_has_a_language_a_title_and_landmarks(self, page: Page) -> None:
        assert next(page.all("html"))["lang"] == "en"
        names = [tag for tag, _ in page.elements]
        for landmark in ("header", "nav", "main", "footer", "h1", "title"):
            assert names.count(landmark) == 1, landmark
        assert next(page.all("nav"))["aria-label"]

    def test_the_first_link_skips_to_the_reference(self, page: Page) -> None:
        assert next(page.all("a"))["href"] == "#main"
        assert next(page.all("main"))["id"] == "main"

    def test_every_article_and_section_has_a_name(self, page: Page) -> None:
        for tag in ("article", "section"):
            assert all(str(one["aria-labelledby"]) in ids(page) for one in page.all(tag))

    def test_headings_skip_no_level(self, page: Page) -> None:
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))

    def test_every_control_has_a_label(self, page: Page) -> None:
        labels = {label["for"] for label in page.all("label")}
        assert all(control["id"] in labels for control in page.all("input"))

    def test_every_table_says_what_it_is_of(self, page: Page) -> None:
        assert len(list(page.all("table"))) == len(list(page.all("caption")))
        assert all(cell["scope"] in ("col", "row") for cell in page.all("th"))

    def test_what_scrolls_can_be_reached_by_keyboard(self, page: Page) -> None:
        assert all(it.get("tabindex") == "0" for it in page.all("pre"))

    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("ground", ["ground", "raised"])
    @pytest.mark.parametrize("color", ["text", "quiet", "link", "read", "write", "remove"])
    def test_texts_stand_out(self, color: str, ground: str, theme: str) -> None:
        light, dark = STYLE.split("@media (prefers-color-scheme: dark)")
        colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", light if theme == "light" else dark))
        assert contrast(colors[color], colors[ground]) >= 4.5


def ids(page: Page) -> set[str]:
    return {str(attributes["id"]) for _, attributes in page.elements if "id" in attributes}


def inside(link: dict[str, Any]) -> bool:
    return str(link["href"]).startswith("#")


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2."""
    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def luminance(color: str) -> float:
    parts = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
