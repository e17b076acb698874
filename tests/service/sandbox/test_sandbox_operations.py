"""The sandbox's operations: strangers' transfers, reorgs, ordered failures, events on order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from payments_core.chains.port import AddressSpec, ChainUnavailable
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import DAY
from payments_core.engine.events import BY_NAME, CATALOGUE
from payments_core.engine.identifiers import is_identifier
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
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
from payments_core.resources import Resources
from payments_core.sandbox.operations import Sandbox
from payments_core.service import PaymentsService
from tests.service.faults import FaultyStorage, storage_away
from tests.service.world import BASE, USDC, World, answer_of, atomic, once

WALLET = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
OTHER = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"


def give(world: World, amount: str = "7.00", **more: Any) -> Any:
    more.setdefault("to", WALLET)
    return world.resources.sandbox.transfer(BASE, "USDC", amount, **more)


def dying(world: World) -> Sandbox:
    """A process that does what it is asked on the chain, and cannot store its answer."""
    storage = FaultyStorage(world.storage, 2, storage_away, ("transact",))
    service = world.service
    ports = Ports.over(storage, service.parts.ports.key_ring, world.clock)
    chain = SimulatedChain(BASE, ports)
    worker, verifications = service.worker("sandbox"), service.parts.verifications
    return Sandbox(ports, {BASE: chain}, worker, verifications, RemoteCalls(1), testnets={})


class TestTransfers:
    def test_a_stranger_pays_any_address_from_nothing(self, world: World) -> None:
        done = give(world)
        assert done.transaction.succeeded
        assert done.transaction.block == world.chain.heads().latest
        assert done.transaction.logs[0].recipient == done.recipient == WALLET
        assert world.on_chain(WALLET) == atomic("7.00")

    def test_a_wallet_pays_from_what_it_has(self, world: World) -> None:
        give(world)
        assert give(world, "5.00", from_=WALLET, to=OTHER).transaction.succeeded
        assert not give(world, "5.00", from_=WALLET, to=OTHER).transaction.succeeded
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
            give(world, from_=ours)
        assert [fault.path for fault in refused.value.fields] == ["from"]
        assert give(world, to=ours).transaction.succeeded

    def test_every_fault_of_the_addresses_is_named(self, world: World) -> None:
        with pytest.raises(ValidationFailed) as refused:
            give(world, to="0x12", from_="x")
        assert [fault.path for fault in refused.value.fields] == ["to", "from"]
        with pytest.raises(ValidationFailed) as refused:
            give(world, amount="1.0000001")
        assert [fault.path for fault in refused.value.fields] == ["amount"]

    def test_what_is_not_served_is_refused(self, world: World) -> None:
        sandbox = world.resources.sandbox
        with pytest.raises(UnsupportedChain):
            sandbox.transfer(5, "USDC", "1", to=WALLET)
        with pytest.raises(UnsupportedAsset):
            sandbox.transfer(BASE, "EURC", "1", to=WALLET)
        with pytest.raises(UnsupportedChain):
            sandbox.reorg_chain(5, 1)
        with pytest.raises(ValidationFailed):
            sandbox.reorg_chain(BASE, 51)

    def test_a_key_makes_one_transfer_also_if_the_answer_was_never_stored(
        self, world: World
    ) -> None:
        give(world, idempotency_key=once("key-1"))
        assert answer_of(lambda: give(world, idempotency_key=once("key-1"))) is not None
        with pytest.raises(IdempotencyConflict):
            give(world, idempotency_key=once("key-1", "other"))
        with pytest.raises(Unavailable):
            dying(world).transfer(
                world.server, BASE, "USDC", "7.00", to=WALLET, idempotency_key=once("key-2")
            )
        give(world, idempotency_key=once("key-2"))
        assert world.on_chain(WALLET) == atomic("14.00")


class TestReorgs:
    def test_a_reorg_takes_a_transfer_away_and_a_key_makes_one_reorg(self, world: World) -> None:
        sandbox = world.resources.sandbox
        give(world)
        give(world)
        with pytest.raises(Unavailable):
            dying(world).reorg_chain(world.server, BASE, 1, idempotency_key=once("key"))
        heads = sandbox.reorg_chain(BASE, 1, idempotency_key=once("key"))
        assert heads == world.chain.heads()
        assert answer_of(lambda: sandbox.reorg_chain(BASE, 1, idempotency_key=once("key")))
        assert world.on_chain(WALLET) == atomic("7.00")

    def test_a_reorg_may_put_everything_back(self, world: World) -> None:
        done = give(world)
        world.resources.sandbox.reorg_chain(BASE, 1, reinclude=True)
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
            service.parts.verifications,
            RemoteCalls(1),
            woken.append,
            testnets={},
        )
        sandbox.fund(world.server, world.payer.id, BASE, "USDC", "1")
        sandbox.transfer(world.server, BASE, "USDC", "1", to=WALLET)
        sandbox.reorg_chain(world.server, BASE, 1)
        sandbox.mine_blocks(world.server, BASE, 1)
        assert woken == [BASE] * 4
        sandbox.fail_dependency(world.server, "chain", "any", 1)
        sandbox.trigger_event(world.server, "webhook.test")
        assert len(woken) == 4

    def test_triggered_news_of_an_endpoint_reaches_the_only_one(self, world: World) -> None:
        service = world.service
        endpoint, _ = service.acting_as(world.server).webhooks.create(
            url="https://shop.example/hooks"
        )
        for name in ("webhook.failing", "webhook.test"):
            world.resources.sandbox.trigger_event(name)
        world.run()
        _, page = service.acting_as(world.server).webhooks.list_deliveries(endpoint.id)
        reported = {one.event_name: one.event_id for one in page.records}
        assert {"webhook.failing", "webhook.test"} <= set(reported)
        event = service.acting_as(world.server).events.read(reported["webhook.failing"])
        assert event.payload["webhookId"] != endpoint.id


class TestFailures:
    def test_an_ordered_failure_is_shown_until_it_has_happened(self, world: World) -> None:
        sandbox = world.resources.sandbox
        sandbox.fail_dependency("chain", "heads", 2, chain_id=BASE)
        assert [(item.operation, item.times) for item in sandbox.read().failures] == [("heads", 2)]
        assert (
            sandbox.read().heads[BASE] == world.chain.peek_heads()
        )  # the sandbox's own look spends none
        for _ in range(2):
            with pytest.raises(ChainUnavailable):
                world.chain.heads()
        assert sandbox.read().failures == ()

    @pytest.mark.parametrize("operation", ["broadcast", "lost_answer", "transaction", "any"])
    def test_a_payment_goes_through_a_chain_that_fails_for_a_while(
        self, world: World, operation: str
    ) -> None:
        option = world.authorized()
        world.resources.sandbox.fail_dependency("chain", operation, 3)
        for _ in range(4):
            world.finish()
        assert world.paid(option.payment.id).status == "succeeded"
        assert world.sent() == 2
        assert world.resources.sandbox.read().failures == ()

    def test_a_transfer_that_is_made_to_fail_gives_the_reservation_back(self, world: World) -> None:
        option = world.authorized()
        world.resources.sandbox.fail_dependency("chain", "transfer", 1)
        world.finish()
        assert world.operation_now(option).status == "failed"
        assert world.held() == (atomic("100"), 0, atomic("100"))

    def test_what_cannot_be_made_to_fail_is_refused(self, world: World) -> None:
        sandbox = world.resources.sandbox
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
                sandbox.fail_dependency(dependency, operation, times, chain_id=chain_id)  # type: ignore[arg-type]
        with pytest.raises(UnsupportedChain):
            sandbox.fail_dependency("chain", "any", 1, chain_id=5)
        assert sandbox.read().failures == ()


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
        done = world.resources.sandbox.trigger_event(name)
        events = world.events()
        assert len(events) == before + 1
        [event] = [event for event in events if event.id == done.event_id]
        assert (event.name, event.payload) == (name, done.payload)
        assert list(event.payload) == list(BY_NAME[name].fields)
        for field, value in event.payload.items():
            if field == "externalUserId":
                assert value in ("merchant", "payer")
            elif field == "refundId" and value is None:
                assert name == "payment.in_review"  # the Payment's own transfer waits
            elif field.endswith("Id") and field != "chainId":
                assert is_identifier(value, value.rpartition("_")[0]) or len(value) > 24
            elif field.endswith("Atomic"):
                assert value.isdigit()
        world.finish()  # it is delivered to nobody here, and harms nothing

    def test_an_event_is_about_what_is_named(self, world: World) -> None:
        sandbox = world.resources.sandbox
        option = world.authorized("8.00")
        world.payment("9.00")
        named = {"payment_id": option.payment.id}
        paid = sandbox.trigger_event("payment.succeeded", **named).payload
        assert paid["paymentId"] == option.payment.id
        assert paid["accountId"] == world.merchant.id
        assert paid["status"] == "succeeded"
        assert paid["settledAmountAtomic"] == paid["amountAtomic"] == str(atomic("8.00"))
        sent = sandbox.trigger_event("vault_funding.broadcast", **named).payload
        assert sent["fundingOperationId"] == option.operation.id
        assert sent["optionId"] == option.option.id
        assert sent["status"] == "broadcast"
        account = sandbox.trigger_event("account.updated", account_id=world.payer.id)
        assert account.payload == {
            "accountId": world.payer.id, "externalUserId": "payer", "status": "active",
        }  # fmt: skip

    def test_without_a_name_it_is_about_the_newest(self, world: World) -> None:
        world.payment("8.00")
        world.advance(1)
        newest = world.payment("9.00")
        done = world.resources.sandbox.trigger_event("payment.created")
        assert done.payload["paymentId"] == newest.payment.id

    def test_an_event_is_about_a_payment_that_can_have_it(self, world: World) -> None:
        sandbox = world.resources.sandbox
        received = world.payment("8.00").payment
        world.advance(1)
        to = ToAccount(account_id=world.merchant.id)
        new = NewSend(amount="9.00", account_id=world.payer.id, destination=to)
        sent = world.resources.payments.send(new).payment
        created = sandbox.trigger_event("payment.created").payload
        assert (created["paymentId"], created["status"]) == (sent.id, "processing")
        for name in (
            "dispute.flagged", "refund.created", "vault_funding.failed", "payment.overpaid",
        ):  # fmt: skip
            reported = sandbox.trigger_event(name).payload
            assert reported["paymentId"] == received.id
            with pytest.raises(ValidationFailed, match="is a send"):
                sandbox.trigger_event(name, payment_id=sent.id)
            of_payer = sandbox.trigger_event(name, account_id=world.payer.id).payload
            assert of_payer["paymentId"] not in (received.id, sent.id)  # made up: it has none
        reported = sandbox.trigger_event("dispute.flagged").payload
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
        reported = memory_world.resources.sandbox.trigger_event(name).payload
        assert (reported["status"], reported["statusVersion"]) == (status, status_version)

    def test_an_order_changes_nothing_but_the_outbox(self, world: World) -> None:
        option = world.authorized()
        before = world.paid(option.payment.id), world.operation_now(option)
        for name in ("payment.failed", "vault_funding.failed"):
            world.resources.sandbox.trigger_event(name, payment_id=option.payment.id)
        assert (world.paid(option.payment.id), world.operation_now(option)) == before

    def test_what_does_not_exist_is_refused(self, world: World) -> None:
        sandbox = world.resources.sandbox
        absent = "payment_" + "A" * 24
        with pytest.raises(ValidationFailed):
            sandbox.trigger_event("payment.nonsense")
        with pytest.raises(ValidationFailed):
            sandbox.trigger_event("account.created", payment_id=world.payment().payment.id)
        with pytest.raises(NotFound):
            sandbox.trigger_event("payment.created", payment_id=absent)
        with pytest.raises(NotFound):
            sandbox.trigger_event("account.created", account_id="acct_" + "A" * 24)

    def test_a_key_orders_one_event(self, world: World) -> None:
        def order() -> Any:
            return world.resources.sandbox.trigger_event(
                "webhook.test", idempotency_key=once("key")
            )

        order()
        assert answer_of(order) is not None
        assert world.event_names()["webhook.test"] == 1


def operations_of(shop: Resources) -> list[Callable[[], object]]:
    """Every operation of the sandbox, as somebody calls it."""
    sandbox, id = shop.sandbox, "absent"
    calls: dict[str, Callable[[], object]] = {
        "read": sandbox.read,
        "fund": lambda: sandbox.fund(id, BASE, "USDC", "1"),
        "decide_kyc": lambda: sandbox.decide_kyc(id, "approved"),
        "deposit_at_bank": lambda: sandbox.deposit_at_bank(id, "1.00", "wire"),
        "mine_blocks": lambda: sandbox.mine_blocks(BASE, 1),
        "advance_clock": lambda: sandbox.advance_clock(1),
        "trigger_event": lambda: sandbox.trigger_event("webhook.test"),
        "fail_dependency": lambda: sandbox.fail_dependency("chain", "any", 1),
        "decide_order": lambda: sandbox.decide_order(id, "pay"),
        "decide_payout": lambda: sandbox.decide_payout(id, "settle"),
        "reorg_chain": lambda: sandbox.reorg_chain(BASE, 1),
        "run": sandbox.run,
        "transfer": lambda: sandbox.transfer(BASE, "USDC", "1", to=WALLET),
    }
    assert set(calls) == {name for name in dir(sandbox) if not name.startswith("_")}
    return list(calls.values())


def assert_closed(shop: Resources) -> None:
    for api in operations_of(shop):
        with pytest.raises(NotFound) as caught:
            api()
        assert caught.value.resource == "sandbox"


def test_a_second_app_closes_every_operation(memory_world: World) -> None:
    memory_world.service.tenants.create_app("Other", "other")
    assert_closed(memory_world.resources)


def test_production_has_no_operation_of_the_sandbox(memory_world: World) -> None:
    service = memory_world.service
    assert_closed(service.environment(memory_world.app.environments["production"]))


def test_real_chains_have_no_operation_of_the_sandbox(memory_world: World) -> None:
    parts = memory_world.service.parts
    service = PaymentsService(
        memory_world.storage, parts.ports.key_ring, chains={BASE: memory_world.chain}
    )
    assert_closed(service.environment(memory_world.environment_id))


def test_a_reorg_under_a_clock_that_is_far_ahead_leaves_the_heads_where_they_are(
    memory_world: World,
) -> None:
    world = memory_world
    world.clock.advance_to(world.clock.now() + 3 * DAY)
    before = world.chain.heads().latest.number
    assert world.resources.sandbox.reorg_chain(BASE, 50).latest.number == before
    assert world.chain.scan([USDC.address], None, 0, before)  # what was funded days ago
