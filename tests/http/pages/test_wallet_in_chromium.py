"""A payer pays from a wallet in the browser: what it signs, and what is refused before it signs.

`test_payers_in_chromium.py` pays so on a real node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from playwright.sync_api import Browser, expect

from payments_core.chains.evm import abi as calls
from tests.http.checkout import BASE
from tests.http.pages.browser import needs_chromium, serve
from tests.http.pages.scenes import SCENES, send
from tests.http.pages.wallet import (
    ANNOUNCE,
    DECLINED,
    HASH,
    INJECT,
    PAYER,
    PENDING,
    UNKNOWN_CHAIN,
    WRAPPED,
    Wallet,
    WalletError,
    answer_well,
    read_token,
)
from tests.http.payer_page import Page

pytestmark = [needs_chromium, pytest.mark.slow]
POLL_MS = 10_500


@attrs.define
class Visit:
    """A payer with a wallet, on the page of a Payment."""

    page: Page
    wallet: Wallet
    tab: Any

    def pay(self) -> None:
        self.tab.get_by_role("button", name=self.wallet.name).click()

    def expect_said(self, text: str) -> None:
        expect(self.tab.locator("#wallets > [role=status]")).to_have_text(text)


def expect_sent(tab: Any) -> None:
    heading = tab.locator("h1, h2", has_text="Your wallet has sent a transfer")
    expect(heading).to_be_visible()


@pytest.fixture
def visit(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Visit]:
    """With a wallet that has enough, and answers as `request.param` says."""
    page = SCENES["waiting"]()
    wallet = Wallet({**answer_well(page), **getattr(request, "param", {})})
    context = chromium.new_context()
    with serve(page.checkout.api.app) as url:
        tab = context.new_page()
        wallet.inject(tab)
        # The browser stays when a paid page leads back to its shop.
        tab.route("https://shop.example/**", lambda route: route.fulfill(status=204))
        tab.clock.install()
        tab.goto(f"{url}/pay/{page.code}")
        yield Visit(page, wallet, tab)
        context.close()


def test_what_the_wallet_signs_is_the_transfer_that_the_page_shows(visit: Visit) -> None:
    visit.pay()
    expect_sent(visit.tab)
    [[sent]] = [params for method, params in visit.wallet.asked if method == "eth_sendTransaction"]
    escrow = visit.page.payment["escrow"]["address"]
    assert sent == {
        "from": PAYER,
        "to": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "value": "0x0",
        "data": "0x" + calls.transfer(escrow, 25_000_000).hex(),
        "chainId": hex(BASE),
    }


def test_nobody_is_asked_twice_for_what_was_sent(visit: Visit) -> None:
    visit.pay()
    expect_sent(visit.tab)
    visit.tab.reload()
    expect_sent(visit.tab)
    expect(visit.tab.get_by_text("Do not send it again.")).to_be_visible()
    assert visit.tab.locator("#wallets").count() == 0
    assert visit.page.payment["escrow"]["address"] not in visit.tab.content()
    visit.page.checkout.advance(180)
    visit.tab.reload()
    expect(visit.tab.get_by_role("button", name="Example wallet")).to_be_enabled()


ELSEWHERE = (
    "Nothing was sent: the \u2068Base\u2069 of your wallet is another network than that of this"
    " page. Check its node (RPC URL) in your wallet, then try again."
)
UNSEEN = (
    "The network does not show the transfer that your wallet has sent. Look in your wallet before"
    " you pay again: it may still be on its way."
)


def sleep(visit: Visit, seconds: int) -> None:
    """The service's time passes, and the open page asks for its newest state."""
    visit.page.checkout.advance(seconds)
    with visit.tab.expect_response(lambda answer: answer.url.endswith(visit.page.code)):
        visit.tab.clock.run_for(POLL_MS)


@pytest.mark.parametrize("arrived", [None, "10"])
def test_an_open_page_unlocks_when_the_service_asks_again(
    visit: Visit, arrived: str | None
) -> None:
    """The transfer was dropped, or another one with a part of the amount has replaced it."""
    visit.pay()
    expect_sent(visit.tab)
    if arrived:
        send(visit.page, arrived)
    sleep(visit, 180)
    expect(visit.tab.get_by_role("button", name="Example wallet")).to_be_enabled()
    visit.expect_said(UNSEEN)
    visit.pay()
    visit.expect_said("Your wallet has sent the transfer. Do not send it again.")


@pytest.mark.parametrize("visit", [{"eth_sendTransaction": "no hash"}], indirect=True)
def test_a_transfer_that_the_service_cannot_lock_is_locked_by_the_page(visit: Visit) -> None:
    visit.pay()
    visit.expect_said("Your wallet has sent the transfer. Do not send it again.")
    button = visit.tab.get_by_role("button", name="Example wallet")
    others = visit.tab.locator(".facts, #token, .codes")
    visit.tab.clock.run_for(110_000)
    expect(button).to_be_disabled()
    assert [other.is_visible() for other in others.all()] == [False] * 3, "they would send it twice"
    visit.tab.clock.run_for(15_000)
    expect(button).to_be_enabled()
    assert [other.is_visible() for other in others.all()] == [True] * 3
    visit.expect_said(UNSEEN)


@pytest.mark.parametrize(
    ("method", "text"),
    [
        (
            "eth_requestAccounts",
            "Nothing was sent: your wallet or this page did not answer as expected.",
        ),
        (
            "eth_sendTransaction",
            "Your wallet did not say whether it has sent the transfer. Look there before you try"
            " again.",
        ),
    ],
)
def test_a_wallet_that_never_answers_does_not_lock_the_page(
    visit: Visit, method: str, text: str
) -> None:
    visit.tab.evaluate(f"""() => {{
      const ask = window.askWallet;
      window.askWallet = (asked) => asked.method === "{method}"
        ? new Promise((resolve) => {{ window.answerLate = () => resolve({{ result: "{HASH}" }}); }})
        : ask(asked);
    }}""")
    visit.pay()
    visit.tab.wait_for_function("() => Boolean(window.answerLate)", polling=100)
    visit.tab.clock.run_for(301_000)
    visit.expect_said(text)
    expect(visit.tab.get_by_role("button", name="Example wallet")).to_be_enabled()
    visit.tab.evaluate("answerLate()")
    if method == "eth_sendTransaction":  # the late answer counts
        expect_sent(visit.tab)
    else:
        visit.expect_said(text)
        assert "eth_sendTransaction" not in visit.wallet.methods


def test_a_service_that_cannot_be_reached_changes_nothing(visit: Visit) -> None:
    visit.tab.route("**/submissions", lambda route: route.abort())
    visit.pay()
    visit.expect_said("Your wallet has sent the transfer. Do not send it again.")
    expect(visit.tab.get_by_role("button", name="Example wallet")).to_be_disabled()
    send(visit.page, "25")
    visit.tab.clock.run_for(POLL_MS)
    expect(visit.tab.locator("h1")).to_have_text("Paid")


@pytest.mark.parametrize(
    ("visit", "text"),
    [
        (
            {"wallet_switchEthereumChain": UNKNOWN_CHAIN},
            "Nothing was sent: your wallet is on another network."
            " Change it to \u2068Base\u2069 in your wallet, then try again.",
        ),
        (
            {"eth_getBlockByNumber": {"number": "0x1", "hash": HASH}},
            ELSEWHERE,
        ),
        (
            {"wallet_switchEthereumChain": None},
            "Nothing was sent: your wallet is on another network."
            " Change it to \u2068Base\u2069 in your wallet, then try again.",
        ),
        (
            {"eth_call": "0x"},
            "Nothing was sent: the network of your wallet does not have this \u2068USDC\u2069."
            " Check the network \u2068Base\u2069 in your wallet.",
        ),
        (
            {"eth_call": read_token(decimals=18)},
            "Nothing was sent: the network of your wallet does not have this \u2068USDC\u2069."
            " Check the network \u2068Base\u2069 in your wallet.",
        ),
        (
            {"eth_call": read_token(balance=24_999_999)},
            "Nothing was sent: this address of your wallet holds too little \u2068USDC\u2069.",
        ),
        ({"eth_requestAccounts": DECLINED}, "You declined in your wallet. Nothing was sent."),
        ({"eth_requestAccounts": WRAPPED}, "You declined in your wallet. Nothing was sent."),
        ({"eth_requestAccounts": PENDING}, "Nothing was sent: your wallet still shows an earlier"
         " request. Answer it there, then try again."),
        ({"wallet_switchEthereumChain": PENDING}, "Nothing was sent: your wallet still shows an"
         " earlier request. Answer it there, then try again."),
        ({"eth_requestAccounts": []}, "Nothing was sent: your wallet or this page did not answer"
         " as expected."),
        ({"eth_sendTransaction": DECLINED}, "You declined in your wallet. Nothing was sent."),
        ({"eth_sendTransaction": WalletError(-32603, "Internal error.")}, "Your wallet did not say"
         " whether it has sent the transfer. Look there before you try again."),
    ],
    indirect=["visit"],
)  # fmt: skip
def test_what_goes_wrong_is_said_and_the_payer_may_try_again(visit: Visit, text: str) -> None:
    visit.pay()
    visit.expect_said(text)
    expect(visit.tab.get_by_role("button", name="Example wallet")).to_be_enabled()
    is_asked = "eth_sendTransaction" in visit.wallet.methods
    assert is_asked == isinstance(visit.wallet.answers["eth_sendTransaction"], WalletError)


def test_an_amount_that_has_changed_meanwhile_is_not_signed(visit: Visit) -> None:
    send(visit.page, "10")  # which the page does not know yet
    visit.pay()
    visit.expect_said("Nothing was sent: what is due has changed. Check the page, then try again.")
    assert "eth_sendTransaction" not in visit.wallet.methods
    expect(visit.tab.locator("h1")).to_have_text("Part of the payment has arrived")
    visit.pay()
    expect_sent(visit.tab)
    [[sent]] = [params for method, params in visit.wallet.asked if method == "eth_sendTransaction"]
    assert int(sent["data"][-64:], 16) == 15_000_000


def test_a_wallets_name_is_text_and_no_longer_than_the_page_can_show(chromium: Browser) -> None:
    page = SCENES["waiting"]()
    name = "<img src=x onerror=alert(1)>" * 10
    wallet = Wallet({}, name=name)
    with serve(page.checkout.api.app) as url:
        tab = chromium.new_page(viewport={"width": 320, "height": 640})
        wallet.inject(tab)
        tab.goto(f"{url}/pay/{page.code}")
        button = tab.locator("#wallets button")
        assert button.inner_text() == f"Pay with \u2068{name[:40]}\u2069"
        assert tab.locator("#wallets img").count() == 0
        assert tab.evaluate("document.documentElement.scrollWidth") <= 320
        tab.close()


@pytest.mark.parametrize("moment", ["before", "late"])
def test_a_wallet_that_does_not_announce_itself_is_offered(chromium: Browser, moment: str) -> None:
    """A browser that injects it before the page's scripts run, or after the page is loaded."""
    page = SCENES["waiting"]()
    wallet = Wallet(answer_well(page), name="Wallet of this browser")
    with serve(page.checkout.api.app) as url:
        tab = chromium.new_page()
        wallet.inject(tab, INJECT if moment == "before" else f"window.load = () => {INJECT}")
        tab.clock.install()
        tab.goto(f"{url}/pay/{page.code}")
        if moment == "late":
            expect(tab.locator("#wallets")).to_be_hidden()
            tab.evaluate("load()")
        tab.clock.run_for(3_100)
        tab.get_by_role("button", name=wallet.name).click()
        expect_sent(tab)
        tab.close()


def test_a_wallet_that_announces_itself_is_offered_once(chromium: Browser) -> None:
    page, wallet = SCENES["waiting"](), Wallet({})
    with serve(page.checkout.api.app) as url:
        tab = chromium.new_page()
        late = ANNOUNCE.replace("(() => {", "setTimeout(() => {", 1).replace("})();", "}, 3e3);")
        wallet.inject(tab, f"{INJECT}{late}")
        tab.clock.install()
        tab.goto(f"{url}/pay/{page.code}")
        expect(tab.locator("#wallets button")).to_have_text("Pay with the wallet of this browser")
        tab.clock.run_for(3_100)
        expect(tab.locator("#wallets button")).to_have_text([f"Pay with \u2068{wallet.name}\u2069"])
        tab.close()


def test_without_a_wallet_nothing_is_offered(chromium: Browser) -> None:
    page = SCENES["waiting"]()
    with serve(page.checkout.api.app) as url:
        tab = chromium.new_page()
        tab.goto(f"{url}/pay/{page.code}")
        expect(tab.locator("#wallets")).to_be_hidden()
        tab.close()
