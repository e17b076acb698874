"""Each kind of payer pays on a real node, and reads on the page that it is paid.

One node, one shop and one browser serve them all; each has a Payment of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs
import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as Tab

from payments_core.money import parse_amount
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.cli.anvil.chain import AnvilChain
from tests.chains.evm.nodes import Node, anvil_or_skip
from tests.chains.scenes import PAYERS_KEY, signer
from tests.http.checkout import BASE, Checkout
from tests.http.pages.browser import DESKTOP, PHONE, needs_chromium, open_chromium, serve
from tests.http.pages.scenes import make_page
from tests.http.pages.wallet import ANNOUNCE, INJECT, Transfer, make_signing_wallet, sign_and_send
from tests.http.payer_page import Page

pytestmark = [needs_chromium, pytest.mark.slow]
POLL_MS = 10_500
DUE = 25_000_000
USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
MAX_TABS = 40


@attrs.frozen
class Shop:
    """Its checkout, which takes the node for the network of that name."""

    checkout: Checkout
    node: Node
    url: str
    browser: Browser
    pages: list[Page] = attrs.field(factory=list)


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with anvil_or_skip() as process, open_chromium() as browser:
        node, chain = Node(process.url), AnvilChain(process.url, BASE, signer())
        chain.prepare_node()
        checkout = Checkout(MemoryStorage(), sandbox_chains={BASE: chain}).declare_network("real")
        checkout.transfer(PAYERS_KEY.address, "1000")
        with serve(checkout.api.app) as url:
            yield Shop(checkout, node, url, browser)
        node.close()


@attrs.define
class Visit:
    """A payer on the page of a Payment of 25 USDC."""

    shop: Shop
    page: Page
    tab: Tab
    runs_scripts: bool

    @property
    def heading(self) -> Any:
        return self.tab.locator("h1")

    def send(self, transfer: Transfer) -> None:
        """The payer's wallet signs it and sends it."""
        sign_and_send(self.shop.node, PAYERS_KEY, transfer)

    def look(self) -> None:
        """The page asks for its newest state, or the payer does."""
        if self.runs_scripts:
            self.tab.clock.run_for(POLL_MS)
        else:
            self.tab.get_by_role("link", name="Look again").click()

    def expect_paid(self) -> None:
        """The page says so in the end, and the whole amount has arrived."""
        self.shop.checkout.advance(2)  # a scan is due, which finds it without any hint
        self.look()
        expect(self.heading).to_have_text("Your payment is being confirmed")
        for _ in range(3):
            self.shop.checkout.advance(20)
        self.look()
        expect(self.heading).to_have_text("Paid")
        payment = self.shop.checkout.read(self.page.payment["id"])
        assert (payment["status"], payment["receivedAmountAtomic"]) == ("succeeded", str(DUE))


@contextmanager
def visit(
    shop: Shop, prepare: Callable[[Tab], None] = lambda tab: None, **device: Any
) -> Iterator[Visit]:
    """On a device; `prepare` is done to its tab before the page is open."""
    page = make_page(checkout=shop.checkout)
    shop.pages.append(page)  # each is created with a key of its own while the others are there
    runs_scripts = device.get("java_script_enabled", True)
    context = shop.browser.new_context(**(device or DESKTOP))
    tab = context.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    prepare(tab)
    if runs_scripts:
        tab.clock.install()
    tab.goto(f"{shop.url}/pay/{page.code}")
    yield Visit(shop, page, tab, runs_scripts)
    assert [text for text in said if "favicon" not in text] == []
    context.close()


@pytest.mark.parametrize(
    ("script", "label", "by_keys"),
    [
        (ANNOUNCE, "Pay with \u2068Example wallet\u2069", False),  # EIP-6963
        (ANNOUNCE, "Pay with \u2068Example wallet\u2069", True),
        (INJECT, "Pay with the wallet of this browser", False),  # `window.ethereum` alone
    ],
)
def test_with_a_wallet_in_the_browser(shop: Shop, script: str, label: str, by_keys: bool) -> None:
    wallet = make_signing_wallet(shop.node, PAYERS_KEY)
    with visit(shop, lambda tab: wallet.inject(tab, script)) as payer:
        if by_keys:
            press_tab_until(payer.tab, label)
            payer.tab.keyboard.press("Enter")
        else:
            payer.tab.get_by_role("button", name=label).click()
        expect(payer.heading).to_have_text("Your wallet has sent a transfer")
        assert wallet.chain_id == BASE, "it was on another network"
        payer.expect_paid()
        [option] = shop.checkout.read(payer.page.payment["id"])["options"]
        assert option["option"]["payerAddress"] == PAYERS_KEY.address


def scan(tab: Tab) -> str:
    """The text of the one code that a camera sees on the screen."""
    [code] = zxingcpp.read_barcodes(Image.open(BytesIO(tab.screenshot())))
    return str(code.text)


def read_request(uri: str) -> Transfer:
    """What a wallet makes of a request to call `transfer` (EIP-681)."""
    scheme, _, rest = uri.partition(":")
    assert scheme == "ethereum"
    return read_call(rest)


def read_call(call: str) -> Transfer:
    target, _, query = call.partition("?")
    token, _, rest = target.partition("@")
    chain_id, _, function = rest.partition("/")
    assert function == "transfer"
    facts = read_once(query)
    assert facts.keys() == {"address", "uint256"}
    return Transfer(token, facts["address"], int(facts["uint256"]), int(chain_id))


def read_once(query: str) -> dict[str, str]:
    """The fields of a query, of which none is given twice."""
    return {name: one for name, [one] in parse_qs(query, strict_parsing=True).items()}


def test_by_scanning_the_request(shop: Shop) -> None:
    with visit(shop) as payer:
        payer.send(read_request(scan(payer.tab)))
        payer.expect_paid()


def test_by_scanning_the_address_and_typing_the_rest(shop: Shop) -> None:
    with visit(shop) as payer:
        payer.tab.get_by_text("Address only").click()
        payer.send(type_transfer(read_facts(payer.tab), to=scan(payer.tab)))
        payer.expect_paid()


def read_facts(tab: Tab) -> Mapping[str, str]:
    """What the page names to send, by the names on the page."""
    names = tab.locator(".facts dt").all_inner_texts()
    return dict(zip(names, tab.locator(".facts dd code").all_inner_texts(), strict=True))


def type_transfer(facts: Mapping[str, str], to: str) -> Transfer:
    """What a payer chooses in a wallet, where the token and the network have names."""
    assert facts["Network"] == "Base"
    return Transfer(USDC, to, parse_amount(facts["Amount"], 6), BASE)


def test_without_javascript(shop: Shop) -> None:
    with visit(shop, java_script_enabled=False) as payer:
        facts = read_facts(payer.tab)
        payer.send(type_transfer(facts, to=facts["To this address"]))
        payer.expect_paid()


def read_trust_link(url: str) -> Transfer:
    """As its documentation says: a coin's number and a token, an address, and whole tokens."""
    facts = read_once(urlsplit(url).query)
    coin, _, token = facts["asset"].partition("_t")
    assert coin == "c8453"
    return Transfer(token, facts["address"], parse_amount(facts["amount"], 6), BASE)


@pytest.mark.parametrize(
    ("label", "read"),
    [
        ("Open in wallet", read_request),
        ("MetaMask", lambda url: read_call(url.removeprefix("https://link.metamask.io/send/"))),
        ("Trust Wallet", read_trust_link),
    ],
)
def test_by_the_link_to_a_wallet_on_a_phone(
    shop: Shop, label: str, read: Callable[[str], Transfer]
) -> None:
    """The telephone gives the address that was tapped to the wallet's app."""
    with visit(shop, **PHONE) as payer:
        link = payer.tab.get_by_role("link", name=label)
        expect(link).to_be_in_viewport(ratio=1)
        payer.send(read(str(link.get_attribute("href"))))
        payer.expect_paid()


def press_tab_until(tab: Tab, name: str) -> None:
    """To what has that name, which then shows that it has the focus."""
    for _ in range(MAX_TABS):
        tab.keyboard.press("Tab")
        focused = tab.evaluate("""() => {
          const { activeElement: one } = document;
          return [one.ariaLabel ?? one.textContent, getComputedStyle(one).outlineStyle];
        }""")
        if focused[0] == name:
            assert focused[1] == "solid", "the payer does not see where the focus is"
            return
    raise AssertionError(f"{MAX_TABS} keys do not lead to {name!r}")


def test_by_keyboard_from_a_wallet_elsewhere(shop: Shop) -> None:
    """Copies what the wallet wants."""
    with visit(shop) as payer:
        payer.tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
        copied = {}
        for name in ("Amount", "To this address", "Network"):
            press_tab_until(payer.tab, f"Copy: {name}")
            payer.tab.keyboard.press("Enter")
            expect(payer.tab.locator("#news")).to_have_text("Copied")
            copied[name] = payer.tab.evaluate("navigator.clipboard.readText()")
        payer.send(type_transfer(copied, to=copied["To this address"]))
        payer.expect_paid()
        press_tab_until(payer.tab, "Back to \u2068Panadería Ñandú\u2069")


@attrs.frozen
class Heard:
    """A node of the accessibility tree, with what is in it."""

    role: str
    name: str
    inside: tuple[Heard, ...]

    def find(self, role: str) -> list[Heard]:
        """What has that role in it, in the order in which it is read."""
        found = ([one] if one.role == role else one.find(role) for one in self.inside)
        return [one for part in found for one in part]

    def text(self, role: str) -> str:
        """The text of the first that has that role in it."""
        return "".join(one.name for one in self.find(role)[0].find("StaticText"))


def listen(tab: Tab) -> Heard:
    """The page as a screen reader has it."""
    session = tab.context.new_cdp_session(tab)
    found = session.send("Accessibility.getFullAXTree")["nodes"]
    nodes = {node["nodeId"]: node for node in found}

    def describe(node: Mapping[str, Any]) -> Heard:
        role, name = (str(node.get(field, {}).get("value", "")) for field in ("role", "name"))
        return Heard(role, name, tuple(map(describe, map(nodes.__getitem__, node["childIds"]))))

    return describe(found[0])


def test_by_what_a_screen_reader_says(shop: Shop) -> None:
    with visit(shop) as payer:
        heard = listen(payer.tab)
        assert heard.text("heading") == "Waiting for your payment"
        terms = [one.find("StaticText")[0].name for one in heard.find("term")]
        facts = {
            term: said.text("code")
            for term, said in zip(terms, heard.find("definition"), strict=True)
        }
        assert [one.name for one in heard.find("definition")[1].find("button")] == [
            "Copy: To this address"
        ]
        payer.send(type_transfer(facts, to=facts["To this address"]))
        payer.expect_paid()
        heard = listen(payer.tab)
        assert heard.text("status") == "Paid", "it is said without being looked for"
        assert "Back to \u2068Panadería Ñandú\u2069" in [one.name for one in heard.find("link")]
