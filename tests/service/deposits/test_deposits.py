"""Deposit addresses and deposits: found, final, swept into the vault, and each counted once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from payments_core.accounts.vaults.record import Vault
from payments_core.assets import CHAINS, asset_of
from payments_core.chains.outbox.outbox import Outbox
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.port import Contract
from payments_core.engine.decision import WorkerAuthority
from payments_core.errors import (
    AccountSuspended,
    NotFound,
    UnsupportedChain,
)
from payments_core.money import Atomic
from tests.service.payments.test_concurrency import at_once
from tests.service.till import OUTSIDE, POLYGON, STORY, Till, listener, scanned, view_of
from tests.service.world import BASE, STRANGER, USDC, World, answer_of, atomic, once, write


class TestAddresses:
    def test_an_account_has_one_address_whatever_is_asked_for_it(self, world: World) -> None:
        server = world.server
        first = world.service.acting_as(server).deposits.issue_address(world.payer.id, BASE)
        again = world.service.acting_as(server).deposits.issue_address(world.payer.id, BASE)
        assert (first.is_new, again.is_new) == (True, False)
        assert again.address.id == first.address.id
        others = [
            world.service.acting_as(server).deposits.issue_address(world.payer.id, chain_id)
            for chain_id in CHAINS
        ]
        assert {other.address.address for other in others} == {first.address.address}
        assert len({other.address.id for other in others}) == len(CHAINS)
        assert first.address.chain_type == "evm"
        assert first.address.address != world.vault_address()
        theirs = world.service.acting_as(server).deposits.issue_address(world.merchant.id, BASE)
        assert theirs.address.address != first.address.address

    def test_of_many_at_once_one_makes_it(self, world: World) -> None:
        server = world.server
        calls = [
            lambda: world.service.acting_as(server).deposits.issue_address(world.payer.id, BASE)
        ] * 8
        issued = at_once(calls)
        assert Counter(item.is_new for item in issued) == {True: 1, False: 7}
        assert len({item.address.id for item in issued}) == 1
        page = world.service.acting_as(server).deposits.list_addresses(world.payer.id)
        assert len(page.records) == 1

    def test_addresses_are_listed_page_by_page(self, world: World) -> None:
        server = world.server
        made = []
        for chain_id in CHAINS:
            made.append(
                world.service.acting_as(server)
                .deposits.issue_address(world.payer.id, chain_id)
                .address.id
            )
            world.system.advance(1)
        first = world.service.acting_as(server).deposits.list_addresses(world.payer.id, limit=3)
        rest = world.service.acting_as(server).deposits.list_addresses(
            world.payer.id, limit=3, after=first.next
        )
        assert [row.id for row in (*first.records, *rest.records)] == made

    @pytest.mark.parametrize("status", ["suspended", "closed"])
    def test_an_account_that_may_not_act_keeps_what_it_has_and_gets_no_more(
        self, world: World, status: Any
    ) -> None:
        till = Till(world)
        world.resources.accounts.change(world.payer.id, status=status)
        with pytest.raises(AccountSuspended):
            world.resources.deposits.issue_address(world.payer.id, POLYGON)
        kept = world.resources.deposits.issue_address(world.payer.id, BASE)
        assert kept.address.id == till.row.id
        till.send("5.00")
        till.finish()
        assert till.story == [("settled", None)]

    def test_a_chain_that_is_not_served_has_no_address(self, memory_world: World) -> None:
        with pytest.raises(UnsupportedChain):
            memory_world.resources.deposits.issue_address(memory_world.payer.id, 2)

    def test_a_request_that_is_repeated_is_answered_as_it_was(self, world: World) -> None:
        server, key = world.server, once("issue")
        world.service.acting_as(server).deposits.issue_address(
            world.payer.id, BASE, idempotency_key=key
        )
        again = answer_of(
            lambda: world.service.acting_as(server).deposits.issue_address(
                world.payer.id, BASE, idempotency_key=key
            )
        )
        assert again is not None
        assert (
            len(world.service.acting_as(server).deposits.list_addresses(world.payer.id).records)
            == 1
        )

    def test_another_environments_account_is_not_found(self, till: Till) -> None:
        world = till.world
        till.send()
        till.finish()
        stranger = world.service.tenants.system_authority(world.app.environments["production"])
        deposits, account = world.service.acting_as(stranger).deposits, world.payer.id
        for call in (
            lambda: deposits.issue_address(account, BASE),
            lambda: deposits.list_addresses(account),
            lambda: deposits.list(account),
            lambda: deposits.check(account),
            lambda: deposits.check("acct_none"),
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

    def test_each_step_is_reported_once_with_what_a_partner_needs(self, till: Till) -> None:
        hash = till.send("5.00")
        till.finish()
        till.scan()
        assert till.reported_events == STORY
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
        assert till.reported_events == ["detected"]
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
        world.resources.deposits.check(till.account.id, 1)
        world.run()
        assert (till.only.chain_id, till.only.asset_symbol) == (1, "USDT")
        assert till.only.deposit_address_id == till.row.id
        assert till.only.transaction_hash == hash
        world.advance(30)
        holdings = world.resources.accounts.read_balances(till.account.id)
        [held] = [h for h in holdings if h.asset == usdt]
        assert (till.only.status, held.available_atomic) == ("settled", atomic("3"))
        later = world.resources.deposits.issue_address(till.account.id, 1)
        ethereum.transfer(usdt.address, None, till.address, atomic("1"), "later")
        world.resources.deposits.check(till.account.id)
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
        other_token = till.send("5.00", token="0x00000000000000000000000000000000000DEAD0")
        listener(till).on_transfers(BASE, [scanned(view_of(till, other_token))])
        assert till.all() == []

    def test_our_own_transfers_are_not_deposits(self, till: Till) -> None:
        world = till.world
        outgoing = OutboundTransfer(
            id="out_own",
            purpose="release",
            owner_id="payment_own",
            chain_id=BASE,
            token_address=USDC.address,
            source=Contract("vault", world.payer.id, world.vault_address()),
            recipient=till.address,
            amount=Atomic(atomic("5")),
            created_at=world.clock.now(),
        )
        write(world.storage, world.environment_id, lambda tx: tx.insert(outgoing))
        outbox = Outbox(world.service.parts.ports, world.service.chains)
        authority = WorkerAuthority(world.environment_id, "sandbox")
        signed = outbox.ensure_signed(authority, BASE, outgoing.id)
        assert signed is not None
        outbox.broadcast(authority, outgoing.id)
        till.finish()
        world.resources.deposits.check(till.account.id)
        till.finish()
        assert till.left == atomic("5")
        assert till.all() == []

    def test_the_other_modes_scanner_makes_none(self, till: Till) -> None:
        till.send()
        view = view_of(till, till.send())
        assert view.block is not None
        found = [scanned(view)]
        listener(till, "production").on_transfers(BASE, found)
        assert till.all() == []
        listener(till).on_transfers(BASE, found)
        before = till.only
        listener(till, "production").on_reorg(BASE, 0, view.block.number)
        assert till.only == before
        listener(till).on_reorg(BASE, 0, view.block.number)
        assert till.only.version == before.version + 1


def test_of_many_scans_at_once_one_makes_the_deposit(till: Till) -> None:
    view = view_of(till, till.send("5.00"))
    assert view.block is not None
    found = [scanned(view)]
    outcomes = at_once([lambda: listener(till).on_transfers(BASE, found)] * 6)
    assert outcomes == [None] * 6
    till.finish()
    assert till.reported_events == STORY
