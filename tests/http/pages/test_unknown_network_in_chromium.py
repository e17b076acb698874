"""A wallet that does not know the network gets it from the page, and is on it before it signs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.http.checkout import BASE
from tests.http.pages.browser import needs_chromium, serve
from tests.http.pages.scenes import SCENES
from tests.http.pages.wallet import DECLINED, UNKNOWN_CHAIN, Wallet, WalletError, answer_well

pytestmark = [needs_chromium, pytest.mark.slow]
WRAPPED_UNKNOWN = WalletError(-32603, "Internal error.", {"originalError": {"code": 4902}})
NAMED = {
    "chainId": hex(BASE),
    "chainName": "Base",
    "rpcUrls": ["https://mainnet.base.org"],
    "nativeCurrency": {"name": "Ether", "symbol": "ETH", "decimals": 18},
    "blockExplorerUrls": ["https://basescan.org"],
}


@contextmanager
def pay(chromium: Browser, unknown: WalletError, added: Any) -> Iterator[tuple[Any, Wallet]]:
    """The tab after a payment was begun, and its wallet, which may learn the network."""
    page = SCENES["waiting"]()
    known: list[int] = []

    def switch(wanted: dict[str, str]) -> None:
        if not known:
            raise unknown
        wallet.chain_id = known[0]

    def add(chain: dict[str, Any]) -> None:
        if isinstance(added, Exception):
            raise added
        known.append(int(chain["chainId"], 16))
        if added == "and changed to":
            wallet.chain_id = known[0]

    answers = {"wallet_switchEthereumChain": switch, "wallet_addEthereumChain": add}
    wallet = Wallet({**answer_well(page), **answers})
    with serve(page.checkout.api.app) as url:
        tab = chromium.new_page()
        wallet.inject(tab)
        tab.goto(f"{url}/pay/{page.code}")
        tab.get_by_role("button", name=wallet.name).click()
        yield tab, wallet
        tab.close()


@pytest.mark.parametrize("unknown", [UNKNOWN_CHAIN, WRAPPED_UNKNOWN])
@pytest.mark.parametrize("added", ["", "and changed to"])
def test_the_network_is_added_and_then_paid_on(
    chromium: Browser, unknown: WalletError, added: str
) -> None:
    with pay(chromium, unknown, added) as (tab, wallet):
        expect(tab.locator("h1")).to_have_text("Your wallet has sent a transfer")
        assert [params for name, params in wallet.asked if name == "wallet_addEthereumChain"] == [
            [NAMED]
        ]
        switches = wallet.methods.count("wallet_switchEthereumChain")
        assert switches == (1 if added else 2)
        assert wallet.chain_id == BASE


@pytest.mark.parametrize(
    ("added", "text"),
    [
        (DECLINED, "You declined in your wallet. Nothing was sent."),
        (WalletError(-32601, "No such method."), "Nothing was sent: your wallet is on another"
         " network. Change it to \u2068Base\u2069 in your wallet, then try again."),
    ],
)  # fmt: skip
def test_a_wallet_that_does_not_add_it_signs_nothing(
    chromium: Browser, added: WalletError, text: str
) -> None:
    with pay(chromium, UNKNOWN_CHAIN, added) as (tab, wallet):
        expect(tab.locator("#wallets > [role=status]")).to_have_text(text)
        assert "eth_sendTransaction" not in wallet.methods
