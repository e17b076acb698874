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
from tests.service.deposit_harness import STORY, DepositHarness, Fork, Node, armed, listener
from tests.service.faults import FaultyChain, chain_away
from tests.service.world import BASE, STRANGER, USDC, atomic


class TestReorgs:
    def test_a_detected_one_is_taken_back_and_comes_again(self, harness: DepositHarness) -> None:
        before = harness.available
        hash = harness.send("5.00", name="twice")
        harness.scan()
        harness.world.chain.reorg(2)
        harness.finish()
        assert harness.story == [("failed", REORGED)]
        assert harness.reported_events == ["detected", "failed"]
        assert harness.available == before
        assert harness.send("5.00", name="twice") == hash
        harness.finish()
        assert harness.reported_events == ["detected", "failed", "detected", "confirmed", "settled"]
        assert harness.story == [("settled", None)]
        assert harness.available == before + atomic("5")

    def test_one_that_is_included_elsewhere_goes_on(self, harness: DepositHarness) -> None:
        harness.world.chain.transfer(USDC.address, None, STRANGER, 1, "another")
        harness.send("5.00")
        harness.scan()
        seen = harness.only
        harness.world.chain.reorg(5, reinclude=True)
        harness.scan()
        harness.world.advance(1)
        moved = harness.only
        assert (moved.position, moved.id) == (seen.position, seen.id)
        assert moved.log_index != seen.log_index
        assert moved.block_number > seen.block_number
        harness.finish()
        assert harness.reported_events == STORY

    def test_one_that_comes_back_with_another_amount_counts_what_is_there(
        self, harness: DepositHarness
    ) -> None:
        before = harness.available
        hash = harness.send("5.00")
        harness.scan()
        harness.world.chain.reorg(1, reinclude=True)
        harness.alter_log(hash, "4.00")
        harness.finish()
        assert harness.reported_events == ["detected", "failed", "detected", "confirmed", "settled"]
        amounts = [event.payload["amountAtomic"] for event in harness.events()]
        assert amounts == ["5000000", "5000000", "4000000", "4000000", "4000000"]
        assert harness.available == before + atomic("4")

    def test_one_that_comes_back_for_another_account_is_that_accounts(
        self, harness: DepositHarness
    ) -> None:
        other = DepositHarness(harness.world, harness.world.merchant)
        chain = harness.world.chain
        hash = harness.send("5.00", name="turncoat")
        harness.scan()
        chain.reorg(1)
        assert harness.send("5.00", to=other.address, name="turncoat") == hash
        harness.finish()
        assert harness.story == [("failed", REORGED)]
        assert other.story == [("settled", None)]
        assert (harness.available, other.available) == (atomic("100"), atomic("5"))

    def test_a_confirmed_one_is_taken_back_with_its_sweep(self, harness: DepositHarness) -> None:
        before = harness.available
        harness.send("5.00", name="late")
        confirmed = harness.until_confirmed()
        assert confirmed.status == "confirmed"
        harness.world.chain.reorg(20)
        harness.finish()
        assert harness.story == [("failed", REORGED)]
        assert harness.reported_events == ["detected", "confirmed", "failed"]
        outgoing = harness.world.get(OutboundTransfer, str(confirmed.sweep_id))
        assert outgoing.status == "withdrawn"
        harness.world.advance(60)
        assert harness.world.sent() == 0
        harness.send("5.00", name="late")
        harness.finish()
        assert harness.reported_events[3:] == STORY
        assert harness.available == before + atomic("5")

    def test_one_whose_sweep_has_a_nonce_and_no_bytes_is_taken_back(
        self, harness: DepositHarness
    ) -> None:
        before, world = harness.available, harness.world
        harness.send("5.00", name="late")
        sweep_id = str(harness.until_confirmed().sweep_id)
        worker = WorkerAuthority(world.environment_id, "sandbox")
        sender_id, known = get_sender_id(worker, world.chain), world.get(OutboundTransfer, sweep_id)
        world.service.parts.ports.committer.commit(
            worker, lambda tx, ids: reserve_nonce(tx, BASE, sender_id, known)
        )  # and the signer does not answer
        harness.hold_sweeps(30)
        world.chain.reorg(20)
        harness.finish()
        assert harness.story == [("failed", REORGED)]
        assert world.get(OutboundTransfer, sweep_id).status == "withdrawn"
        assert world.sent() == 0
        harness.send("5.00", name="late")
        harness.finish()
        assert harness.reported_events[3:] == STORY
        assert harness.available == before + atomic("5")

    def test_a_confirmed_one_that_is_only_moved_is_confirmed_again(
        self, harness: DepositHarness
    ) -> None:
        before = harness.available
        harness.send("5.00")
        harness.until_confirmed()
        harness.world.chain.reorg(20, reinclude=True)
        harness.scan()
        assert harness.story == [("detected", None)]
        harness.finish()
        harness.world.advance(60)
        assert harness.reported_events == ["detected", "confirmed", "failed", *STORY]
        assert harness.available == before + atomic("5")
        assert harness.world.sent() == 1

    def test_one_whose_sweep_is_under_way_stays_and_alarms(
        self, harness: DepositHarness, caplog: pytest.LogCaptureFixture
    ) -> None:
        before = harness.available
        harness.send("5.00", name="gone")
        harness.until_confirmed()
        harness.hold_sweeps(0)
        while not harness.world.sent():
            harness.world.service.worker("sandbox").run_due(1)
        with caplog.at_level(logging.CRITICAL):
            harness.world.chain.reorg(20)
            harness.scan()
            assert harness.story == [("confirmed", None)]
            harness.finish()
        assert [record for record in caplog.records if "ALARM" in record.getMessage()]
        assert harness.story == [("failed", "transaction_failed")]
        assert harness.available == before
        # What the chain undid comes back: a check brings it to the vault.
        harness.send("5.00", name="gone")
        harness.finish()
        assert harness.story == [("failed", "transaction_failed")]
        harness.world.resources.deposits.check(harness.account.id)
        harness.finish()
        assert harness.story == [("settled", None)]
        assert harness.available == before + atomic("5")

    def test_a_settled_one_whose_sweep_fails_after_a_reorg_is_swept_when_it_is_back(
        self, harness: DepositHarness, caplog: pytest.LogCaptureFixture
    ) -> None:
        before = harness.available
        harness.send("5.00", name="gone")
        harness.finish()
        with caplog.at_level(logging.CRITICAL):
            harness.world.chain.reorg(50)
            harness.finish()
        assert [record for record in caplog.records if "ALARM: deposit" in record.getMessage()]
        assert harness.story == [("failed", "transaction_failed")]
        assert harness.reported_events == [*STORY, "failed"]
        assert harness.only.settled_at_ms is None
        harness.send("5.00", name="gone")
        harness.finish()
        harness.world.resources.deposits.check(harness.account.id)
        harness.finish()
        assert harness.reported_events == [*STORY, "failed", "confirmed", "settled"]
        assert harness.available == before + atomic("5")

    def test_a_settled_one_that_is_only_moved_is_known_where_it_is_now(
        self, harness: DepositHarness
    ) -> None:
        harness.send("5.00")
        harness.finish()
        before = harness.only
        harness.world.chain.reorg(50, reinclude=True)
        harness.world.system.advance(10)  # final again before anybody looks
        harness.finish()
        moved = harness.only
        assert moved.status == "settled"
        assert moved.block_number > before.block_number
        assert harness.reported_events == STORY

    def test_a_block_undone_beneath_a_deposit_that_is_still_there_changes_nothing(
        self, harness: DepositHarness
    ) -> None:
        harness.send("5.00")
        harness.finish()
        before = harness.only
        for _ in range(2):
            listener(harness).on_reorg(BASE, 0, before.block_number)
        harness.finish()
        assert harness.reported_events == STORY
        assert not harness.only.watched

    def test_what_is_found_again_during_a_look_is_looked_at_again(
        self, memory_harness: DepositHarness
    ) -> None:
        """The look saw it gone; it came back, and a scan reported that, before the look ended."""
        harness, chain = memory_harness, memory_harness.world.chain
        harness.send("5.00", name="flicker")
        harness.scan()
        chain.reorg(1)

        def flicker(call: Any) -> Any:
            seen = call()
            assert seen is None
            harness.send("5.00", name="flicker")
            harness.world.resources.deposits.check(harness.account.id)
            return seen

        node = Node(chain, flicker)
        other = harness.world.restarted(chains={BASE: node})
        other.worker("sandbox").run_due(1)
        harness.world.system.advance(1)
        other.worker("sandbox").run_until_idle()
        assert node.asked > 0
        harness.finish()
        assert harness.reported_events == STORY


class TestAChainThatDoesNotAnswer:
    def test_a_node_that_lags_behind_takes_nothing_back(
        self, memory_harness: DepositHarness
    ) -> None:
        harness = memory_harness
        harness.send("5.00")
        harness.scan()
        node = Node(harness.world.chain, lambda call: None)
        other = harness.world.restarted(chains={BASE: node})
        harness.world.system.advance(2)
        other.worker("sandbox").run_until_idle()
        assert node.asked == 1
        assert harness.reported_events == ["detected"]
        harness.world.advance(30)
        assert harness.reported_events == STORY

    def test_a_node_on_another_fork_is_believed_until_the_chain_goes_on_without_it(
        self, memory_harness: DepositHarness
    ) -> None:
        harness = memory_harness
        before = harness.available
        harness.send("5.00")
        harness.scan()
        fork = Fork(harness.world.chain, lambda call: None)
        other = harness.world.restarted(chains={BASE: fork})
        worker = other.worker("sandbox")
        harness.world.leave_scans_to_others()
        harness.world.system.advance(1)
        worker.run_until_idle()
        assert harness.story == [("failed", REORGED)]
        harness.world.advance(30)
        assert harness.reported_events == ["detected", "failed", "detected", "confirmed", "settled"]
        assert harness.available == before + atomic("5")

    def test_a_check_says_so_and_changes_nothing(self, harness: DepositHarness) -> None:
        harness.send()
        armed(harness.world, "scan")
        with pytest.raises(DependencyFailed) as caught:
            harness.world.resources.deposits.check(harness.account.id, BASE)
        assert caught.value.dependency == "chain"
        assert harness.all() == []
        checked = harness.world.resources.deposits.check(harness.account.id, BASE)
        assert [deposit.status for deposit in checked.deposits] == ["detected"]

    def test_one_silent_chain_hides_nothing_of_the_others(self, harness: DepositHarness) -> None:
        harness.send()
        Failures(harness.world.service.parts.ports).arm("chain", "heads", 1, 1)
        with pytest.raises(DependencyFailed):
            harness.world.resources.deposits.check(harness.account.id)
        assert harness.story == [("detected", None)]

    def test_hours_of_silence_lose_nothing(self, harness: DepositHarness) -> None:
        before = harness.available
        harness.send()
        harness.scan()
        silent = FaultyChain(harness.world.chain, 1, chain_away, until=10**9)
        other = harness.world.restarted(chains={BASE: silent})
        for _ in range(40):
            other.worker("sandbox").run_until_idle()
            harness.world.system.advance(300)
        assert harness.story == [("detected", None)]
        harness.finish()
        harness.world.advance(60)
        assert harness.story == [("settled", None)]
        assert harness.available == before + atomic("5")

    def test_a_lost_answer_to_the_sweep_sends_it_no_second_time(
        self, harness: DepositHarness
    ) -> None:
        before = harness.available
        armed(harness.world, "lost_answer")
        harness.send("5.00")
        harness.send("6.00")
        harness.finish()
        assert harness.available == before + atomic("11")
        assert harness.world.sent() == 2
        assert harness.left == 0
