"""Deposits on a chain that changes its mind, or says nothing."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from payments_core.chains.outbox.nonces import get_sender_id, reserve_nonce
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.simulated.failures import Failures
from payments_core.deposits.record import REORGED
from payments_core.engine.decision import WorkerAuthority
from payments_core.errors import (
    DependencyFailed,
)
from tests.service.faults import FaultyChain, chain_away
from tests.service.till import STORY, Fork, Node, Till, armed, listener
from tests.service.world import BASE, STRANGER, USDC, atomic


class TestReorgs:
    def test_a_detected_one_is_taken_back_and_comes_again(self, till: Till) -> None:
        before = till.available
        hash = till.send("5.00", name="twice")
        till.scan()
        till.world.chain.reorg(2)
        till.finish()
        assert till.story == [("failed", REORGED)]
        assert till.reported_events == ["detected", "failed"]
        assert till.available == before
        assert till.send("5.00", name="twice") == hash
        till.finish()
        assert till.reported_events == ["detected", "failed", "detected", "confirmed", "settled"]
        assert till.story == [("settled", None)]
        assert till.available == before + atomic("5")

    def test_one_that_is_included_elsewhere_goes_on(self, till: Till) -> None:
        till.world.chain.transfer(USDC.address, None, STRANGER, 1, "another")
        till.send("5.00")
        till.scan()
        seen = till.only
        till.world.chain.reorg(5, reinclude=True)
        till.scan()
        till.world.advance(1)
        moved = till.only
        assert (moved.position, moved.id) == (seen.position, seen.id)
        assert moved.log_index != seen.log_index
        assert moved.block_number > seen.block_number
        till.finish()
        assert till.reported_events == STORY

    def test_one_that_comes_back_with_another_amount_counts_what_is_there(self, till: Till) -> None:
        before = till.available
        hash = till.send("5.00")
        till.scan()
        till.world.chain.reorg(1, reinclude=True)
        till.alter_log(hash, "4.00")
        till.finish()
        assert till.reported_events == ["detected", "failed", "detected", "confirmed", "settled"]
        amounts = [event.payload["amountAtomic"] for event in till.events()]
        assert amounts == ["5000000", "5000000", "4000000", "4000000", "4000000"]
        assert till.available == before + atomic("4")

    def test_one_that_comes_back_for_another_account_is_that_accounts(self, till: Till) -> None:
        other = Till(till.world, till.world.merchant)
        chain = till.world.chain
        hash = till.send("5.00", name="turncoat")
        till.scan()
        chain.reorg(1)
        assert till.send("5.00", to=other.address, name="turncoat") == hash
        till.finish()
        assert till.story == [("failed", REORGED)]
        assert other.story == [("settled", None)]
        assert (till.available, other.available) == (atomic("100"), atomic("5"))

    def test_a_confirmed_one_is_taken_back_with_its_sweep(self, till: Till) -> None:
        before = till.available
        till.send("5.00", name="late")
        confirmed = till.until_confirmed()
        assert confirmed.status == "confirmed"
        till.world.chain.reorg(20)
        till.finish()
        assert till.story == [("failed", REORGED)]
        assert till.reported_events == ["detected", "confirmed", "failed"]
        outgoing = till.world.get(OutboundTransfer, str(confirmed.sweep_id))
        assert outgoing.status == "withdrawn"
        till.world.advance(60)
        assert till.world.sent() == 0
        till.send("5.00", name="late")
        till.finish()
        assert till.reported_events[3:] == STORY
        assert till.available == before + atomic("5")

    def test_one_whose_sweep_has_a_nonce_and_no_bytes_is_taken_back(self, till: Till) -> None:
        before, world = till.available, till.world
        till.send("5.00", name="late")
        sweep_id = str(till.until_confirmed().sweep_id)
        worker = WorkerAuthority(world.environment_id, "sandbox")
        sender_id, known = get_sender_id(worker, world.chain), world.get(OutboundTransfer, sweep_id)
        world.service.parts.ports.committer.commit(
            worker, lambda tx, ids: reserve_nonce(tx, BASE, sender_id, known)
        )  # and the signer does not answer
        till.hold_sweeps(30)
        world.chain.reorg(20)
        till.finish()
        assert till.story == [("failed", REORGED)]
        assert world.get(OutboundTransfer, sweep_id).status == "withdrawn"
        assert world.sent() == 0
        till.send("5.00", name="late")
        till.finish()
        assert till.reported_events[3:] == STORY
        assert till.available == before + atomic("5")

    def test_a_confirmed_one_that_is_only_moved_is_confirmed_again(self, till: Till) -> None:
        before = till.available
        till.send("5.00")
        till.until_confirmed()
        till.world.chain.reorg(20, reinclude=True)
        till.scan()
        assert till.story == [("detected", None)]
        till.finish()
        till.world.advance(60)
        assert till.reported_events == ["detected", "confirmed", "failed", *STORY]
        assert till.available == before + atomic("5")
        assert till.world.sent() == 1

    def test_one_whose_sweep_is_under_way_stays_and_alarms(
        self, till: Till, caplog: pytest.LogCaptureFixture
    ) -> None:
        before = till.available
        till.send("5.00", name="gone")
        till.until_confirmed()
        till.hold_sweeps(0)
        while not till.world.sent():
            till.world.service.worker("sandbox").run_due(1)
        with caplog.at_level(logging.CRITICAL):
            till.world.chain.reorg(20)
            till.scan()
            assert till.story == [("confirmed", None)]
            till.finish()
        assert [record for record in caplog.records if "ALARM" in record.getMessage()]
        assert till.story == [("failed", "transaction_failed")]
        assert till.available == before
        # What the chain undid comes back: a check brings it to the vault.
        till.send("5.00", name="gone")
        till.finish()
        assert till.story == [("failed", "transaction_failed")]
        till.world.resources.deposits.check(till.account.id)
        till.finish()
        assert till.story == [("settled", None)]
        assert till.available == before + atomic("5")

    def test_a_settled_one_whose_sweep_fails_after_a_reorg_is_swept_when_it_is_back(
        self, till: Till, caplog: pytest.LogCaptureFixture
    ) -> None:
        before = till.available
        till.send("5.00", name="gone")
        till.finish()
        with caplog.at_level(logging.CRITICAL):
            till.world.chain.reorg(50)
            till.finish()
        assert [record for record in caplog.records if "ALARM: deposit" in record.getMessage()]
        assert till.story == [("failed", "transaction_failed")]
        assert till.reported_events == [*STORY, "failed"]
        assert till.only.settled_at is None
        till.send("5.00", name="gone")
        till.finish()
        till.world.resources.deposits.check(till.account.id)
        till.finish()
        assert till.reported_events == [*STORY, "failed", "confirmed", "settled"]
        assert till.available == before + atomic("5")

    def test_a_settled_one_that_is_only_moved_is_known_where_it_is_now(self, till: Till) -> None:
        till.send("5.00")
        till.finish()
        before = till.only
        till.world.chain.reorg(50, reinclude=True)
        till.world.system.advance(10)  # final again before anybody looks
        till.finish()
        moved = till.only
        assert moved.status == "settled"
        assert moved.block_number > before.block_number
        assert till.reported_events == STORY

    def test_a_block_undone_beneath_a_deposit_that_is_still_there_changes_nothing(
        self, till: Till
    ) -> None:
        till.send("5.00")
        till.finish()
        before = till.only
        for _ in range(2):
            listener(till).on_reorg(BASE, 0, before.block_number)
        till.finish()
        assert till.reported_events == STORY
        assert not till.only.watched

    def test_what_is_found_again_during_a_look_is_looked_at_again(self, memory_till: Till) -> None:
        """The look saw it gone; it came back, and a scan reported that, before the look ended."""
        till, chain = memory_till, memory_till.world.chain
        till.send("5.00", name="flicker")
        till.scan()
        chain.reorg(1)

        def flicker(call: Any) -> Any:
            seen = call()
            assert seen is None
            till.send("5.00", name="flicker")
            till.world.resources.deposits.check(till.account.id)
            return seen

        node = Node(chain, flicker)
        other = till.world.restarted(chains={BASE: node})
        other.worker("sandbox").run_due(1)
        till.world.system.advance(1)
        other.worker("sandbox").run_until_idle()
        assert node.asked > 0
        till.finish()
        assert till.reported_events == STORY


class TestAChainThatDoesNotAnswer:
    def test_a_node_that_lags_behind_takes_nothing_back(self, memory_till: Till) -> None:
        till = memory_till
        till.send("5.00")
        till.scan()
        node = Node(till.world.chain, lambda call: None)
        other = till.world.restarted(chains={BASE: node})
        till.world.system.advance(2)
        other.worker("sandbox").run_until_idle()
        assert node.asked == 1
        assert till.reported_events == ["detected"]
        till.world.advance(30)
        assert till.reported_events == STORY

    def test_a_node_on_another_fork_is_believed_until_the_chain_goes_on_without_it(
        self, memory_till: Till
    ) -> None:
        till = memory_till
        before = till.available
        till.send("5.00")
        till.scan()
        fork = Fork(till.world.chain, lambda call: None)
        other = till.world.restarted(chains={BASE: fork})
        worker = other.worker("sandbox")
        till.world.leave_scans_to_others()
        till.world.system.advance(1)
        worker.run_until_idle()
        assert till.story == [("failed", REORGED)]
        till.world.advance(30)
        assert till.reported_events == ["detected", "failed", "detected", "confirmed", "settled"]
        assert till.available == before + atomic("5")

    def test_a_check_says_so_and_changes_nothing(self, till: Till) -> None:
        till.send()
        armed(till.world, "scan")
        with pytest.raises(DependencyFailed) as caught:
            till.world.resources.deposits.check(till.account.id, BASE)
        assert caught.value.dependency == "chain"
        assert till.all() == []
        checked = till.world.resources.deposits.check(till.account.id, BASE)
        assert [deposit.status for deposit in checked.deposits] == ["detected"]

    def test_one_silent_chain_hides_nothing_of_the_others(self, till: Till) -> None:
        till.send()
        Failures(till.world.service.parts.ports).arm("chain", "heads", 1, 1)
        with pytest.raises(DependencyFailed):
            till.world.resources.deposits.check(till.account.id)
        assert till.story == [("detected", None)]

    def test_hours_of_silence_lose_nothing(self, till: Till) -> None:
        before = till.available
        till.send()
        till.scan()
        silent = FaultyChain(till.world.chain, 1, chain_away, until=10**9)
        other = till.world.restarted(chains={BASE: silent})
        for _ in range(40):
            other.worker("sandbox").run_until_idle()
            till.world.system.advance(300)
        assert till.story == [("detected", None)]
        till.finish()
        till.world.advance(60)
        assert till.story == [("settled", None)]
        assert till.available == before + atomic("5")

    def test_a_lost_answer_to_the_sweep_sends_it_no_second_time(self, till: Till) -> None:
        before = till.available
        armed(till.world, "lost_answer")
        till.send("5.00")
        till.send("6.00")
        till.finish()
        assert till.available == before + atomic("11")
        assert till.world.sent() == 2
        assert till.left == 0
