"""kill -9 of the worker's process, again and again: each Payment is funded once and released once.

The Payments go from a vault to their escrows and on to a merchant, on a real node and on SQLite.
They are authorized between the runs of a worker, each of which ends at a random point; the next
one goes on with the same file. What counts in the end are the logs of the chain, not our books.
`PAYMENTS_KILL_SEED` repeats a run's draws: single steps are counted, so that they repeat as far as
the node does, and threads as far as time does. `PAYMENTS_KILLS` asks for more (`make kills`).
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm.responses import TRANSFER
from payments_core.chains.outbox.record import Sender
from payments_core.chains.port import AddressSpec, Chain
from payments_core.payments.details import OptionDetails
from payments_core.payments.record import Payment
from payments_core.service import PaymentsService
from payments_core.storage.port import Storage
from payments_core_http.cli.child_processes import ChildProcess
from tests.chains.evm.kill_victim import AIMS, chain_at, service_over, storage_in
from tests.chains.evm.nodes import Node
from tests.service.world import BASE, RING, USDC, World, atomic

PAYMENTS = 25
KILLS = int(os.environ.get("PAYMENTS_KILLS") or 10)
LIFE_S = 60.0
CALLS = 24
"""So many calls that change something one Payment takes, with its share of the scans."""

PAYMENT_S = 0.3
"""So long the threads take for one, of many that are under way."""

MINTED = 1_000


class Shop(World):
    """A world whose ids come from the seed, so that jobs come in the same order again."""

    def __init__(self, folder: Path, url: str, chance: random.Random) -> None:
        (folder / "keys").write_text(RING)
        self.folder = folder
        self.url = url
        self._chance = chance
        chain = chain_at(url)
        chain.prepare_node()
        storage = storage_in(folder)
        super().__init__(storage, {BASE: chain})
        self.options: list[OptionDetails] = []

    def restarted(
        self, storage: Storage | None = None, chains: Mapping[int, Chain] | None = None
    ) -> PaymentsService:
        """See World."""
        assert storage is None and chains is None
        service, self.clock = service_over(
            self.folder, self.storage, self.chain, self._chance.randbytes
        )
        return service

    def authorize_up_to(self, count: int) -> None:
        """Have so many Payments, each of another amount."""
        self.service.refresh()
        while len(self.options) < count:
            self.options.append(self.authorized(amount_of(len(self.options))))

    def unfinished(self) -> int:
        """How many Payments are still to be authorized, or to succeed."""
        payments = [self.paid(option.payment.id) for option in self.options]
        return PAYMENTS - sum(payment.status == "succeeded" for payment in payments)


@attrs.define
class Tally:
    """How often what was killed."""

    kills: int = 0
    at: Counter[str] = attrs.field(factory=Counter)
    under_way: int = 0
    """Kills while Payments were under way."""


@pytest.fixture
def seed() -> int:
    seed = int(os.environ.get("PAYMENTS_KILL_SEED") or random.randrange(2**32))
    print(f"PAYMENTS_KILL_SEED={seed} PAYMENTS_KILLS={KILLS}")
    return seed


@pytest.mark.slow
@pytest.mark.timeout(60 + 10 * KILLS)
@pytest.mark.parametrize("role", ["steps", "threads"])
def test_kill_9_of_the_worker_funds_and_releases_each_payment_once(
    role: str, own_node: Node, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    shop = Shop(tmp_path, own_node.url, chance)
    shop.open()
    shop.fund(str(MINTED))
    tally = Tally()
    while tally.kills < KILLS:
        done = PAYMENTS - shop.unfinished()
        in_time = PAYMENTS * (tally.kills + 1) // KILLS
        shop.authorize_up_to(min(PAYMENTS, max(in_time, done + 1)))
        share = shop.unfinished() / (KILLS - tally.kills)
        live_and_die(role, shop, share, chance, tally)
        tally.kills += 1
        tally.under_way += done < PAYMENTS
    shop.authorize_up_to(PAYMENTS)
    live_to_the_end(role, shop, chance)
    shop.service.refresh()
    assert shop.unfinished() == 0
    reported = assert_the_chain_has_each_transfer_once(shop, own_node)
    assert_the_books_balance(shop)
    print(f"{role}: {tally.kills} kills, {tally.under_way} of them with Payments under way")
    print(f"before which calls: {dict(tally.at)}; {reported}")
    shop.service.close()


def live_and_die(role: str, shop: Shop, share: float, chance: random.Random, tally: Tally) -> None:
    """One process that does about its share of the work, in Payments, and is killed in it."""
    under_way = len(shop.options) - (PAYMENTS - shop.unfinished())
    reach = CALLS * min(2 * share, under_way)  # there are no more calls than that
    point = 1 + chance.randrange(max(2, int(reach))) if role == "steps" else 0
    victim = born(role, shop, chance, point)
    try:
        victim.wait_until_ready()
        if role == "steps":
            victim.wait_for(
                lambda reported: bool(reported[-1].keys() & {"lived", "killed_at"}), LIFE_S
            )
            killed = [
                facts["killed_at"] for facts in victim.read_messages() if "killed_at" in facts
            ]
            assert len(killed) == 1, f"it was not killed\n{victim.read_errors()}"
            tally.at.update(killed)
        else:
            assert victim.wait_for(lambda reported: "works" in reported[-1], LIFE_S), (
                victim.read_errors()
            )
            killer = threading.Timer(chance.uniform(0, 2 * PAYMENT_S * share), victim.kill)
            killer.start()
            killer.join()
            tally.at["from outside, at any"] += 1
    finally:
        victim.end()


def live_to_the_end(role: str, shop: Shop, chance: random.Random) -> None:
    """The last process, which does what is left."""
    victim = born(role, shop, chance, 0)
    try:
        victim.wait_until_ready()
        if role == "threads":
            assert victim.wait_for(lambda reported: "works" in reported[-1], LIFE_S), (
                victim.read_errors()
            )
            os.kill(victim.pid, signal.SIGTERM)  # and then it brings all to its end
        assert victim.wait_for(lambda reported: "lived" in reported[-1], LIFE_S), (
            victim.read_errors()
        )
        victim.wait_for(lambda reported: False, LIFE_S)  # a signal on its way out would end it
    finally:
        code = victim.end()
    assert code == 0, victim.read_errors()


def born(role: str, shop: Shop, chance: random.Random, point: int) -> ChildProcess:
    seed, aim = chance.randrange(2**32), chance.choice(AIMS)
    arguments = [role, str(shop.folder), shop.url, str(seed), str(point), aim]
    return ChildProcess("victim", "tests.chains.evm.kill_victim", arguments)


def assert_the_chain_has_each_transfer_once(shop: Shop, node: Node) -> str:
    """By the logs of the token and the transactions of the operator, whatever our books say."""
    vault, merchant = shop.vault_address(), shop.vault_address(shop.merchant)
    escrows = {
        str(option.payment.escrow_address): atomic(amount_of(number))
        for number, option in enumerate(shop.options)
    }
    assert len(escrows) == PAYMENTS
    minted, *moved = transfers(node)
    assert minted[1:] == (vault, atomic(str(MINTED)))
    funding = [(vault, escrow, amount) for escrow, amount in escrows.items()]
    releases = [(escrow, merchant, amount) for escrow, amount in escrows.items()]
    assert Counter(moved) == Counter(funding + releases)

    operator = shop.chain.derive(AddressSpec(shop.environment_id, "operator", "operator"))
    sent = transactions_of(node, operator)
    assert [int(one["nonce"], 16) for one in sent] == list(range(2 * PAYMENTS))
    assert int(node.ask("eth_getTransactionCount", operator, "pending"), 16) == len(sent)
    assert all(node.receipt(one["hash"]).succeeded for one in sent)
    assert shop.get(Sender, f"{BASE}:{operator}").next_slot == len(sent)
    at = shop.chain.balances(USDC.address, [vault, merchant, *escrows]).amounts
    total = sum(escrows.values())
    assert at == {vault: atomic(str(MINTED)) - total, merchant: total} | dict.fromkeys(escrows, 0)
    return f"{len(funding)} funding transfers and {len(releases)} releases in {len(sent)} slots"


def assert_the_books_balance(shop: Shop) -> None:
    for number, option in enumerate(shop.options):
        amount = atomic(amount_of(number))
        payment = shop.get(Payment, option.payment.id)
        assert (payment.status, payment.received_atomic, payment.released_atomic) == (
            "succeeded",
            amount,
            amount,
        )
        assert shop.operation_now(option).status == "confirmed"
        books = payment.books
        assert (books.payer, books.escrow, books.excess, books.fees) == (-amount, 0, 0, 0)
        assert books.recipient == amount
        entries = shop.journal(option.payment.id)
        assert [sum(postings.values()) for _, postings in entries] == [0] * len(entries)
        assert len(shop.receipt_ids(option)) == 1
    left = atomic(str(MINTED)) - sum(atomic(amount_of(number)) for number in range(PAYMENTS))
    assert shop.held() == (left, 0, left)


def transfers(node: Node) -> list[tuple[str, str, int]]:
    """Every transfer of the token since the first block: from, to, amount."""
    query = {"address": USDC.address, "topics": [TRANSFER], "fromBlock": "0x0"}
    return [
        (address_in(log["topics"][1]), address_in(log["topics"][2]), int(log["data"], 16))
        for log in node.ask("eth_getLogs", query)
    ]


def transactions_of(node: Node, sender: str) -> list[dict[str, Any]]:
    """What a sender has in the chain, in its order."""
    newest = int(node.ask("eth_blockNumber"), 16)
    blocks = (node.ask("eth_getBlockByNumber", hex(n), True) for n in range(newest + 1))
    return [
        one for block in blocks for one in block["transactions"] if one["from"] == sender.lower()
    ]


def address_in(topic: str) -> str:
    return encode_checksum_address(bytes.fromhex(topic[26:]))


def amount_of(number: int) -> str:
    """What the so-manieth Payment is over."""
    return f"{number + 1}.{number:02}"
