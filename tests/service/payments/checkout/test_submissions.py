"""Hints: a payer says where to look, and only what is found there counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from payments_core.chains.port import TransactionView
from payments_core.clock import SECOND
from payments_core.errors import ResourceConflict, UnsupportedChain, ValidationFailed
from payments_core.payments.options.submissions import MAX_SUBMISSIONS
from payments_core.payments.receipts.record import (
    Receipt,
    TrackedTransaction,
    tracked_transaction_id,
)
from payments_core.payments.tracking.attribution import HINT_TTL_MS
from payments_core.storage.jobs import Job
from tests.service.faults import FaultyChain
from tests.service.payer import INVENTED, Payer, coming
from tests.service.world import BASE, OTHER_WALLET, USDC, WALLET, World, atomic

FULL = atomic("25.00")


def invented(number: int) -> str:
    return f"0x{number:064x}"


class Counting(FaultyChain):
    """A node that notes when it was asked for which transaction, and may show it in no block."""

    def __init__(self, world: World) -> None:
        super().__init__(world.chain, 10**9, lambda call: call())
        self._world = world
        self.asked: list[tuple[str, int]] = []
        self.in_no_block = False

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return {hash: self.transaction(hash) for hash in hashes}

    def transaction(self, hash: str) -> TransactionView | None:
        self.asked.append((hash, self._world.clock.now()))
        view = super().transaction(hash)
        if view is not None and self.in_no_block:
            return attrs.evolve(view, block=None, logs=(), succeeded=False)
        return view


def counted(world: World) -> Counting:
    chain = Counting(world)
    world.service = world.restarted(chains={BASE: chain})
    return chain


def evidence(payer: Payer, hash: str) -> TrackedTransaction:
    return payer.world.get(TrackedTransaction, tracked_transaction_id(payer.id, BASE, hash))


def everything(payer: Payer) -> tuple[Any, ...]:
    return payer.paid(), payer.world.events(payer.id)


class TestAHintThatIsRight:
    def test_before_the_transfer(self, world: World) -> None:
        payer = Payer(world)
        option = payer.select(payer.option())
        payer.submit(option, coming("later"))
        world.run()
        assert payer.status(option) == ("pending", "selected", 0)
        world.advance(100)
        escrow = str(payer.paid().escrow_address)
        hash = world.chain.transfer(USDC.address, None, escrow, FULL, "later")
        assert hash == coming("later")
        world.service.parts.scanner("sandbox").wake(BASE)
        world.run()
        assert payer.status(option)[0] == "processing"  # not only at the hint's next look
        world.finish()
        assert payer.status(option) == ("succeeded", "selected", FULL)
        [receipt] = payer.read(option).receipts
        assert receipt.transaction_hash == hash

    def test_after_it_and_before_any_scan(self, world: World) -> None:
        world.stop_scans()
        payer = Payer(world)
        option = payer.option()
        escrow = str(payer.paid().escrow_address)
        hash = world.chain.transfer(USDC.address, None, escrow, FULL, "unscanned")
        world.run()
        assert payer.status(option)[0] == "pending"
        submitted = payer.submit(option, hash.upper().replace("0X", "0x"))
        assert [item.transaction_hash for item in submitted.option.submissions] == [hash]
        world.run()
        assert payer.status(option)[0] == "processing"
        assert payer.paid().status == "processing"
        world.advance(20)
        assert payer.status(option)[0] == "succeeded"
        assert payer.paid().received_atomic == FULL

    def test_after_a_scan_it_is_followed_once(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        hash = payer.pay()
        world.run()
        before = evidence(payer, hash)
        payer.submit(option, hash)
        assert evidence(payer, hash) == before
        world.finish()
        assert (payer.paid().received_atomic, payer.status(option)[0]) == (FULL, "succeeded")

    def test_and_the_transfer_is_undone_meanwhile(self, world: World) -> None:
        world.chain.mine(60)
        payer = Payer(world)
        option = payer.select(payer.option())
        hash = payer.pay()
        payer.submit(option, hash)
        world.run()
        assert payer.status(option)[0] == "processing"
        world.reorg(2)
        world.advance(20)
        assert payer.status(option) == ("pending", "selected", 0)
        assert payer.paid().status == "awaiting_payment"
        payer.pay("25.00", OTHER_WALLET)
        world.finish()
        assert payer.status(option) == ("succeeded", "selected", FULL)

    def test_while_the_transaction_waits_for_a_block(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        chain = counted(world)
        chain.in_no_block = True
        world.stop_scans()
        escrow = str(payer.paid().escrow_address)
        hash = world.chain.transfer(USDC.address, None, escrow, FULL, "waiting")
        payer.submit(option, hash)
        world.run()
        assert payer.status(option)[0] == "pending"
        chain.in_no_block = False
        world.advance(20)
        assert payer.status(option)[0] == "succeeded"


class TestAHintThatIsNot:
    def test_an_unknown_transaction_changes_nothing(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        before = everything(payer)
        payer.submit(option)
        world.finish()
        assert everything(payer) == before
        assert payer.status(option) == ("pending", None, 0)
        assert payer.select(payer.option()).option.selection_status == "selected"

    def test_a_transaction_that_pays_another_changes_nothing_here(self, world: World) -> None:
        payer, other = Payer(world), Payer(world)
        option = payer.option()
        hash = other.pay()
        before = everything(payer)
        payer.submit(option, hash)
        world.finish()
        assert everything(payer) == before
        assert payer.read(option).receipts == ()
        assert not evidence(payer, hash).watched
        assert other.paid().status == "succeeded"

    def test_a_vaults_own_transfer_stays_its_own(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        vault = world.authorize(world.option(payer.payment))
        world.run()
        hash = world.operation_now(vault).transaction_hash
        assert hash is not None
        payer.submit(option, hash)
        world.finish()
        assert world.option_now(vault).status == "succeeded"
        assert payer.status(option) == ("cancelled", None, 0)
        assert payer.paid().received_atomic == FULL

    def test_a_transfer_of_another_token_or_of_nothing(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        escrow = str(payer.paid().escrow_address)
        hashes = [
            world.chain.transfer(OTHER_WALLET, None, escrow, FULL, "wrong token"),
            world.chain.transfer(USDC.address, None, escrow, 0, "nothing"),
            world.chain.transfer(USDC.address, None, WALLET, FULL, "elsewhere"),
            world.chain.transfer(USDC.address, None, escrow, FULL, "reverted", reverts=True),
        ]
        for hash in hashes:
            payer.submit(option, hash)
        world.finish()
        assert payer.status(option) == ("pending", None, 0)
        assert payer.paid().status == "awaiting_payment"
        page = world.storage.read(
            world.environment_id,
            lambda snapshot: snapshot.find(Receipt, "by_payment", (payer.id,), limit=10),
        )
        reasons = {receipt.rejection_reason for receipt in page.records}
        assert reasons == {"wrong_token", "wrong_amount"}

    @pytest.mark.parametrize(
        ("hash", "chain_id", "error"),
        [
            (INVENTED, 5, UnsupportedChain),
            ("0x" + "ab" * 31, BASE, ValidationFailed),
            ("0x" + "ab" * 33, BASE, ValidationFailed),
            ("ab" * 32, BASE, ValidationFailed),
            ("0X" + "ab" * 32, BASE, ValidationFailed),
            ("0x" + "ab" * 31 + "\N{FULLWIDTH DIGIT ONE}1", BASE, ValidationFailed),
            (INVENTED + "\n", BASE, ValidationFailed),
            ("", BASE, ValidationFailed),
        ],
    )
    def test_what_is_not_a_hash_is_refused(
        self, world: World, hash: str, chain_id: int, error: type[Exception]
    ) -> None:
        payer = Payer(world)
        option = payer.option()
        with pytest.raises(error):
            payer.submit(option, hash, chain_id)
        assert payer.now(option).submissions == ()

    def test_a_transaction_on_another_chain_that_is_served(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        payer.submit(option, INVENTED, 137)
        world.finish()
        assert payer.status(option) == ("pending", None, 0)


class TestAFloodOfHints:
    def test_one_option_names_five_transactions_and_each_once(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        for number in range(MAX_SUBMISSIONS):
            payer.submit(option, invented(number))
            payer.submit(option, invented(number))
        with pytest.raises(ResourceConflict):
            payer.submit(option, invented(99))
        payer.submit(option, invented(0))  # it is known already
        assert len(payer.now(option).submissions) == MAX_SUBMISSIONS
        payer.pay()
        world.finish()
        assert payer.status(option)[0] == "succeeded"  # found all the same

    def test_an_invented_transaction_is_looked_for_a_dozen_times(self, memory_world: World) -> None:
        world = memory_world
        payer = Payer(world)
        option = payer.option()
        chain = counted(world)
        payer.submit(option)
        world.run()
        world.advance(2 * HINT_TTL_MS // SECOND)
        moments = [at for hash, at in chain.asked if hash == INVENTED]
        assert moments[0] == payer.now(option).submissions[0].submitted_at_ms
        assert 8 <= len(moments) <= 12
        assert not evidence(payer, INVENTED).watched
        assert jobs_about(payer, INVENTED) == []
        world.advance(3_600)
        assert len([hash for hash, _ in chain.asked if hash == INVENTED]) == len(moments)

    def test_a_foreign_transaction_is_looked_at_once(self, memory_world: World) -> None:
        world = memory_world
        payer = Payer(world)
        option = payer.option()
        chain = counted(world)
        world.stop_scans()
        hash = world.chain.transfer(USDC.address, None, WALLET, FULL, "foreign")
        payer.submit(option, hash)
        world.run()
        world.advance(600)
        assert len([asked for asked, _ in chain.asked if asked == hash]) == 1
        assert jobs_about(payer, hash) == []


def jobs_about(payer: Payer, hash: str) -> list[str]:
    """The jobs that still follow a transaction."""
    world, lane = payer.world, ("sandbox.chain", f"payment:{payer.id}")
    found = world.storage.read(
        world.environment_id,
        lambda snapshot: snapshot.find(Job, "by_queue_lane", lane, limit=100),
    )
    return [job.id for job in found.records if hash in job.subject]
