"""Deposit addresses and deposits: found, final, swept into the vault, and each counted once."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import attrs
import pytest

from payments_core.assets import CHAINS, asset_of
from payments_core.chains.outbox import Outbox, Outgoing
from payments_core.chains.port import Block, ChainUnavailable, ScannedTransfer, TransactionView
from payments_core.decision import Scope
from payments_core.deposits.arrivals import Arrivals
from payments_core.deposits.record import REORGED
from payments_core.errors import (
    AccountSuspended,
    DependencyFailed,
    NotFound,
    UnsupportedChain,
)
from payments_core.money import Atomic
from payments_core.sandbox.failures import Failures
from payments_core.vaults.record import Vault
from tests.service.faults import FaultyChain, chain_away
from tests.service.test_concurrency import at_once
from tests.service.till import OUTSIDE, Till
from tests.service.world import BASE, STRANGER, USDC, World, answer_of, atomic, once, write

POLYGON = 137
STORY = ["detected", "confirmed", "settled"]


@pytest.fixture
def till(world: World) -> Till:
    return Till(world)


@pytest.fixture
def memory_till(memory_world: World) -> Till:
    return Till(memory_world)


def armed(world: World, operation: str, times: int = 1) -> None:
    Failures(world.storage, world.service.ledger).arm("chain", operation, times, BASE)


class TestAddresses:
    def test_an_account_has_one_address_whatever_is_asked_for_it(self, world: World) -> None:
        deposits, server = world.service.deposits, world.server
        first = deposits.address(server, world.payer.id, BASE)
        again = deposits.address(server, world.payer.id, BASE)
        assert (first.is_new, again.is_new) == (True, False)
        assert again.address.id == first.address.id
        others = [deposits.address(server, world.payer.id, chain_id) for chain_id in CHAINS]
        assert {other.address.address for other in others} == {first.address.address}
        assert len({other.address.id for other in others}) == len(CHAINS)
        assert first.address.chain_type == "evm"
        assert first.address.address != world.vault_address()
        theirs = deposits.address(server, world.merchant.id, BASE)
        assert theirs.address.address != first.address.address

    def test_of_many_at_once_one_makes_it(self, world: World) -> None:
        server = world.server
        calls = [lambda: world.service.deposits.address(server, world.payer.id, BASE)] * 8
        issued = at_once(calls)
        assert Counter(item.is_new for item in issued) == {True: 1, False: 7}
        assert len({item.address.id for item in issued}) == 1
        page = world.service.deposits.addresses(server, world.payer.id)
        assert len(page.records) == 1

    def test_addresses_are_listed_page_by_page(self, world: World) -> None:
        deposits, server = world.service.deposits, world.server
        made = []
        for chain_id in CHAINS:
            made.append(deposits.address(server, world.payer.id, chain_id).address.id)
            world.system.advance(1)
        first = deposits.addresses(server, world.payer.id, limit=3)
        rest = deposits.addresses(server, world.payer.id, limit=3, after=first.next)
        assert [row.id for row in (*first.records, *rest.records)] == made

    @pytest.mark.parametrize("status", ["suspended", "closed"])
    def test_an_account_that_may_not_act_keeps_what_it_has_and_gets_no_more(
        self, world: World, status: Any
    ) -> None:
        till = Till(world)
        world.service.accounts.update(world.server, world.payer.id, status=status)
        with pytest.raises(AccountSuspended):
            world.service.deposits.address(world.server, world.payer.id, POLYGON)
        kept = world.service.deposits.address(world.server, world.payer.id, BASE)
        assert kept.address.id == till.row.id
        till.send("5.00")
        till.finish()
        assert till.story == [("settled", None)]

    def test_a_chain_that_is_not_served_has_no_address(self, memory_world: World) -> None:
        with pytest.raises(UnsupportedChain):
            memory_world.service.deposits.address(memory_world.server, memory_world.payer.id, 2)

    def test_a_request_that_is_repeated_is_answered_as_it_was(self, world: World) -> None:
        server, key = world.server, once("issue")
        world.service.deposits.address(server, world.payer.id, BASE, idempotent=key)
        again = answer_of(
            lambda: world.service.deposits.address(server, world.payer.id, BASE, idempotent=key)
        )
        assert again is not None
        assert len(world.service.deposits.addresses(server, world.payer.id).records) == 1

    def test_another_environments_account_is_not_found(self, till: Till) -> None:
        world = till.world
        till.send()
        till.finish()
        stranger = world.service.tenants.trusted(world.app.environments["production"])
        deposits, account = world.service.deposits, world.payer.id
        for call in (
            lambda: deposits.address(stranger, account, BASE),
            lambda: deposits.addresses(stranger, account),
            lambda: deposits.deposits(stranger, account),
            lambda: deposits.check(stranger, account),
            lambda: deposits.check(stranger, "acct_none"),
        ):
            with pytest.raises(NotFound) as caught:
                call()
            assert caught.value.resource == "account"


class TestTheWayToTheVault:
    def test_a_deposit_is_seen_then_final_then_in_the_vault(self, till: Till) -> None:
        before = till.available
        hash = till.send("5.00")
        till.scan()
        assert till.story == [("detected", None)]
        assert till.available == before
        till.finish()
        deposit = till.only
        assert deposit.status == "settled"
        assert (deposit.amount, deposit.sender) == (atomic("5"), OUTSIDE)
        assert deposit.deposit_address_id == till.row.id
        assert deposit.transaction_hash == hash
        assert deposit.created_at <= deposit.confirmed_at <= deposit.settled_at
        assert till.available == before + atomic("5")
        assert till.left == 0

    def test_each_step_is_told_once_with_what_a_partner_needs(self, till: Till) -> None:
        hash = till.send("5.00")
        till.finish()
        till.scan()
        assert till.told == STORY
        assert [event.payload["status"] for event in till.events()] == STORY
        settled = till.events()[-1]
        assert settled.payload == {
            "accountId": till.account.id,
            "depositId": till.only.id,
            "status": "settled",
            "statusVersion": 3,
            "chainId": BASE,
            "assetSymbol": "USDC",
            "amountAtomic": "5000000",
            "transactionHash": hash,
        }
        assert settled.account_id == till.account.id
        assert settled.external_user_id == till.account.external_user_id

    def test_short_of_finality_nothing_moves(self, till: Till) -> None:
        till.send()
        for _ in range(5):
            till.scan()
        assert till.told == ["detected"]
        assert till.world.sent() == 0

    def test_every_log_of_a_transaction_is_a_deposit_of_its_own(self, till: Till) -> None:
        other = Till(till.world, till.world.merchant)
        before = till.available
        hash = till.send("5.00")
        till.add_log(hash, "0.25")
        till.add_log(hash, "5.00")
        till.world.chain.mint(USDC.address, other.address, atomic("1"), "first")
        till.add_log(hash, "2.00", to=other.address)
        till.finish()
        assert sorted(d.amount for d in till.all()) == [atomic("0.25"), atomic("5"), atomic("5")]
        assert {d.status for d in till.all()} == {"settled"}
        assert {d.transaction_hash for d in till.all()} == {hash}
        assert sorted(d.amount for d in other.all()) == [atomic("1"), atomic("2")]
        assert till.available == before + atomic("10.25")
        assert (till.left, other.left) == (0, 0)

    def test_a_deposit_on_a_chain_that_was_not_asked_for_counts_there(self, world: World) -> None:
        till = Till(world)
        usdt = asset_of(1, "USDT")
        ethereum = till.chain(1)
        hash = ethereum.transfer(usdt.address, None, till.address, atomic("3"), "mainnet")
        world.service.deposits.check(world.server, till.account.id, 1)
        world.run()
        assert (till.only.chain_id, till.only.asset_symbol) == (1, "USDT")
        assert till.only.deposit_address_id == till.row.id
        assert till.only.transaction_hash == hash
        world.advance(30)
        holdings = world.service.vaults.balances(world.server, till.account.id)
        [held] = [h for h in holdings if h.asset == usdt]
        assert (till.only.status, held.available_atomic) == ("settled", atomic("3"))
        later = world.service.deposits.address(world.server, till.account.id, 1)
        ethereum.transfer(usdt.address, None, till.address, atomic("1"), "later")
        world.service.deposits.check(world.server, till.account.id)
        assert till.all()[-1].deposit_address_id == later.address.id

    def test_an_account_without_a_vault_on_the_chain_is_swept_to_where_it_will_be(
        self, till: Till
    ) -> None:
        vault = till.world.vault_of()
        write(
            till.world.storage,
            till.world.environment_id,
            lambda tx: tx.delete(tx.get(Vault, vault.id, for_update=True)),
        )
        till.send("5.00")
        till.finish()
        assert till.story == [("settled", None)]
        assert till.world.on_chain(vault.address) == atomic("105")

    def test_many_deposits_are_swept_each_by_itself(self, till: Till) -> None:
        before = till.available
        for place in range(12):
            till.send(f"1.{place:02}")
        till.finish()
        assert Counter(deposit.status for deposit in till.all()) == {"settled": 12}
        assert till.available == before + atomic("12.66")
        assert till.world.sent() == 12
        assert len({deposit.sweep_id for deposit in till.all()}) == 12


class TestWhatIsNoDeposit:
    def test_nothing_of_nothing_of_unknown_tokens_or_of_what_failed(self, till: Till) -> None:
        till.send("0.00")
        till.send("5.00", token="0x00000000000000000000000000000000000DEAD0")
        till.send("5.00", reverts=True)
        till.send("5.00", source=STRANGER)
        till.send("5.00", to=STRANGER)
        till.send("5.00", to=till.world.vault_address())
        till.finish()
        assert till.all() == []
        told = [
            ScannedTransfer(
                "0x01",
                till.world.chain.heads().latest,
                log=view_of(till, till.send("5.00")).logs[0],
            )
        ]
        unknown = attrs.evolve(told[0].log, token_address=STRANGER)
        listener(till).found(BASE, [attrs.evolve(told[0], log=unknown)])
        assert till.all() == []

    def test_our_own_transfers_are_none(self, till: Till) -> None:
        world = till.world
        outgoing = Outgoing(
            id="out_own",
            chain_id=BASE,
            token_address=USDC.address,
            source=world.vault_address(),
            recipient=till.address,
            amount=Atomic(atomic("5")),
            created_at=world.clock.now(),
        )
        write(world.storage, world.environment_id, lambda tx: tx.insert(outgoing))
        outbox = Outbox(world.storage, world.service.ledger, world.service.chains)
        scope = Scope(world.environment_id, "sandbox")
        signed = outbox.signed(scope, BASE, outgoing.id)
        assert signed is not None
        outbox.broadcast(scope, signed, outgoing.id)
        till.finish()
        world.service.deposits.check(world.server, till.account.id)
        till.finish()
        assert till.left == atomic("5")
        assert till.all() == []

    def test_the_other_modes_scanner_makes_none(self, till: Till) -> None:
        till.send()
        view = view_of(till, till.send())
        assert view.block is not None
        found = [ScannedTransfer(view.hash, view.block, view.logs[0])]
        listener(till, "production").found(BASE, found)
        assert till.all() == []
        listener(till).found(BASE, found)
        before = till.only
        listener(till, "production").undone(BASE, 0, view.block.number)
        assert till.only == before
        listener(till).undone(BASE, 0, view.block.number)
        assert till.only.version == before.version + 1


class TestReorgs:
    def test_a_detected_one_is_taken_back_and_comes_again(self, till: Till) -> None:
        before = till.available
        hash = till.send("5.00", name="twice")
        till.scan()
        till.world.chain.reorg(2)
        till.finish()
        assert till.story == [("failed", REORGED)]
        assert till.told == ["detected", "failed"]
        assert till.available == before
        assert till.send("5.00", name="twice") == hash
        till.finish()
        assert till.told == ["detected", "failed", "detected", "confirmed", "settled"]
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
        assert till.told == STORY

    def test_one_that_comes_back_with_another_amount_counts_what_is_there(self, till: Till) -> None:
        before = till.available
        hash = till.send("5.00")
        till.scan()
        till.world.chain.reorg(1, reinclude=True)
        till.alter_log(hash, "4.00")
        till.finish()
        assert till.told == ["detected", "failed", "detected", "confirmed", "settled"]
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
        assert till.told == ["detected", "confirmed", "failed"]
        outgoing = till.world.get(Outgoing, str(confirmed.sweep_id))
        assert outgoing.status == "withdrawn"
        till.world.advance(60)
        assert till.world.sent() == 0
        till.send("5.00", name="late")
        till.finish()
        assert till.told[3:] == STORY
        assert till.available == before + atomic("5")

    def test_a_confirmed_one_that_is_only_moved_is_confirmed_anew(self, till: Till) -> None:
        before = till.available
        till.send("5.00")
        till.until_confirmed()
        till.world.chain.reorg(20, reinclude=True)
        till.scan()
        assert till.story == [("detected", None)]
        till.finish()
        till.world.advance(60)
        assert till.told == ["detected", "confirmed", "failed", *STORY]
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
        till.world.service.deposits.check(till.world.server, till.account.id)
        till.finish()
        assert till.story == [("settled", None)]
        assert till.available == before + atomic("5")

    def test_a_settled_one_stays_settled_and_alarms(
        self, till: Till, caplog: pytest.LogCaptureFixture
    ) -> None:
        till.send("5.00")
        till.finish()
        with caplog.at_level(logging.CRITICAL):
            till.world.chain.reorg(50)
            till.finish()
        assert till.story == [("settled", None)]
        assert till.told == STORY
        assert [record for record in caplog.records if "ALARM: deposit" in record.getMessage()]

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
        assert till.told == STORY

    def test_a_block_undone_beneath_a_deposit_that_is_still_there_changes_nothing(
        self, till: Till
    ) -> None:
        till.send("5.00")
        till.finish()
        before = till.only
        for _ in range(2):
            listener(till).undone(BASE, 0, before.block_number)
        till.finish()
        assert till.told == STORY
        assert not till.only.watched

    def test_what_is_found_again_during_a_look_is_looked_at_again(self, memory_till: Till) -> None:
        """The look saw it gone; it came back, and a scan told of that, before the look ended."""
        till, chain = memory_till, memory_till.world.chain
        till.send("5.00", name="flicker")
        till.scan()
        chain.reorg(1)

        def flicker(call: Any) -> Any:
            seen = call()
            assert seen is None
            till.send("5.00", name="flicker")
            till.world.service.deposits.check(till.world.server, till.account.id)
            return seen

        node = Node(chain, flicker)
        other = till.world.restarted(chains={BASE: node})
        other.worker("sandbox").run_due(1)
        till.world.system.advance(1)
        other.worker("sandbox").run_until_idle()
        assert node.asked > 0
        till.finish()
        assert till.told == STORY


def test_of_many_scans_at_once_one_makes_the_deposit(till: Till) -> None:
    view = view_of(till, till.send("5.00"))
    assert view.block is not None
    found = [ScannedTransfer(view.hash, view.block, view.logs[0])]
    outcomes = at_once([lambda: listener(till).found(BASE, found)] * 6)
    assert outcomes == [None] * 6
    till.finish()
    assert till.told == STORY


class Node(FaultyChain):
    """A node that answers the first question after a transaction in a way of its own."""

    def __init__(self, inner: Any, answer: Any) -> None:
        super().__init__(inner, 0, lambda call: call())
        self._answer = answer
        self.asked = 0

    def transaction(self, hash: str) -> TransactionView | None:
        self.asked += 1
        if self.asked > 1:
            return super().transaction(hash)
        seen: TransactionView | None = self._answer(lambda: self._inner.transaction(hash))
        return seen


class Fork(Node):
    """A node that is on a fork of its own when it is asked for the first time."""

    def block(self, number: int) -> Block | None:
        block = super().block(number)
        return attrs.evolve(block, hash="0xf0") if block and self.asked <= 1 else block


def view_of(till: Till, hash: str) -> TransactionView:
    view = till.world.chain.transaction(hash)
    assert view is not None
    return view


def listener(till: Till, mode: str = "sandbox") -> Arrivals:
    world = till.world
    return Arrivals(world.storage, world.service.ledger, world.clock, mode)


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
        assert till.told == ["detected"]
        till.world.advance(30)
        assert till.told == STORY

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
        assert till.told == ["detected", "failed", "detected", "confirmed", "settled"]
        assert till.available == before + atomic("5")

    def test_a_check_says_so_and_changes_nothing(self, till: Till) -> None:
        till.send()
        armed(till.world, "scan")
        with pytest.raises(DependencyFailed) as caught:
            till.world.service.deposits.check(till.world.server, till.account.id, BASE)
        assert caught.value.dependency == "chain"
        assert till.all() == []
        checked = till.world.service.deposits.check(till.world.server, till.account.id, BASE)
        assert [deposit.status for deposit in checked.deposits] == ["detected"]

    def test_one_silent_chain_hides_nothing_of_the_others(self, till: Till) -> None:
        till.send()
        Failures(till.world.storage, till.world.service.ledger).arm("chain", "heads", 1, 1)
        with pytest.raises(DependencyFailed):
            till.world.service.deposits.check(till.world.server, till.account.id)
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


class TestChecks:
    def test_a_check_finds_what_no_scan_has_told_of(self, till: Till) -> None:
        world = till.world
        world.service.worker("sandbox")
        till.send("5.00")
        checked = world.service.deposits.check(world.server, till.account.id)
        assert (checked.account_id, checked.checked_at) == (till.account.id, world.clock.now())
        [deposit] = checked.deposits
        assert (deposit.status, deposit.amount) == ("detected", atomic("5"))
        till.finish()
        again = world.service.deposits.check(world.server, till.account.id, BASE)
        assert [deposit.status for deposit in again.deposits] == ["settled"]
        assert till.told == STORY

    def test_it_shows_the_newest_fifty_first(self, memory_till: Till) -> None:
        till = memory_till
        for place in range(53):
            till.send(f"1.{place:02}")
            till.world.system.advance(1)
            till.world.service.deposits.check(till.world.server, till.account.id, BASE)
        checked = till.world.service.deposits.check(till.world.server, till.account.id, BASE)
        amounts = [deposit.amount for deposit in checked.deposits]
        assert amounts == [atomic(f"1.{place:02}") for place in range(52, 2, -1)]
        assert len(till.all()) == 53

    def test_a_failed_sweep_is_sent_again_and_the_funds_arrive_once(self, till: Till) -> None:
        world, before = till.world, till.available
        armed(world, "transfer")
        till.send("5.00")
        till.finish()
        assert till.story == [("failed", "transaction_failed")]
        assert till.told == ["detected", "confirmed", "failed"]
        assert (till.available, till.left) == (before, atomic("5"))
        failed = till.only
        till.scan()  # nothing but a check asks for it again
        assert till.only == failed
        checked = world.service.deposits.check(world.server, till.account.id)
        assert [deposit.status for deposit in checked.deposits] == ["confirmed"]
        assert checked.deposits[0].sweep_id != failed.sweep_id
        world.service.deposits.check(world.server, till.account.id)
        till.finish()
        assert till.told == ["detected", "confirmed", "failed", "confirmed", "settled"]
        assert (till.available, till.left) == (before + atomic("5"), 0)
        assert world.sent() == 2

    def test_checks_at_once_send_it_once(self, till: Till) -> None:
        world, before, server = till.world, till.available, till.world.server
        armed(world, "transfer", 2)
        till.send("5.00")
        till.send("6.00")
        till.finish()
        assert [status for status, _ in till.story] == ["failed", "failed"]
        outcomes = at_once(
            [lambda: world.service.deposits.check(server, till.account.id, BASE)] * 6
        )
        assert not [item for item in outcomes if isinstance(item, Exception)]
        till.finish()
        assert till.available == before + atomic("11")
        assert world.sent() == 4
        assert Counter(till.told)["confirmed"] == 4

    def test_a_failed_one_that_is_gone_is_not_sent_again(self, till: Till) -> None:
        armed(till.world, "transfer")
        till.send("5.00")
        till.send("6.00")
        till.finish()
        before = [status for status, _ in till.story]
        assert sorted(before) == ["failed", "settled"]
        till.world.chain.reorg(50)
        till.world.service.deposits.check(till.world.server, till.account.id)
        assert [status for status, _ in till.story] == before

    def test_a_check_that_is_repeated_is_answered_as_it_was(self, till: Till) -> None:
        server, key = till.world.server, once("check")

        def check() -> Any:
            return till.world.service.deposits.check(server, till.account.id, idempotent=key)

        first = check()
        assert first.deposits == ()
        till.send("5.00")
        again = answer_of(check)
        assert again is not None
        assert till.all() == []

    def test_an_account_without_addresses_has_nothing_to_look_for(self, world: World) -> None:
        armed(world, "any")
        checked = world.service.deposits.check(world.server, world.merchant.id)
        assert checked.deposits == ()
        with pytest.raises(UnsupportedChain):
            world.service.deposits.check(world.server, world.merchant.id, 2)

    def test_a_silent_chain_during_a_retry_leaves_all_as_it_was(self, till: Till) -> None:
        armed(till.world, "transfer")
        till.send("5.00")
        till.finish()
        failed = till.only
        armed(till.world, "transaction")
        with pytest.raises(DependencyFailed) as caught:
            till.world.service.deposits.check(till.world.server, till.account.id, BASE)
        assert isinstance(caught.value.__cause__, ChainUnavailable)
        assert till.only == failed


def test_deposits_are_listed_newest_first_and_by_status(till: Till) -> None:
    armed(till.world, "transfer")
    for amount in ("1.00", "2.00", "3.00"):
        till.send(amount)
        till.scan()
        till.world.system.advance(1)
    till.finish()
    till.send("4.00")
    till.scan()
    deposits, server = till.world.service.deposits, till.world.server
    first = deposits.deposits(server, till.account.id, limit=3)
    rest = deposits.deposits(server, till.account.id, limit=3, after=first.next)
    amounts = [deposit.amount for deposit in (*first.records, *rest.records)]
    assert amounts == [atomic(text) for text in ("4", "3", "2", "1")]
    for status, expected in (("failed", 1), ("settled", 2), ("detected", 1), ("confirmed", 0)):
        found, after = 0, None
        while True:
            page = deposits.deposits(server, till.account.id, status=status, after=after)  # type: ignore[arg-type]
            found += len(page.records)
            after = page.next
            if after is None:
                break
        assert found == expected
