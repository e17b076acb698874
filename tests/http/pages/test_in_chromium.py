"""The checkout page in a real browser: for everybody, within its policy, on a narrow screen."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from playwright.sync_api import Browser, Error, Page

from payments_core_http.pages.languages import LANGUAGES
from tests.http.pages.browser import (
    AXE,
    CHECKS,
    find_violations,
    needs_chromium,
    require_no_violation,
    serve,
)
from tests.http.pages.gallery import FOLDER, LOOKS, PAGE, PICTURES, name_picture, show_logo
from tests.http.pages.scenes import LOGO_URL, SCENES
from tests.http.pages.wallet import ANNOUNCE

pytestmark = [needs_chromium, pytest.mark.slow]
BUDGET_BYTES = 16_000
NARROW = {"width": 320, "height": 640}
LARGEST_PAINT = """() => new Promise(done => {
  let shift = 0;
  new PerformanceObserver(list => list.getEntries().forEach(one => { shift += one.value; }))
    .observe({type: "layout-shift", buffered: true});
  new PerformanceObserver(list => {
    const paints = list.getEntries();
    setTimeout(() => done([paints[paints.length - 1].startTime, shift]), 100);
  }).observe({type: "largest-contentful-paint", buffered: true});
})"""


class Shelf:
    """The pages of many Payments at one address, each with a service of its own."""

    def __init__(self) -> None:
        self._apps: dict[str, Any] = {}

    def add(self, scene: str) -> str:
        """The path of the page of a Payment in that state."""
        page = SCENES[scene]()
        self._apps[page.code] = page.checkout.api.app
        return f"/pay/{page.code}"

    def __call__(self, environ: Any, start_response: Any) -> Any:
        code = environ["PATH_INFO"].rpartition("/")[2]
        app = self._apps.get(code) or next(iter(self._apps.values()))
        return app(environ, start_response)


@attrs.frozen
class Looks:
    """Three tabs, each for all pages: with scripts and a wallet, with scripts off, and with axe.

    axe needs scripts. It judges what the others have, in a tab in which the page's own do not run.
    """

    url: str
    shelf: Shelf
    scripted: Page
    plain: Page
    judge: Page
    said: list[str]
    asked: list[str]

    def open(self, tab: Page, path: str, *, status: int = 200) -> str:
        """The page as the browser has it: within its policy, and on a narrow screen."""
        self.said.clear()
        self.asked.clear()
        response = tab.goto(self.url + path)
        assert response is not None
        assert response.status == status
        assert tab.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
        html = tab.content()
        expected = f"status of {status}" if status != 200 else "favicon"
        assert [one for one in self.said if "favicon" not in one and expected not in one] == []
        ours = (f"{self.url}/pay/", f"{self.url}/assets/")
        elsewhere = [one for one in self.asked if not one.startswith(ours)]
        assert elsewhere == ([LOGO_URL] if LOGO_URL in html else [])
        tab.goto("about:blank")  # before a paid page leads back to its shop
        return html

    def require_accessible(self, html: str) -> None:
        self.judge.set_content(html)
        assert self.judge.evaluate("getComputedStyle(document.body).borderTopStyle") == "solid"
        require_no_violation(self.judge)


@pytest.fixture(scope="module")
def looks(chromium: Browser) -> Iterator[Looks]:
    narrow: Any = {"viewport": NARROW}
    contexts = [
        chromium.new_context(**narrow),
        chromium.new_context(**narrow, java_script_enabled=False),
        chromium.new_context(**narrow, bypass_csp=True),
    ]
    for context in contexts:
        context.route(LOGO_URL, show_logo)
    contexts[0].add_init_script(ANNOUNCE.replace("NAME", '"Example wallet"'))
    contexts[2].route("**/pay/assets/*.js", lambda route: route.abort())
    shelf = Shelf()
    with serve(shelf) as url:
        looks = Looks(url, shelf, *(context.new_page() for context in contexts), [], [])
        for tab in (looks.scripted, looks.plain):
            tab.on("console", lambda message: looks.said.append(message.text))
            tab.on("pageerror", lambda error: looks.said.append(str(error)))
            tab.on("request", lambda request: looks.asked.append(request.url))
        looks.judge.goto(url + shelf.add("waiting"))
        looks.judge.evaluate(AXE)
        yield looks
        for context in contexts:
            context.close()


@pytest.fixture(scope="module", params=SCENES)
def path(request: pytest.FixtureRequest, looks: Looks) -> str:
    """The path of the page of a Payment in each state."""
    return looks.shelf.add(request.param)


@pytest.fixture(scope="module")
def waiting() -> Iterator[str]:
    page = SCENES["waiting"]()
    with serve(page.checkout.api.app) as url:
        yield f"{url}/pay/{page.code}"


@pytest.mark.parametrize("tag", ["en", "ar"])
def test_every_state_is_accessible_keeps_its_policy_and_fits_a_narrow_screen(
    looks: Looks, path: str, tag: str
) -> None:
    scripted = looks.open(looks.scripted, f"{path}?lang={tag}")
    plain = looks.open(looks.plain, f"{path}?lang={tag}")
    assert [' class="js"' in html for html in (scripted, plain)] == [True, False]
    looks.require_accessible(scripted)
    if tag == "en":  # another language changes words and their direction, with or without scripts
        looks.require_accessible(plain)


@pytest.mark.parametrize("tag", LANGUAGES)
def test_errors_are_accessible_too(looks: Looks, tag: str) -> None:
    html = looks.open(looks.scripted, f"/pay/short?lang={tag}", status=404)
    looks.require_accessible(html)


def test_what_is_wrong_is_found(looks: Looks) -> None:
    html = looks.open(looks.scripted, looks.shelf.add("paid"))
    assert "<h1>" in html
    wrong = html.replace('lang="en"', "").replace("<h1>", '<h1><img src="x">')
    looks.judge.set_content(wrong)
    found = {rule for rule, _ in find_violations(looks.judge)}
    assert found == {"image-alt", "html-has-lang"}
    looks.judge.add_style_tag(content="h1 { color: var(--line); }")
    for scheme, rules in CHECKS:
        looks.judge.emulate_media(color_scheme=scheme)
        assert "color-contrast" in {rule for rule, _ in find_violations(looks.judge, rules)}


def test_the_page_does_not_move_and_is_soon_there(chromium: Browser, waiting: str) -> None:
    page = chromium.new_page()
    page.goto(waiting)
    painted_ms, shift = page.evaluate(LARGEST_PAINT)
    assert shift == 0
    assert painted_ms < 1_500
    page.close()


def test_all_of_it_is_within_its_budget(chromium: Browser, waiting: str) -> None:
    page = chromium.new_page()
    bodies: list[bytes] = []
    page.on("requestfinished", lambda request: bodies.append(request.response().body()))
    page.goto(waiting, wait_until="networkidle")
    assert len(bodies) >= 2
    assert sum(len(gzip.compress(body)) for body in bodies) <= BUDGET_BYTES
    page.close()


def test_the_page_works_and_says_the_same_without_a_script(chromium: Browser, waiting: str) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(waiting)
    assert page.inner_text("h1") == "Waiting for your payment"
    page.click("text=Look again")
    assert page.inner_text("h1") == "Waiting for your payment"
    assert page.locator("svg.qr").count() == 2
    context.close()


def test_a_sandbox_is_played_without_a_script(chromium: Browser) -> None:
    scene = SCENES["waiting"]()
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    with serve(scene.checkout.api.app) as url:
        page.goto(f"{url}/pay/{scene.code}?lang=es")
        page.click("text=Pagar todo")
        assert page.inner_text("h1") == "Su pago se está confirmando"
        page.click("text=Añadir 20 bloques")
        assert page.inner_text("h1") == "Pagado"
    assert [text for text in said if "favicon" not in text] == []
    context.close()


def test_no_script_can_make_markup_out_of_text(chromium: Browser, waiting: str) -> None:
    page = chromium.new_page()
    page.goto(waiting)
    for sink in ("innerHTML = '<b>x</b>'", "insertAdjacentHTML('beforeend', '<b>x</b>')"):
        with pytest.raises(Error, match="TrustedHTML"):
            page.evaluate(f"document.body.{sink}")
    with pytest.raises(Error, match=r"Policy .* disallowed"):
        page.evaluate("trustedTypes.createPolicy('mine', {createHTML: text => text})")
    page.close()


def test_a_logo_is_asked_for_without_saying_from_where(chromium: Browser) -> None:
    scene = SCENES["branded"]()
    page = chromium.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request))
    page.route(LOGO_URL, show_logo)
    with serve(scene.checkout.api.app) as url:
        page.goto(f"{url}/pay/{scene.code}")
        [logo] = [one for one in asked if one.url == LOGO_URL]
        assert not {"referer", "cookie"} & logo.all_headers().keys()
        assert page.evaluate("document.querySelector('.logo').naturalWidth") == 160
        assert page.evaluate(LARGEST_PAINT)[1] == 0
    page.close()


def test_nobody_else_may_frame_the_page(chromium: Browser, waiting: str) -> None:
    page = chromium.new_page()
    page.set_content(f'<iframe src="{waiting}"></iframe>', wait_until="networkidle")
    framed = page.frames[1]
    assert "Waiting for your payment" not in framed.content()
    page.close()


def test_the_gallery_has_a_picture_of_every_state_in_every_look() -> None:
    pictures = {name_picture(name, *look) for name in PICTURES for look in LOOKS}
    assert {path.name for path in FOLDER.glob("*.png")} == pictures
    shown = re.findall(r"\(\.\./images/checkout/([^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(pictures)
