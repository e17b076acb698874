"""Prices out of feeds on a real node: the suite, depegs at the public doors, nodes that lie."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import pytest

from payments_core.clock import DAY, HOUR, SECOND
from payments_core.conformance.pricing import PricingConformance
from payments_core.networks import Asset
from payments_core.pricing.port import Pricing, PricingUnavailable
from payments_core.tenants.authorization import Authority
from payments_core_http.cli.anvil.chain import AnvilChain
from tests.chains.cable import Cable
from tests.chains.evm.feeds_on_anvil import Feeds
from tests.chains.evm.lying_node import LyingNode, Params, lying
from tests.chains.evm.nodes import Node, anvil_or_skip
from tests.chains.loopback import Answer, serving
from tests.chains.scenes import signer
from tests.http.api_harness import ApiHarness
from tests.http.seen import Seen
from tests.service.world import WALLET
from tests.shipped import asset_of

ETHEREUM, BASE = 1, 8453
USDC, USDT, BASE_USDC = asset_of(1, "USDC"), asset_of(1, "USDT"), asset_of(BASE, "USDC")
HOLDER = "0x8ba1f109551bD432803012645Ac136ddd64DBA72"


@pytest.fixture(scope="module")
def ethereum_node() -> Iterator[Node]:
    """The chain with two tokens."""
    with anvil_or_skip(chain_id=ETHEREUM) as process, closing(Node(process.url)) as node:
        yield node


@pytest.fixture
def ethereum(ethereum_node: Node) -> Iterator[Feeds]:
    before = ethereum_node.ask("evm_snapshot")
    yield Feeds(ethereum_node, ETHEREUM, currencies=("EUR",))
    assert ethereum_node.ask("evm_revert", before)


@pytest.fixture
def base(node: Node) -> Feeds:
    return Feeds(node, BASE)


class TestFeedsOnAnvil(PricingConformance):
    pairs = ((USDC, USDT), (USDT, USDC))
    can_fail = can_go_stale = can_lie = can_move = can_price_currencies = True

    @pytest.fixture(autouse=True)
    def _place(self, ethereum: Feeds) -> Iterator[None]:
        self.feeds = ethereum
        self.cable = Cable(int(ethereum.node.url.rpartition(":")[2]))
        yield
        self.cable.cut()

    def open(self) -> Pricing:
        return self.feeds.open(self.cable.url)

    def fail(self) -> None:
        self.cable.cut()

    def go_stale(self) -> None:
        self.feeds.clock.advance(2 * DAY // SECOND)

    def lie(self) -> None:
        self.feeds.report(USDC="0", EUR="0")

    def restore(self) -> None:
        self.cable.cut()
        self.cable.mend()
        self.feeds.rests += 60
        self.feeds.report()

    def move(self, asset: Asset, usd: Decimal) -> None:
        self.feeds.report(**{asset.symbol: str(usd)})


def refuse(opened: Pricing, asset: Asset, says: str) -> None:
    with pytest.raises(PricingUnavailable, match=says):
        opened.usd_prices((asset,))


def test_an_unfinished_a_carried_over_and_a_missing_round_are_no_price(ethereum: Feeds) -> None:
    opened, now_s = ethereum.open(), ethereum.now_s
    ethereum.set_round("USDC", 9, 10**8, now_s, 0, 9)
    refuse(opened, USDC, "its round is not finished")
    ethereum.set_round("USDC", 9, 10**8, now_s, now_s, 8)
    refuse(opened, USDC, "of an earlier round")
    ethereum.set_round("USDC", 9, -1, now_s, now_s, 9)
    refuse(opened, USDC, "its answer is -1")
    ethereum.set_round("USDC", 0, 0, 0, 0, 0)  # it reverts with "No data present"
    refuse(opened, USDC, "it has no round")
    assert opened.usd_prices((USDT,)) == {USDT.id: Decimal("0.9999")}


def test_an_address_without_a_feed_is_no_price(ethereum: Feeds) -> None:
    ethereum.node.ask("anvil_setCode", ethereum.addresses["USDC"], "0x")
    refuse(ethereum.open(), USDC, "it has no round")


def test_a_rollup_waits_an_hour_after_its_sequencer(base: Feeds) -> None:
    opened = base.open()
    assert opened.usd_prices((BASE_USDC,)) == {BASE_USDC.id: Decimal("0.9999")}
    base.report_sequencer(1, base.now_s)
    refuse(opened, BASE_USDC, "the sequencer is down")
    base.report_sequencer(0, base.now_s)
    refuse(opened, BASE_USDC, "up only since")
    base.clock.advance(HOUR // SECOND)
    assert opened.usd_prices((BASE_USDC,)) == {BASE_USDC.id: Decimal("0.9999")}


# Nodes


Liars = tuple[LyingNode, LyingNode]


@pytest.fixture
def liars(ethereum: Feeds) -> Iterator[Liars]:
    with lying(ethereum.node) as first, lying(ethereum.node) as second:
        yield first, second


def seven(params: Params, truth: Any) -> Any:
    """A feed's answer with another price, in which all else is true."""
    is_round = isinstance(truth, str) and len(truth) == 2 + 2 * 160
    return truth[:66] + f"{7 * 10**7:064x}" + truth[130:] if is_round else truth


def test_one_node_of_three_cannot_move_a_price_and_two_can_only_take_it(
    ethereum: Feeds, liars: Liars
) -> None:
    first, second = liars
    opened = ethereum.open(first.url, second.url, ethereum.node.url)
    first.lies = {"eth_call": seven}
    for _ in range(5):
        assert opened.usd_prices((USDC,)) == {USDC.id: Decimal("0.9999")}
    second.lies = {"eth_call": lambda params, truth: "0x"}
    with pytest.raises(PricingUnavailable, match="chain 1 does not answer"):
        opened.usd_prices((USDC,))
    second.honest()
    assert opened.usd_prices((USDC,)) == {USDC.id: Decimal("0.9999")}


def test_a_price_is_read_while_one_node_of_three_is_silent(ethereum: Feeds) -> None:
    cable = Cable(int(ethereum.node.url.rpartition(":")[2]))
    cable.cut()
    opened = ethereum.open(cable.url, ethereum.node.url, ethereum.node.url + "/?two")
    assert opened.usd_prices((USDC,)) == {USDC.id: Decimal("0.9999")}


def test_a_quote_costs_a_node_three_requests(ethereum: Feeds, liars: Liars) -> None:
    """Its chain's number once, the heads, and the feeds; none for what follows within seconds."""
    node, requests = liars[0], []

    def count(method: str, path: str, body: bytes) -> Answer:
        requests.append(body)
        return node.answer(method, path, body)

    with serving(count) as url:
        opened = ethereum.open(url, shared_for_s=60)
        for _ in range(3):
            opened.estimate(USDC, USDT, 10**6)
            opened.usd_prices((USDC, USDT))
    assert len(requests) == 3


# The public doors


class Shop:
    """The HTTP API of a service on that node, with its prices."""

    def __init__(self, feeds: Feeds) -> None:
        self.feeds = feeds
        chain = AnvilChain(feeds.node.url, ETHEREUM, signer())
        chain.prepare_node()
        self.api = ApiHarness(
            clock=feeds.clock, sandbox_chains={ETHEREUM: chain}, pricing=feeds.open()
        )
        chain.transfer(USDC.address, None, HOLDER, 100_000_000, "faucet")
        chain.mine(20)

    @property
    def server(self) -> Authority:
        """What a program that embeds the service may do."""
        return self.api.service.tenants.system_authority(self.api.partition)

    @property
    def app_id(self) -> str:
        """The header of the app id alone."""
        return "Basic " + base64.b64encode(self.api.app_row.id.encode()).decode()

    def quote(self, source: str = "USDC", destination: str = "USDT") -> Seen:
        body = {
            "amount": 100, "sourceAddress": WALLET, "destinationUserId": self.api.account_id,
            "sourceChainId": ETHEREUM, "destinationChainID": ETHEREUM,
            "sourceChainToken": source, "destinationToken": destination,
        }  # fmt: skip
        return self.api.call("POST", "/sdk/v1/quote", body, auth=self.app_id)

    def balances(self) -> Seen:
        target = f"/sdk/v1/get-balances?userAddress={HOLDER}"
        return self.api.call("GET", target, auth=self.app_id)


@pytest.fixture
def shop(ethereum: Feeds) -> Shop:
    return Shop(ethereum)


def payload(seen: Seen) -> Any:
    assert seen.status == 200, seen.json
    return seen.json["data"]["payload"]


def test_quotes_and_values_follow_a_depeg(shop: Shop) -> None:
    before = payload(shop.quote())
    shop.feeds.report(USDC="0.88")
    after = payload(shop.quote())
    held = shop.balances().json["data"]
    assert [one["usdValue"] for one in held["balances"]] == ["88.00"]
    assert held["totalUsdValue"] == "88.00"
    amounts = [Decimal(one["tokenOut"]["outputTokenAmountRawFormatted"]) for one in (before, after)]
    # 100 and 88.008800 (0.88 by 0.9999), less 0.05 % rounded up, and a cent
    assert amounts == [Decimal("99.94"), Decimal("87.954795")]


def test_the_page_of_a_payment_is_in_the_currency_of_the_merchant(shop: Shop) -> None:
    shop.feeds.report(USDC="0.9995", EUR="1.0850")
    settings = {"enabled": False, "branding": {"currency": "EUR"}, "version": 0}
    assert shop.api.call("PUT", "/v2/partners/payment-settings", settings).status == 200
    destination = {"type": "wallet", "address": WALLET}
    body = {"intent": "receive", "amount": "25", "chainId": ETHEREUM, "destination": destination}
    url = shop.api.call("POST", "/v2/payments", body, key="page").json["paymentUrl"]
    page = shop.api.call("GET", urlsplit(url).path, auth=None).body.decode()
    # 25 * 0.9995 / 1.0850 = 23.0299...
    assert "≈\u00a023.03\u00a0EUR" in page


def test_a_quote_keeps_its_terms_after_a_depeg(shop: Shop) -> None:
    quoted = shop.quote().json["data"]["quoteData"]["quoteId"]
    shop.feeds.report(USDC="0.6")
    kept = shop.api.service.acting_as(shop.server).legacy.read_quote(quoted).quote
    assert (kept.output_atomic, kept.input_usd) == (99_940_000, "99.99")


FAULTS: dict[str, Callable[[Feeds], object]] = {
    "stale": lambda feeds: feeds.clock.advance(2 * DAY // SECOND),
    "zero": lambda feeds: feeds.report(USDC="0"),
    "a hundred": lambda feeds: feeds.report(USDC="100"),
    "unfinished": lambda feeds: feeds.set_round("USDC", 9, 10**8, feeds.now_s, 0, 9),
    "from the future": lambda feeds: feeds.set_round(
        "USDC", 9, 10**8, feeds.now_s, feeds.now_s + 60, 9
    ),
    "gone": lambda feeds: feeds.node.ask("anvil_setCode", feeds.addresses["USDC"], "0x"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("tokens", [("USDC", "USDT"), ("USDT", "USDC"), ("USDC", "USDC")])
def test_a_bad_feed_makes_quotes_unavailable_instead_of_wrong(
    shop: Shop, fault: str, tokens: tuple[str, str]
) -> None:
    FAULTS[fault](shop.feeds)
    for seen in (shop.quote(*tokens), shop.balances()):
        assert seen.status == 424, seen.json
        assert seen.json["code"] == "dependency_failed"
