"""A payer pays by WalletConnect, with a stand-in for the operator's script."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from playwright.sync_api import Browser, expect

from tests.http.checkout import BASE
from tests.http.pages.browser import needs_chromium, require_accessible, serve
from tests.http.pages.scenes import make_page
from tests.http.pages.test_in_chromium import BUDGET_BYTES
from tests.http.pages.test_pairing import ASKED, offer_walletconnect
from tests.http.pages.wallet import HASH, INJECT, PAYER, Wallet, WalletError, answer_well
from tests.http.payer_page import Page

pytestmark = [needs_chromium, pytest.mark.slow]
SCRIPT = "**/pay/assets/walletconnect.js"
STAND_IN = """
// The interface of @walletconnect/universal-provider, as far as the page uses it. Its wallet
// answers when the test lets it, and `relay` is what is wrong with the relay.
const meet = async (trouble) => {
  if (window.relay === `${trouble} fails`) throw new Error("garbage");
  while (window.relay === `${trouble} hangs`) await new Promise((end) => setTimeout(end, 50));
};
window.paired = 0;
window["@walletconnect/universal-provider"] = { UniversalProvider: { init: async (options) => {
  window.initialized = options;
  await meet("init");
  const listeners = {};
  return {
    on: (event, listener) => { listeners[event] = listener; },
    connect: async ({ optionalNamespaces }) => {
      window.wanted = optionalNamespaces;
      await meet("connect");
      window.paired += 1;
      listeners.display_uri(`wc:${"ab".repeat(32)}@2?relay-protocol=irn&symKey=${"cd".repeat(32)}`);
      const answer = await new Promise((resolve) => { window.scan = resolve; });
      if (answer.code) throw Object.assign(new Error("refused"), answer);
      return answer;
    },
    disconnect: async () => { window.paired -= 1; },
    request: async ({ method, params }, chain) => {
      window.askedOn = chain;
      const shown = document.getElementById("wallets")?.dataset.blockHash;
      const { result, error } = await window.askWallet({ method, params, shown });
      if (error) throw Object.assign(new Error(error.message), error);
      return result;
    },
  };
} } };
"""

RELAY, RPC = "wss://127.0.0.1:1", "https://mainnet.base.org"
CONNECT = """async (urls) => {
  const stopped = [];
  document.addEventListener("securitypolicyviolation", ({ blockedURI }) => {
    stopped.push(new URL(blockedURI).origin);
  });
  for (const url of urls) {
    try {
      if (url.startsWith("wss")) new WebSocket(url);
      else await fetch(url);
    } catch { /* nobody is there */ }
  }
  while (stopped.length < 2) await new Promise((resolve) => setTimeout(resolve, 50));
  return stopped;
}"""
"""Which of these the page's policy stops."""


@attrs.define
class Visit:
    """A payer with a wallet that pairs, on the page of a Payment."""

    page: Page
    wallet: Wallet
    tab: Any
    asked: list[str]
    said: list[str]

    def follow(self) -> None:
        """Press the link, which leads to a page that pairs."""
        self.tab.get_by_role("link", name="WalletConnect").click()

    def press(self) -> None:
        """Press the button of that page, which does it again."""
        self.tab.get_by_role("button", name="WalletConnect").click()

    def pair(self, answer: dict[str, Any] | None = None) -> None:
        expect(self.tab.get_by_role("img", name="Code for your wallet")).to_be_visible()
        accounts = [f"eip155:1:{HASH[:42]}", f"eip155:{BASE}:{PAYER}"]
        well = {"namespaces": {"eip155": {"accounts": accounts}}}
        self.tab.evaluate("answer => scan(answer)", well if answer is None else answer)

    def expect_said(self, text: str) -> None:
        expect(self.tab.locator("#wallets > [role=status]")).to_have_text(text)

    def expect_sent(self) -> None:
        heading = self.tab.locator("h1, h2", has_text="Your wallet has sent a transfer")
        expect(heading).to_be_visible()


@pytest.fixture
def visit(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Visit]:
    """With a wallet that has enough, and answers as `request.param` says."""
    page = make_page()
    offer_walletconnect(page.checkout, STAND_IN.encode())
    answers = {**answer_well(page), **getattr(request, "param", {})}
    del answers["eth_requestAccounts"]  # they come with the pairing
    wallet = Wallet(answers, chain_id=BASE)
    with serve(page.checkout.api.app) as url:
        tab = chromium.new_page()
        visit = Visit(page, wallet, tab, [], [])
        tab.on("request", lambda asked: visit.asked.append(asked.url))
        tab.on("console", lambda message: visit.said.append(message.text))
        tab.on("pageerror", lambda error: visit.said.append(str(error)))
        wallet.inject(tab, "NAME;")
        tab.clock.install()
        tab.goto(f"{url}/pay/{page.code}")
        yield visit
        tab.close()


def test_a_payer_scans_the_code_and_pays(visit: Visit) -> None:
    assert [url for url in visit.asked if "walletconnect" in url] == [], "not before it is pressed"
    visit.follow()
    expect(visit.tab.get_by_role("img", name="Code for your wallet")).to_be_visible()
    visit.expect_said("Scan the code with your wallet, or open it in a wallet on this device.")
    assert visit.tab.locator(".qr:visible").count() == 1
    expect(visit.tab.get_by_role("button", name="WalletConnect")).to_be_disabled()
    link = visit.tab.locator("#pairing-code").get_by_role("link", name="Open in wallet")
    assert str(link.get_attribute("href")).startswith("wc:abab")
    options = visit.tab.evaluate("initialized")
    assert (options["metadata"]["url"], options["relayUrl"]) == (
        visit.tab.evaluate("location.origin"),
        "wss://relay.walletconnect.org",
    )
    wanted = visit.tab.evaluate("wanted.eip155")
    assert (wanted["chains"], wanted["methods"]) == ([f"eip155:{BASE}"], ["eth_sendTransaction"])
    visit.pair()
    visit.expect_sent()
    [[sent]] = [params for method, params in visit.wallet.asked if method == "eth_sendTransaction"]
    assert (sent["from"], sent["chainId"]) == (PAYER, hex(BASE))
    assert int(sent["data"][-64:], 16) == 25_000_000
    assert visit.tab.evaluate("askedOn") == f"eip155:{BASE}"
    visit.tab.wait_for_function("() => window.paired === 0", polling=100)  # it is disconnected
    codes = [url for url in visit.asked if url.endswith("/pairing-code")]
    assert (len(codes), [url for url in visit.asked if "symKey" in url]) == (1, [])
    # Chromium reports inline styles of documents that a busy page fetches, which have none.
    assert [text for text in visit.said if "inline style" not in text] == []
    visit.tab.reload()
    visit.expect_sent()
    assert not visit.tab.evaluate("'paired' in window"), "and it does not begin again"


FAILED = "Nothing was sent: your wallet or this page did not answer as expected."
UNLOADED = "Nothing was sent: WalletConnect did not open. Try another way to pay."
DECLINED = "You declined in your wallet. Nothing was sent."
NETWORK = (
    "Nothing was sent: your wallet is on another network."
    " Change it to \u2068Base\u2069 in your wallet, then try again."
)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"code": 5000}, DECLINED),
        ({"namespaces": {"eip155": {"accounts": [f"eip155:1:{PAYER}"]}}}, NETWORK),
        ({"namespaces": {"solana": {"accounts": ["solana:5eykt:Vote111"]}}}, NETWORK),
        ({"namespaces": {"eip155": {"accounts": [f"eip155:{BASE}:<b>"]}}}, FAILED),
        ({}, FAILED),
    ],
)
def test_a_wallet_that_does_not_pair_can_be_paired_again(
    visit: Visit, answer: dict[str, Any], text: str
) -> None:
    visit.follow()
    visit.pair(answer)
    visit.expect_said(text)
    expect(visit.tab.locator("#pairing-code")).to_be_hidden()
    assert visit.wallet.asked == []
    visit.press()
    visit.pair()
    visit.expect_sent()


@pytest.mark.parametrize(
    "visit", [{"eth_sendTransaction": WalletError(5000, "refused")}], indirect=True
)
def test_a_paired_wallet_that_declines_is_asked_again_without_a_code(visit: Visit) -> None:
    visit.follow()
    visit.pair()
    visit.expect_said(DECLINED)
    visit.wallet.answers = {**visit.wallet.answers, "eth_sendTransaction": HASH}
    visit.press()
    visit.expect_sent()


@pytest.mark.parametrize("body", ["window.ran = true;" + STAND_IN, ""])
def test_another_script_is_not_run(visit: Visit, body: str) -> None:
    visit.tab.route(SCRIPT, lambda route: route.fulfill(body=body, content_type="text/javascript"))
    visit.follow()
    visit.expect_said(UNLOADED)
    assert visit.tab.evaluate("window.ran") is None
    visit.tab.unroute(SCRIPT)
    visit.press()
    expect(visit.tab.get_by_role("img", name="Code for your wallet")).to_be_visible()


@pytest.mark.parametrize("relay", ["init hangs", "connect hangs", "init fails", "connect fails"])
def test_a_relay_that_does_not_answer_well_does_not_lock_the_page(visit: Visit, relay: str) -> None:
    visit.tab.add_init_script(f"window.relay = {relay!r};")
    visit.follow()
    if relay.endswith("hangs"):
        visit.expect_said("Opening WalletConnect.")
        wait = "initialized" if relay.startswith("init") else "wanted"
        visit.tab.wait_for_function(f"() => Boolean(window.{wait})", polling=100)
        visit.tab.clock.run_for(31_000)
    visit.expect_said(UNLOADED)
    visit.tab.evaluate("window.relay = ''")
    visit.press()
    visit.pair()
    visit.expect_sent()


def test_a_code_that_nobody_scans_ends_and_a_late_wallet_signs_nothing(visit: Visit) -> None:
    visit.follow()
    expect(visit.tab.get_by_role("img", name="Code for your wallet")).to_be_visible()
    visit.tab.clock.run_for(301_000)
    visit.expect_said(FAILED)
    expect(visit.tab.locator("#pairing-code")).to_be_hidden()
    visit.tab.evaluate("answer => scan(answer)", {"namespaces": {}})
    assert visit.wallet.asked == []
    visit.tab.reload()
    expect(visit.tab.get_by_role("button", name="WalletConnect")).to_be_visible()
    assert not visit.tab.evaluate("'paired' in window"), "a page that is loaded again waits"
    visit.press()
    visit.tab.get_by_role("link", name="Back to the payment").click()
    expect(visit.tab.get_by_role("link", name="WalletConnect")).to_be_visible()


def test_a_link_below_the_wallets_of_the_browser_is_all_before_it_is_pressed(
    chromium: Browser,
) -> None:
    page = make_page()
    offer_walletconnect(page.checkout, STAND_IN.encode())
    with serve(page.checkout.api.app) as url:
        tab = chromium.new_page()
        tab.add_init_script(INJECT)
        bodies: list[bytes] = []
        tab.on("requestfinished", lambda request: bodies.append(request.response().body()))
        tab.goto(f"{url}/pay/{page.code}", wait_until="networkidle")
        assert sum(len(gzip.compress(body)) for body in bodies) <= BUDGET_BYTES
        injected = tab.get_by_role("button", name="Pay with the wallet of this browser")
        paired = tab.get_by_role("link", name="WalletConnect")
        tops = [(one.bounding_box() or {"y": -1})["y"] for one in (injected, paired)]
        assert 0 < tops[0] < tops[1]
        tab.close()
        plain = chromium.new_page(java_script_enabled=False)
        plain.goto(f"{url}/pay/{page.code}")
        expect(plain.locator("a", has_text="WalletConnect")).to_be_hidden()
        plain.goto(f"{url}/pay/{page.code}{ASKED}")
        plain.get_by_role("link", name="Back to the payment").click()
        expect(plain.get_by_role("img", name="Code for a payment request")).to_be_visible()
        plain.close()


def test_the_code_is_accessible_and_the_page_keeps_trusted_types(chromium: Browser) -> None:
    page = make_page()
    offer_walletconnect(page.checkout, STAND_IN.encode(), relay_url=RELAY)
    with serve(page.checkout.api.app) as url:
        tab = chromium.new_page()
        tab.route(f"{RPC}/**", lambda route: route.fulfill(body="{}"))
        tab.goto(f"{url}/pay/{page.code}{ASKED}")
        expect(tab.locator("#pairing-code .qr")).to_be_visible()
        refused = tab.evaluate("""() => {
          try { document.body.innerHTML = "<b>x</b>"; } catch (error) { return error.name; }
        }""")
        assert refused == "TypeError"
        again = tab.evaluate("""() => {
          try {
            trustedTypes.createPolicy("walletconnect", {});
          } catch (error) { return error.name; }
        }""")
        assert again == "TypeError"
        stopped = tab.evaluate(
            CONNECT, [RELAY, RPC, "wss://other.example", "https://other.example"]
        )
        assert stopped == ["wss://other.example", "https://other.example"]
        require_accessible(tab, 320)
        tab.close()
