"""The router's own transactions: stuck, dropped and too cheap ones, coin, and a changed key."""

from __future__ import annotations

import pytest

from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.rotated_signer import RotatedSigner
from payments_core.clock import MINUTE, SECOND
from payments_core.routers.cctp.line import KEY_NAME, MAX_LIVE
from payments_core.routers.cctp.records import CctpLine
from payments_core.routers.port import RouterUnavailable
from payments_core.storage.port import DIRECTORY
from tests.chains.evm.nodes import Node
from tests.routers.cctp.shop import AMOUNT, ENDED_S, Shop, order
from tests.routers.cctp.world import ETHER, SIGNER, SOURCE, open_chain

NEW = LocalSigner(b"the key that comes after the one")


@pytest.fixture
def source(shop: Shop) -> Node:
    return shop.cctp.nodes[SOURCE]


def live_calls(shop: Shop) -> list[tuple[int, str]]:
    id = f"{SOURCE}:{shop.cctp.operator}"
    line = shop.books.read(DIRECTORY, lambda snapshot: snapshot.get(CctpLine, id))
    return [] if line is None else [(call.nonce, call.hash) for call in line.calls]


def test_a_call_that_every_node_forgot_is_sent_again(shop: Shop, source: Node) -> None:
    shop.cctp.pay(shop.offer().address, AMOUNT)
    source.ask("evm_setAutomine", False)
    shop.progress()
    ((nonce, hash),) = live_calls(shop)
    assert source.ask("anvil_dropTransaction", hash) == hash
    assert source.ask("eth_getTransactionByHash", hash) is None
    shop.progress()
    assert source.ask("eth_getTransactionByHash", hash) is not None
    assert live_calls(shop) == [(nonce, hash)], "the same bytes"
    source.ask("evm_setAutomine", True)
    assert shop.look() == "delivered"


def test_a_call_that_waits_for_long_offers_more(shop: Shop, source: Node) -> None:
    shop.cctp.pay(shop.offer().address, AMOUNT)
    source.ask("evm_setAutomine", False)
    shop.progress()
    before = live_calls(shop)
    shop.clock.advance(60)
    shop.progress()
    assert live_calls(shop) == before
    shop.clock.advance(2 * MINUTE / SECOND)
    shop.progress()
    ((nonce, hash),) = live_calls(shop)
    assert (nonce, hash) != before[0]
    assert nonce == before[0][0]
    assert source.ask("eth_getTransactionByHash", before[0][1]) is None, "it was replaced"
    source.ask("evm_setAutomine", True)
    assert shop.look() == "delivered"
    assert shop.delivered == (AMOUNT, 1)


def test_many_orders_share_the_line_and_none_is_lost(shop: Shop, source: Node) -> None:
    keys = [f"offer_{number}" for number in range(MAX_LIVE + 2)]
    for key in keys:
        shop.cctp.pay(shop.offer(key).address, AMOUNT)
    source.ask("evm_setAutomine", False)
    for key in keys:
        assert shop.progress(key).state == "paid"
    nonces = [nonce for nonce, _ in live_calls(shop)]
    assert nonces == list(range(nonces[0], nonces[0] + MAX_LIVE))
    source.ask("evm_setAutomine", True)
    assert [shop.look(key) for key in keys] == ["delivered"] * len(keys)
    assert shop.delivered == (AMOUNT * len(keys), len(keys))


def test_without_coin_payments_wait(shop: Shop, source: Node) -> None:
    shop.cctp.pay(shop.offer().address, AMOUNT)
    source.ask("anvil_setBalance", shop.cctp.operator, "0x0")
    for _ in range(2):
        with pytest.raises(RouterUnavailable):
            shop.progress()
    assert shop.cctp.balance(SOURCE, shop.offer().address) == AMOUNT
    source.ask("anvil_setBalance", shop.cctp.operator, hex(ETHER))
    assert shop.look() == "delivered"
    assert shop.delivered == (AMOUNT, 1)


def open_chains(shop: Shop, signer: LocalSigner | RotatedSigner) -> dict[int, EvmChain]:
    for node in shop.cctp.nodes.values():
        node.ask("anvil_setBalance", NEW.address(KEY_NAME), hex(ETHER))
    nodes = shop.cctp.nodes.items()
    return {number: open_chain(number, node.url, signer) for number, node in nodes}


def test_after_a_change_of_the_key_the_former_one_ends_its_orders(shop: Shop) -> None:
    former = shop.offer("former")
    signer = RotatedSigner(NEW, (SIGNER,))
    chains = open_chains(shop, signer)
    shop.router = shop.cctp.open_router(shop.books, shop.clock, chains=dict(chains))
    assert shop.router.offer(order("former")) == former
    shop.cctp.pay(former.address, AMOUNT)
    shop.cctp.pay(shop.offer("new").address, AMOUNT)
    assert [shop.look(key) for key in ("former", "new")] == ["delivered"] * 2
    assert shop.delivered == (2 * AMOUNT, 2)


def test_with_a_lost_key_payments_go_back(shop: Shop) -> None:
    offer = shop.offer()
    shop.cctp.pay(offer.address, AMOUNT)
    chains = open_chains(shop, NEW)
    shop.router = shop.cctp.open_router(shop.books, shop.clock, chains=dict(chains))
    with pytest.raises(RouterUnavailable, match="is not configured"):
        shop.progress()
    shop.advance(ENDED_S)
    assert shop.look() == "returned"
    assert (shop.refunded, shop.delivered) == (AMOUNT, (0, 0))
