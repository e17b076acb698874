"""What the pages say of a network: its name, whether its money is real, and where to see it."""

from __future__ import annotations

from typing import get_args

import attrs
import pytest

from payments_core.chains.port import NetworkKind
from payments_core.networks import Asset, Network, shipped_networks
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.dashboard import words as dashboard_words
from payments_core_http.pages.languages import LANGUAGES, get_language
from payments_core_http.pages.words import NETWORK_WORDS
from tests.http.checkout import BASE, Checkout
from tests.http.dashboard.operator_browser import open_browser
from tests.http.pages.html import Html
from tests.http.pages.scenes import send_unconfirmed
from tests.http.payer_page import Page
from tests.shipped import CHAINS

SCAN = "https://basescan.org"
PUBLIC: tuple[NetworkKind, ...] = ("real", "testnet")


def serve_base(**changed: object) -> Checkout:
    """A shop whose registry describes Base in another way."""
    own = attrs.evolve(shipped_networks()[BASE], **changed)
    return Checkout(MemoryStorage(), networks=shipped_networks().merge(own))


def look(page: Page, tag: str = "en") -> Html:
    seen = page.checkout.api.call("GET", f"/pay/{page.code}?lang={tag}", auth=None)
    assert seen.status == 200, seen.body
    return Html(seen.body)


def look_inside(page: Page) -> Html:
    return open_browser(page.checkout).open(f"/dashboard/payments/{page.payment['id']}")


def outward(html: Html) -> list[dict[str, str | None]]:
    """The links to other sites, without those of the merchant and of wallets."""
    links = [one for one in html.all("a") if "://" in str(one["href"])]
    return [one for one in links if "button" not in str(one.get("class"))]


@pytest.mark.parametrize("kind", PUBLIC)
@pytest.mark.parametrize("tag", LANGUAGES)
def test_a_payer_sees_addresses_and_transfers_in_the_explorer(
    checkout: Checkout, kind: NetworkKind, tag: str
) -> None:
    page = send_unconfirmed(Page(checkout.declare_network(kind)), "10")
    html, language = look(page, tag), get_language(tag)
    [receipt] = page.checkout.read(page.payment["id"])["receipts"]
    assert [one["href"] for one in outward(html)] == [
        f"{SCAN}/address/{page.payment['escrow']['address']}",
        f"{SCAN}/address/{CHAINS.find_asset(BASE, 'USDC').address}",
        f"{SCAN}/tx/{receipt['transactionHash']}",
    ]
    for one in outward(html):
        assert str(one["rel"]).split() == ["noreferrer", "noopener"], "the address has a secret"
        assert str(one["aria-label"]).startswith(language.translate("Show in the explorer"))
    assert len({one["aria-label"] for one in outward(html)}) == 3, "each says what it shows"


@pytest.mark.parametrize("kind", PUBLIC)
def test_an_operator_sees_them_too(checkout: Checkout, kind: NetworkKind) -> None:
    page = Page(checkout.declare_network(kind))
    checkout.transfer(page.payment["escrow"]["address"], "25")
    id = page.payment["id"]
    checkout.api.call("POST", f"/v2/payments/{id}/refunds", {}, key="refund")
    checkout.advance(60)
    payment = checkout.read(id)
    [receipt], [refund] = payment["receipts"], payment["refunds"]
    found = outward(look_inside(page))
    assert {
        f"{SCAN}/tx/{receipt['transactionHash']}",
        f"{SCAN}/tx/{refund['transactionHash']}",
        f"{SCAN}/tx/{payment['releaseTransactionHash']}",
        f"{SCAN}/address/{payment['escrow']['address']}",
        f"{SCAN}/address/{payment['destination']['address']}",
        f"{SCAN}/address/{receipt['from']}",
    } <= {one["href"] for one in found}
    ours = [one for one in found if str(one["href"]).startswith(SCAN)]
    assert {one["rel"] for one in ours} == {"noreferrer noopener"}


@pytest.mark.parametrize("kind", set(get_args(NetworkKind)) - set(PUBLIC))
def test_no_explorer_shows_a_chain_of_the_sandboxs_own(
    checkout: Checkout, kind: NetworkKind
) -> None:
    page = send_unconfirmed(Page(checkout.declare_network(kind)), "10")
    assert outward(look(page)) == []
    assert SCAN not in str(look_inside(page).elements)


def test_a_network_without_an_explorer_has_no_links() -> None:
    page = send_unconfirmed(Page(serve_base(explorer_url=None).declare_network("real")), "10")
    assert outward(look(page)) == []
    assert "/tx/" not in str(look_inside(page).elements)


def test_what_the_configuration_says_of_a_network_is_shown_as_text() -> None:
    name = '<b>"Tape" & sons</b>'
    page = Page(serve_base(name=name).declare_network("real"))
    for html in (look(page), look_inside(page)):
        assert name in html.text
        assert not list(html.all("b"))


def test_a_network_of_ones_own_has_its_name_everywhere() -> None:
    own = Network(
        chain_id=77,
        name="Tape",
        tokens=(Asset(77, "USDC", "0x" + "2" * 40, 6),),
        rpc_url="https://node.example",
    )
    checkout = Checkout(MemoryStorage(), networks=shipped_networks().merge(own))
    page = Page(checkout, chainId=77)
    marked = get_language("en").translate("%(network)s (test network)", network="Tape")
    assert marked in look(page).text
    assert "Tape (chain 77)" in " ".join(look_inside(page).text.split())
    chains = checkout.api.call("GET", "/v2/sandbox").json["chains"]
    assert {"chainId": 77, "name": "Tape", "networkKind": "simulated"}.items() <= next(
        one for one in chains if one["chainId"] == 77
    ).items()
    known = checkout.api.call("GET", "/sdk/v1/supported-chains").json["data"]["chains"]
    assert "Tape" in [one["name"] for one in known if one["chainId"] == 77]


@pytest.mark.parametrize("tag", LANGUAGES)
def test_a_testnet_is_marked_and_leads_wallets_to_itself(checkout: Checkout, tag: str) -> None:
    page = Page(checkout.declare_network("testnet"))
    seen = page.checkout.api.call("GET", f"/pay/{page.code}?lang={tag}", auth=None)
    html, language = Html(seen.body), get_language(tag)
    assert language.translate(NETWORK_WORDS["testnet"]) in html.text
    assert language.translate("%(network)s (test network)", network="Base") in html.text
    assert f"@{BASE}/transfer?".encode() in seen.body
    assert [one for one in html.all("div") if "data-secret" in one], "a wallet can pay"


@pytest.mark.parametrize("kind", get_args(NetworkKind))
def test_an_operator_sees_whether_the_money_is_real(checkout: Checkout, kind: NetworkKind) -> None:
    text = look_inside(Page(checkout.declare_network(kind))).text
    for other, (label, advice) in dashboard_words.NETWORK_WORDS.items():
        assert (f"{label} {advice}" in text) == (kind == other)
