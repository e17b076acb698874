"""The sandbox's operations: strangers' transfers, reorgs, ordered failures, events on order."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.chains.port import AddressSpec, ChainUnavailable
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import DAY
from payments_core.engine.events import BY_NAME, CATALOGUE
from payments_core.engine.identifiers import is_identifier
from payments_core.engine.ports import Ports
from payments_core.errors import (
    IdempotencyConflict,
    NotFound,
    Unavailable,
    UnsupportedAsset,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.payments.destinations import ToAccount
from payments_core.payments.sends import NewSend
from payments_core.sandbox.operations import Sandbox
from tests.service.faults import FaultyStorage, storage_away
from tests.service.world import BASE, USDC, World, answer_of, atomic, once

WALLET = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
OTHER = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"


def give(world: World, amount: str = "7.00", **more: Any) -> Any:
    sandbox = more.pop("sandbox", None) or world.service.sandbox()
    more.setdefault("recipient", WALLET)
    return sandbox.transfer(world.server, BASE, "USDC", amount, **more)


def dying(world: World) -> Sandbox:
    """A process that does what it is asked on the chain, and cannot store its answer."""
    storage = FaultyStorage(world.storage, 2, storage_away, ("transact",))
    service = world.service
    ports = Ports.over(storage, service.parts.ports.key_ring, world.clock)
    chain = SimulatedChain(BASE, ports)
    return Sandbox(ports, {BASE: chain}, service.worker("sandbox"))


class TestTransfers:
    def test_a_stranger_pays_any_address_from_nothing(self, world: World) -> None:
        done = give(world)
        assert done.transaction.succeeded
        assert done.transaction.block == world.chain.heads().latest
        assert done.transaction.logs[0].recipient == done.recipient == WALLET
        assert world.on_chain(WALLET) == atomic("7.00")

    def test_a_wallet_pays_from_what_it_has(self, world: World) -> None:
        give(world)
        assert give(world, "5.00", source=WALLET, recipient=OTHER).transaction.succeeded
        assert not give(world, "5.00", source=WALLET, recipient=OTHER).transaction.succeeded
        assert (world.on_chain(WALLET), world.on_chain(OTHER)) == (2_000_000, 5_000_000)

    def test_a_transfer_can_be_made_to_revert(self, world: World) -> None:
        done = give(world, reverts=True)
        assert (done.transaction.succeeded, done.transaction.logs) == (False, ())
        assert world.on_chain(WALLET) == 0

    @pytest.mark.parametrize("kind", ["vault", "escrow", "deposit", "operator"])
    def test_no_operation_moves_what_the_service_moves(self, world: World, kind: Any) -> None:
        owner = {"vault": world.payer.id, "escrow": world.payment().payment.id}.get(kind, kind)
        ours = world.chain.derive(AddressSpec(world.environment_id, kind, owner))
        with pytest.raises(ValidationFailed) as refused:
            give(world, source=ours)
        assert [fault.path for fault in refused.value.fields] == ["from"]
        assert give(world, recipient=ours).transaction.succeeded

    def test_every_fault_of_the_addresses_is_named(self, world: World) -> None:
        with pytest.raises(ValidationFailed) as refused:
            give(world, recipient="0x12", source="x")
        assert [fault.path for fault in refused.value.fields] == ["to", "from"]
        with pytest.raises(ValidationFailed) as refused:
            give(world, amount="1.0000001")
        assert [fault.path for fault in refused.value.fields] == ["amount"]

    def test_what_is_not_served_is_refused(self, world: World) -> None:
        sandbox = world.service.sandbox()
        with pytest.raises(UnsupportedChain):
            sandbox.transfer(world.server, 5, "USDC", "1", recipient=WALLET)
        with pytest.raises(UnsupportedAsset):
            sandbox.transfer(world.server, BASE, "EURC", "1", recipient=WALLET)
        with pytest.raises(UnsupportedChain):
            sandbox.reorg(world.server, 5, 1)
        with pytest.raises(ValidationFailed):
            sandbox.reorg(world.server, BASE, 51)

    def test_a_key_makes_one_transfer_also_if_the_answer_was_never_stored(
        self, world: World
    ) -> None:
        give(world, idempotency_key=once("key-1"))
        assert answer_of(lambda: give(world, idempotency_key=once("key-1"))) is not None
        with pytest.raises(IdempotencyConflict):
            give(world, idempotency_key=once("key-1", "other"))
        with pytest.raises(Unavailable):
            give(world, sandbox=dying(world), idempotency_key=once("key-2"))
        give(world, idempotency_key=once("key-2"))
        assert world.on_chain(WALLET) == atomic("14.00")


class TestReorgs:
    def test_a_reorg_takes_a_transfer_away_and_a_key_makes_one_reorg(self, world: World) -> None:
        sandbox = world.service.sandbox()
        give(world)
        give(world)
        with pytest.raises(Unavailable):
            dying(world).reorg(world.server, BASE, 1, idempotency_key=once("key"))
        heads = sandbox.reorg(world.server, BASE, 1, idempotency_key=once("key"))
        assert heads == world.chain.heads()
        assert answer_of(lambda: sandbox.reorg(world.server, BASE, 1, idempotency_key=once("key")))
        assert world.on_chain(WALLET) == atomic("7.00")

    def test_a_reorg_may_put_everything_back(self, world: World) -> None:
        done = give(world)
        world.service.sandbox().reorg(world.server, BASE, 1, reinclude=True)
        again = world.chain.transaction(done.transaction_hash)
        assert again is not None
        assert again.block != done.transaction.block
        assert world.on_chain(WALLET) == atomic("7.00")


class TestWaking:
    def test_the_scanner_of_a_chain_is_woken_when_something_happens_there(
        self, world: World
    ) -> None:
        woken: list[int] = []
        service = world.service
        sandbox = Sandbox(
            service.parts.ports,
            {BASE: world.chain},
            service.worker("sandbox"),
            woken.append,
        )
        sandbox.fund(world.server, world.payer.id, BASE, "USDC", "1")
        give(world, sandbox=sandbox)
        sandbox.reorg(world.server, BASE, 1)
        sandbox.mine(world.server, BASE, 1)
        assert woken == [BASE] * 4
        sandbox.fail(world.server, "chain", "any", 1)
        sandbox.trigger(world.server, "webhook.test")
        assert len(woken) == 4

    def test_triggered_news_of_an_endpoint_reaches_the_only_one(self, world: World) -> None:
        service = world.service
        endpoint, _ = service.acting_as(world.server).webhooks.create(
            url="https://shop.example/hooks"
        )
        for name in ("webhook.failing", "webhook.test"):
            service.sandbox().trigger(world.server, name)
        world.run()
        _, page = service.acting_as(world.server).webhooks.list_deliveries(endpoint.id)
        reported = {one.event_name: one.event_id for one in page.records}
        assert {"webhook.failing", "webhook.test"} <= set(reported)
        event = service.acting_as(world.server).events.read(reported["webhook.failing"])
        assert event.payload["webhookId"] != endpoint.id


class TestFailures:
    def test_an_ordered_failure_is_shown_until_it_has_happened(self, world: World) -> None:
        sandbox = world.service.sandbox()
        sandbox.fail(world.server, "chain", "heads", 2, chain_id=BASE)
        assert [(item.operation, item.times) for item in sandbox.list_failures()] == [("heads", 2)]
        assert (
            sandbox.list_heads()[BASE] == world.chain.peek_heads()
        )  # the sandbox's own look spends none
        for _ in range(2):
            with pytest.raises(ChainUnavailable):
                world.chain.heads()
        assert sandbox.list_failures() == ()

    @pytest.mark.parametrize("operation", ["broadcast", "lost_answer", "transaction", "any"])
    def test_a_payment_goes_through_a_chain_that_fails_for_a_while(
        self, world: World, operation: str
    ) -> None:
        option = world.authorized()
        world.service.sandbox().fail(world.server, "chain", operation, 3)
        for _ in range(4):
            world.finish()
        assert world.paid(option.payment.id).status == "succeeded"
        assert world.sent() == 2
        assert world.service.sandbox().list_failures() == ()

    def test_a_transfer_that_is_made_to_fail_gives_the_reservation_back(self, world: World) -> None:
        option = world.authorized()
        world.service.sandbox().fail(world.server, "chain", "transfer", 1)
        world.finish()
        assert world.operation_now(option).status == "failed"
        assert world.held() == (atomic("100"), 0, atomic("100"))

    def test_what_cannot_be_made_to_fail_is_refused(self, world: World) -> None:
        sandbox = world.service.sandbox()
        for wrong in (
            ("moon", "any", 1, None),
            ("chain", "prepare", 1, None),
            ("kyc", "heads", 1, None),
            ("router", "broadcast", 1, None),
            ("chain", "any", 0, None),
            ("chain", "any", 101, None),
            ("kyc", "any", 1, BASE),
        ):
            dependency, operation, times, chain_id = wrong
            with pytest.raises(ValidationFailed):
                sandbox.fail(world.server, dependency, operation, times, chain_id=chain_id)  # type: ignore[arg-type]
        with pytest.raises(UnsupportedChain):
            sandbox.fail(world.server, "chain", "any", 1, chain_id=5)
        assert sandbox.list_failures() == ()


class TestEvents:
    @pytest.mark.parametrize("name", [event.name for event in CATALOGUE])
    @pytest.mark.parametrize("populated", [True, False])
    def test_every_event_of_the_catalog_can_be_ordered(
        self, memory_world: World, name: str, populated: bool
    ) -> None:
        world = memory_world
        if populated:
            world.authorized()
        before = len(world.events())
        done = world.service.sandbox().trigger(world.server, name)
        events = world.events()
        assert len(events) == before + 1
        [event] = [event for event in events if event.id == done.event_id]
        assert (event.name, event.payload) == (name, done.payload)
        assert list(event.payload) == list(BY_NAME[name].fields)
        for field, value in event.payload.items():
            if field == "externalUserId":
                assert value in ("merchant", "payer")
            elif field.endswith("Id") and field != "chainId":
                assert is_identifier(value, value.rpartition("_")[0]) or len(value) > 24
            elif field.endswith("Atomic"):
                assert value.isdigit()
        world.finish()  # it is delivered to nobody here, and harms nothing

    def test_an_event_is_about_what_is_named(self, world: World) -> None:
        sandbox = world.service.sandbox()
        option = world.authorized("8.00")
        world.payment("9.00")
        named = {"payment_id": option.payment.id}
        paid = sandbox.trigger(world.server, "payment.succeeded", **named).payload
        assert paid["paymentId"] == option.payment.id
        assert paid["accountId"] == world.merchant.id
        assert paid["status"] == "succeeded"
        assert paid["settledAmountAtomic"] == paid["amountAtomic"] == str(atomic("8.00"))
        sent = sandbox.trigger(world.server, "vault_funding.broadcast", **named).payload
        assert sent["fundingOperationId"] == option.operation.id
        assert sent["optionId"] == option.option.id
        assert sent["status"] == "broadcast"
        account = sandbox.trigger(world.server, "account.updated", account_id=world.payer.id)
        assert account.payload == {
            "accountId": world.payer.id, "externalUserId": "payer", "status": "active",
        }  # fmt: skip

    def test_without_a_name_it_is_about_the_newest(self, world: World) -> None:
        world.payment("8.00")
        world.advance(1)
        newest = world.payment("9.00")
        done = world.service.sandbox().trigger(world.server, "payment.created")
        assert done.payload["paymentId"] == newest.payment.id

    def test_an_event_is_about_a_payment_that_can_have_it(self, world: World) -> None:
        sandbox = world.service.sandbox()
        received = world.payment("8.00").payment
        world.advance(1)
        to = ToAccount(account_id=world.merchant.id)
        new = NewSend(amount="9.00", account_id=world.payer.id, destination=to)
        sent = world.resources.payments.send(new).payment
        created = sandbox.trigger(world.server, "payment.created").payload
        assert (created["paymentId"], created["status"]) == (sent.id, "processing")
        for name in (
            "dispute.flagged", "refund.created", "vault_funding.failed", "payment.overpaid",
        ):  # fmt: skip
            reported = sandbox.trigger(world.server, name).payload
            assert reported["paymentId"] == received.id
            with pytest.raises(ValidationFailed, match="is a send"):
                sandbox.trigger(world.server, name, payment_id=sent.id)
            of_payer = sandbox.trigger(world.server, name, account_id=world.payer.id).payload
            assert of_payer["paymentId"] not in (received.id, sent.id)  # made up: it has none
        reported = sandbox.trigger(world.server, "dispute.flagged").payload
        session = world.resources.sessions.read(str(reported["sessionId"]))
        assert session.payment.id == received.id

    @pytest.mark.parametrize(
        ("name", "status", "status_version"),
        [
            ("refund.created", "created", 1),
            ("refund.succeeded", "succeeded", 3),
            ("vault_funding.authorized", "authorized", 2),
            ("vault_funding.confirmed", "confirmed", 4),
            ("deposit.detected", "detected", 1),
            ("deposit.settled", "settled", 3),
        ],
    )
    def test_statuses_and_versions_are_those_of_real_events(
        self, memory_world: World, name: str, status: str, status_version: int
    ) -> None:
        reported = memory_world.service.sandbox().trigger(memory_world.server, name).payload
        assert (reported["status"], reported["statusVersion"]) == (status, status_version)

    def test_an_order_changes_nothing_but_the_outbox(self, world: World) -> None:
        option = world.authorized()
        before = world.paid(option.payment.id), world.operation_now(option)
        for name in ("payment.failed", "vault_funding.failed"):
            world.service.sandbox().trigger(world.server, name, payment_id=option.payment.id)
        assert (world.paid(option.payment.id), world.operation_now(option)) == before

    def test_what_does_not_exist_is_refused(self, world: World) -> None:
        sandbox = world.service.sandbox()
        absent = "payment_" + "A" * 24
        with pytest.raises(ValidationFailed):
            sandbox.trigger(world.server, "payment.nonsense")
        with pytest.raises(ValidationFailed):
            sandbox.trigger(world.server, "account.created", payment_id=world.payment().payment.id)
        with pytest.raises(NotFound):
            sandbox.trigger(world.server, "payment.created", payment_id=absent)
        with pytest.raises(NotFound):
            sandbox.trigger(world.server, "account.created", account_id="acct_" + "A" * 24)

    def test_a_key_orders_one_event(self, world: World) -> None:
        def order() -> Any:
            return world.service.sandbox().trigger(
                world.server, "webhook.test", idempotency_key=once("key")
            )

        order()
        assert answer_of(order) is not None
        assert world.event_names()["webhook.test"] == 1


def test_a_second_app_closes_every_operation(memory_world: World) -> None:
    world = memory_world
    sandbox = world.service.sandbox()
    world.service.tenants.create_app("Other", "other")
    for api in (
        lambda: give(world),
        lambda: sandbox.reorg(world.server, BASE, 1),
        lambda: sandbox.fail(world.server, "chain", "any", 1),
        lambda: sandbox.trigger(world.server, "webhook.test"),
        sandbox.list_failures,
        sandbox.require_single_app,
    ):
        with pytest.raises(NotFound):
            api()


def test_a_reorg_under_a_clock_that_is_far_ahead_leaves_the_heads_where_they_are(
    memory_world: World,
) -> None:
    world = memory_world
    world.clock.advance_to(world.clock.now() + 3 * DAY)
    before = world.chain.heads().latest.number
    assert world.service.sandbox().reorg(world.server, BASE, 50).latest.number == before
    assert world.chain.scan([USDC.address], None, 0, before)  # what was funded days ago
