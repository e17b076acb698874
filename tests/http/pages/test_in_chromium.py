"""The checkout page in a real browser: for everybody, within its policy, on a narrow screen."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Error

from payments_core_http.pages.languages import LANGUAGES
from tests.http.pages.browser import (
    AXE,
    AXE_TAGS,
    RUN_AXE,
    needs_chromium,
    open_chromium,
    require_accessible,
    serve,
)
from tests.http.pages.gallery import FOLDER, LOOKS, PAGE, PICTURES, name_picture, show_logo
from tests.http.pages.scenes import LOGO_URL, SCENES

pytestmark = [needs_chromium, pytest.mark.slow]
BUDGET_BYTES = 15_000
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


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="module", params=SCENES)
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of the page of a Payment in each state."""
    page = SCENES[request.param]()
    with serve(page.checkout.door.app) as url:
        yield f"{url}/pay/{page.code}"


@pytest.fixture(scope="module")
def waiting() -> Iterator[str]:
    page = SCENES["waiting"]()
    with serve(page.checkout.door.app) as url:
        yield f"{url}/pay/{page.code}"


@pytest.mark.parametrize("tag", ["en", "ar"])
@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no-script"])
def test_every_state_is_accessible_keeps_its_policy_and_fits_a_narrow_screen(
    chromium: Browser, address: str, has_script: bool, tag: str
) -> None:
    context = chromium.new_context(viewport=NARROW)  # type: ignore[arg-type]
    context.route(LOGO_URL, show_logo)
    if not has_script:  # axe needs a browser with scripts: the page gets none of its own
        context.route("**/pay/assets/*.js", lambda route: route.abort())
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    response = page.goto(f"{address}?lang={tag}")
    assert response is not None
    assert response.status == 200
    origin = address.partition("/pay/")[0]
    elsewhere = [url for url in asked if not url.startswith(f"{origin}/pay/")]
    assert elsewhere == ([LOGO_URL] if LOGO_URL in page.content() else [])
    ignored = "favicon" if has_script else "net::ERR_FAILED"
    assert [text for text in said if ignored not in text and "favicon" not in text] == []
    require_accessible(page, NARROW["width"])
    context.close()


def test_axe_finds_what_is_wrong(chromium: Browser) -> None:
    page = chromium.new_page()
    page.set_content('<html><body><img src="x"><p>text</p></body></html>')
    page.evaluate(AXE)
    found = {one["id"] for one in page.evaluate(RUN_AXE, AXE_TAGS)["violations"]}
    assert {"image-alt", "html-has-lang", "document-title"} <= found
    page.close()


@pytest.mark.parametrize("tag", LANGUAGES)
def test_errors_are_accessible_too(chromium: Browser, waiting: str, tag: str) -> None:
    context = chromium.new_context(viewport=NARROW)  # type: ignore[arg-type]
    page = context.new_page()
    response = page.goto(f"{waiting.rpartition('/')[0]}/short?lang={tag}")
    assert response is not None
    assert response.status == 404
    page.evaluate(AXE)
    assert page.evaluate(RUN_AXE, AXE_TAGS)["violations"] == []
    context.close()


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


def test_a_page_without_scripts_is_the_one_that_axe_has_seen(
    chromium: Browser, waiting: str
) -> None:
    blocked, off = chromium.new_context(), chromium.new_context(java_script_enabled=False)
    blocked.route("**/pay/assets/*.js", lambda route: route.abort())
    bodies = []
    for context in (blocked, off):
        page = context.new_page()
        page.goto(waiting)
        bodies.append(re.sub('data-left-ms="[0-9]+"', "", page.inner_html("html")))
        context.close()
    assert bodies[0] == bodies[1]


def test_a_sandbox_is_played_without_a_script(chromium: Browser) -> None:
    scene = SCENES["waiting"]()
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    with serve(scene.checkout.door.app) as url:
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
    with serve(scene.checkout.door.app) as url:
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
