"""Each language on a narrow screen: nothing flows out, and no button has more than two lines."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest
from playwright.sync_api import Browser
from playwright.sync_api import Page as Tab

from payments_core_http.pages.languages import LANGUAGES
from tests.http.pages.browser import needs_chromium, serve
from tests.http.pages.scenes import make_page, send, send_unconfirmed
from tests.http.pages.test_choices import ask_route, fields_of
from tests.http.pages.test_choices import send as send_form
from tests.http.pages.wallet import INJECT
from tests.http.payer_page import Page

pytestmark = [needs_chromium, pytest.mark.slow]
WIDTH = 320
_MEASURE = """() => {
  const lines = (one) => {
    const range = document.createRange();
    range.selectNodeContents(one);
    const { lineHeight } = getComputedStyle(one);
    return Math.round(range.getBoundingClientRect().height / parseFloat(lineHeight));
  };
  const shown = (selector) => [...document.querySelectorAll(selector)]
    .filter((one) => one.checkVisibility());
  const rows = (tabs) => new Set([...tabs.querySelectorAll(":scope > label")]
    .map((one) => one.offsetTop)).size;
  return {
    wide: [...document.querySelectorAll("body *")]
      .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1
        && !one.closest(".unseen, .progress")).map((one) => one.outerHTML.slice(0, 80)),
    tall: shown("button, .button").filter((one) => lines(one) > 2).map((one) => one.textContent),
    broken: shown(".copied button, .tabs > label").filter((one) => lines(one) > 1)
      .map((one) => one.textContent),
    tabs: shown(".tabs").filter((one) => rows(one) > 1).map((one) => one.textContent),
  };
}"""
"""What flows out of the page; buttons of three lines; what must take one line and does not; and
tabs that do not fit into one row."""


@attrs.frozen
class Narrow:
    """A narrow tab, and the addresses of one page for each part that a payer may meet."""

    tab: Tab
    addresses: tuple[str, ...]


@pytest.fixture(scope="module")
def narrow(chromium: Browser) -> Iterator[Narrow]:
    """One shop with a Payment that waits, one with a route, one at the on-ramp, one on its way,
    one that is paid, and no Payment."""
    first = make_page()
    routed, ramped, moving, paid = (Page(first.checkout) for _ in range(4))
    send(paid, "25")
    ask_route(routed)
    send_form(ramped, fields_of(ramped, "hosted_onramp"))
    send_unconfirmed(moving)
    with serve(first.checkout.api.app) as url:
        tab = chromium.new_page(viewport={"width": WIDTH, "height": 640})
        tab.add_init_script(INJECT)
        queries = (
            (first.code, ""),
            (first.code, "&method=routing"),
            (routed.code, "&method=routing"),
            (ramped.code, "&method=hosted_onramp"),
            (moving.code, ""),
            (paid.code, ""),
            ("short", ""),
        )
        yield Narrow(tab, tuple(f"{url}/pay/{code}?lang=TAG{more}" for code, more in queries))
        tab.close()


@pytest.mark.parametrize("tag", LANGUAGES)
def test_every_part_fits_a_narrow_screen(narrow: Narrow, tag: str) -> None:
    for address in narrow.addresses:
        narrow.tab.goto(address.replace("TAG", tag))
        found = narrow.tab.evaluate(_MEASURE)
        assert found == {"wide": [], "tall": [], "broken": [], "tabs": []}, address
