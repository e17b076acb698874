"""Deposit addresses and deposits: found, final, swept into the vault, and each counted once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from payments_core.accounts.vaults.record import Vault
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
from tests.service.deposit_harness import (
    OUTSIDE,
    POLYGON,
    STORY,
    DepositHarness,
    listener,
    scanned,
    view_of,
)
from tests.service.payments.test_concurrency import at_once
from tests.service.world import BASE, STRANGER, USDC, World, answer_of, atomic, once, write
from tests.shipped import CHAINS, asset_of


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
        harness = DepositHarness(world)
        world.resources.accounts.change(world.payer.id, status=status)
        with pytest.raises(AccountSuspended):
            world.resources.deposits.issue_address(world.payer.id, POLYGON)
        kept = world.resources.deposits.issue_address(world.payer.id, BASE)
        assert kept.address.id == harness.row.id
        harness.send("5.00")
        harness.finish()
        assert harness.story == [("settled", None)]

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

    def test_another_environments_account_is_not_found(self, harness: DepositHarness) -> None:
        world = harness.world
        harness.send()
        harness.finish()
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
    def test_a_deposit_is_seen_then_final_then_in_the_vault(self, harness: DepositHarness) -> None:
        before = harness.available
        hash = harness.send("5.00")
        harness.scan()
        assert harness.story == [("detected", None)]
        assert harness.available == before
        harness.finish()
        deposit = harness.only
        assert deposit.status == "settled"
        assert (deposit.amount_atomic, deposit.sender) == (atomic("5"), OUTSIDE)
        assert deposit.deposit_address_id == harness.row.id
        assert deposit.transaction_hash == hash
        assert deposit.created_at_ms <= deposit.confirmed_at_ms <= deposit.settled_at_ms
        assert harness.available == before + atomic("5")
        assert harness.left == 0

    def test_each_step_is_reported_once_with_what_a_partner_needs(
        self, harness: DepositHarness
    ) -> None:
        hash = harness.send("5.00")
        harness.finish()
        harness.scan()
        assert harness.reported_events == STORY
        assert [event.payload["status"] for event in harness.events()] == STORY
        settled = harness.events()[-1]
        assert settled.payload == {
            "accountId": harness.account.id,
            "depositId": harness.only.id,
            "status": "settled",
            "statusVersion": 3,
            "chainId": BASE,
            "assetSymbol": "USDC",
            "amountAtomic": "5000000",
            "transactionHash": hash,
        }
        assert settled.account_id == harness.account.id
        assert settled.external_user_id == harness.account.external_user_id

    def test_short_of_finality_nothing_moves(self, harness: DepositHarness) -> None:
        harness.send()
        for _ in range(5):
            harness.scan()
        assert harness.reported_events == ["detected"]
        assert harness.world.sent() == 0

    def test_every_log_of_a_transaction_is_a_deposit_of_its_own(
        self, harness: DepositHarness
    ) -> None:
        other = DepositHarness(harness.world, harness.world.merchant)
        before = harness.available
        hash = harness.send("5.00")
        harness.add_log(hash, "0.25")
        harness.add_log(hash, "5.00")
        harness.world.chain.mint(USDC.address, other.address, atomic("1"), "first")
        harness.add_log(hash, "2.00", to=other.address)
        harness.finish()
        assert sorted(d.amount_atomic for d in harness.all()) == [
            atomic("0.25"),
            atomic("5"),
            atomic("5"),
        ]
        assert {d.status for d in harness.all()} == {"settled"}
        assert {d.transaction_hash for d in harness.all()} == {hash}
        assert sorted(d.amount_atomic for d in other.all()) == [atomic("1"), atomic("2")]
        assert harness.available == before + atomic("10.25")
        assert (harness.left, other.left) == (0, 0)

    def test_a_deposit_on_a_chain_that_was_not_asked_for_counts_there(self, world: World) -> None:
        harness = DepositHarness(world)
        usdt = asset_of(1, "USDT")
        ethereum = harness.chain(1)
        hash = ethereum.transfer(usdt.address, None, harness.address, atomic("3"), "mainnet")
        world.resources.deposits.check(harness.account.id, 1)
        world.run()
        assert (harness.only.chain_id, harness.only.asset_symbol) == (1, "USDT")
        assert harness.only.deposit_address_id == harness.row.id
        assert harness.only.transaction_hash == hash
        world.advance(30)
        holdings = world.resources.accounts.read_balances(harness.account.id)
        [held] = [h for h in holdings if h.asset == usdt]
        assert (harness.only.status, held.available_atomic) == ("settled", atomic("3"))
        later = world.resources.deposits.issue_address(harness.account.id, 1)
        ethereum.transfer(usdt.address, None, harness.address, atomic("1"), "later")
        world.resources.deposits.check(harness.account.id)
        assert harness.all()[-1].deposit_address_id == later.address.id

    def test_an_account_without_a_vault_on_the_chain_is_swept_to_where_it_will_be(
        self, harness: DepositHarness
    ) -> None:
        vault = harness.world.vault_of()
        write(
            harness.world.storage,
            harness.world.environment_id,
            lambda tx: tx.delete(tx.get(Vault, vault.id, for_update=True)),
        )
        harness.send("5.00")
        harness.finish()
        assert harness.story == [("settled", None)]
        assert harness.world.on_chain(vault.address) == atomic("105")

    def test_many_deposits_are_swept_each_by_itself(self, harness: DepositHarness) -> None:
        before = harness.available
        for place in range(12):
            harness.send(f"1.{place:02}")
        harness.finish()
        assert Counter(deposit.status for deposit in harness.all()) == {"settled": 12}
        assert harness.available == before + atomic("12.66")
        assert harness.world.sent() == 12
        assert len({deposit.sweep_id for deposit in harness.all()}) == 12


class TestWhatIsNoDeposit:
    def test_nothing_of_nothing_of_unknown_tokens_or_of_what_failed(
        self, harness: DepositHarness
    ) -> None:
        harness.send("0.00")
        harness.send("5.00", token="0x00000000000000000000000000000000000DEAD0")
        harness.send("5.00", reverts=True)
        harness.send("5.00", source=STRANGER)
        harness.send("5.00", to=STRANGER)
        harness.send("5.00", to=harness.world.vault_address())
        harness.finish()
        assert harness.all() == []
        other_token = harness.send("5.00", token="0x00000000000000000000000000000000000DEAD0")
        listener(harness).on_transfers(BASE, [scanned(view_of(harness, other_token))])
        assert harness.all() == []

    def test_our_own_transfers_are_not_deposits(self, harness: DepositHarness) -> None:
        world = harness.world
        outgoing = OutboundTransfer(
            id="out_own",
            purpose="release",
            owner_id="payment_own",
            chain_id=BASE,
            token_address=USDC.address,
            source=Contract("vault", world.payer.id, world.vault_address()),
            recipient=harness.address,
            amount_atomic=Atomic(atomic("5")),
            created_at_ms=world.clock.now(),
        )
        write(world.storage, world.environment_id, lambda tx: tx.insert(outgoing))
        outbox = Outbox(world.service.parts.ports, world.service.chains)
        authority = WorkerAuthority(world.environment_id, "sandbox")
        signed = outbox.ensure_signed(authority, BASE, outgoing.id)
        assert signed is not None
        outbox.broadcast(authority, outgoing.id)
        harness.finish()
        world.resources.deposits.check(harness.account.id)
        harness.finish()
        assert harness.left == atomic("5")
        assert harness.all() == []

    def test_the_other_modes_scanner_makes_none(self, harness: DepositHarness) -> None:
        harness.send()
        view = view_of(harness, harness.send())
        assert view.block is not None
        found = [scanned(view)]
        listener(harness, "production").on_transfers(BASE, found)
        assert harness.all() == []
        listener(harness).on_transfers(BASE, found)
        before = harness.only
        listener(harness, "production").on_reorg(BASE, 0, view.block.number)
        assert harness.only == before
        listener(harness).on_reorg(BASE, 0, view.block.number)
        assert harness.only.version == before.version + 1


def test_of_many_scans_at_once_one_makes_the_deposit(harness: DepositHarness) -> None:
    view = view_of(harness, harness.send("5.00"))
    assert view.block is not None
    found = [scanned(view)]
    outcomes = at_once([lambda: listener(harness).on_transfers(BASE, found)] * 6)
    assert outcomes == [None] * 6
    harness.finish()
    assert harness.reported_events == STORY
