"""A retried task of an embedder: one effect and one result for a key (decision 0016)."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, get_type_hints

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import payments_core
from payments_core.clock import DAY
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    IdempotencyConflict,
    IdempotencyInProgress,
    InvalidState,
    Unavailable,
    ValidationFailed,
)
from payments_core.operation import OpenResource
from payments_core.payments.destinations import ToAccount
from payments_core.payments.operations import NewPayment
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage import documents
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.conftest import funded
from tests.service.faults import (
    Crashed,
    Fault,
    FaultyStorage,
    commit_failed,
    commit_lost,
    crash,
    storage_away,
)
from tests.service.world import WALLET, World, once

KEY = "order-1"


def new(world: World, amount: str = "5", **more: Any) -> NewPayment:
    return NewPayment(amount=amount, destination=ToAccount(account_id=world.merchant.id), **more)


def create(world: World, service: PaymentsService | None = None, **more: Any) -> Any:
    made = (service or world.service).acting_as(world.system_authority).payments
    return made.receive(new(world, **more), idempotency_key=KEY)


def count_payments(world: World) -> int:
    return len(world.resources.payments.list(limit=100).records)


EVERY_CALL, TRANSACTIONS = ("read", "transact"), ("transact",)


@pytest.mark.parametrize(
    ("fault", "counted"),
    [
        (crash, EVERY_CALL),
        (storage_away, EVERY_CALL),
        (commit_lost, TRANSACTIONS),
        (commit_failed, TRANSACTIONS),
    ],
)
def test_a_fault_at_any_call_of_the_storage_leaves_one_payment(
    fault: Fault, counted: tuple[str, ...]
) -> None:
    for at in range(1, 20):
        world = funded(MemoryStorage())
        storage = FaultyStorage(world.storage, at, fault, counted)
        try:
            first = create(world, world.restarted(storage))
        except (Crashed, Unavailable):
            first = None
        if not storage.had_its_fault:
            break
        retried = create(world, world.restarted())
        assert first is None or retried == first
        assert retried.client_secret
        assert count_payments(world) == 1
        assert [event.name for event in world.events(retried.payment.id)] == ["payment.created"]
    assert at > len(counted), "a call with a key looks, and commits"


def test_a_retry_gives_the_first_result_whatever_came_of_it(world: World) -> None:
    first = create(world)
    cancelled = world.resources.payments.cancel(first.payment.id, idempotency_key="c")
    assert world.resources.payments.cancel(first.payment.id, idempotency_key="c") == (cancelled)
    assert create(world) == first
    assert count_payments(world) == 1


def test_a_key_with_other_arguments_or_another_operation_is_refused(world: World) -> None:
    first = create(world)
    with pytest.raises(IdempotencyConflict):
        create(world, amount="5.0")
    with pytest.raises(IdempotencyConflict):
        world.resources.payments.cancel(first.payment.id, idempotency_key=KEY)
    assert world.paid(first.payment.id).status == "awaiting_payment"
    assert create(world, expires_in_s=None, metadata=None) == first, "as by default, so the same"


def test_what_is_wrong_is_said_before_the_key_is_looked_up(world: World) -> None:
    """A reused key with an invalid body is 400 over HTTP."""
    create(world)
    with pytest.raises(ValidationFailed) as caught:
        create(world, allowed_methods=["card"])
    assert [fault.path for fault in caught.value.fields] == ["allowed_methods[0]"]
    with pytest.raises(ValidationFailed) as caught:
        world.resources.webhooks.create(
            url="https://x.example", description="a" * 10_000, idempotency_key=KEY
        )
    assert [fault.path for fault in caught.value.fields] == ["description"]


@pytest.mark.parametrize("key", ["", "a" * 257, "café", "a\n", 5, b"k", object()])
def test_what_is_not_a_key_is_refused(memory_world: World, key: Any) -> None:
    before = count_payments(memory_world)
    with pytest.raises(ValidationFailed) as caught:
        memory_world.resources.payments.receive(new(memory_world), idempotency_key=key)
    assert [fault.path for fault in caught.value.fields] == ["idempotency_key"]
    assert count_payments(memory_world) == before


def test_a_refused_call_may_be_made_again_with_its_key(world: World) -> None:
    payment = world.payment()
    world.pay(payment, "25.00")
    world.finish()
    with pytest.raises(InvalidState):
        world.resources.payments.cancel(payment.payment.id, idempotency_key=KEY)
    assert create(world).payment.amount_atomic == 5_000_000


def test_keys_of_another_app_are_other_keys(world: World) -> None:
    first = create(world)
    app = world.service.tenants.create_app("Other", "other")
    theirs = world.service.tenants.system_authority(app.environments["sandbox"])
    account = payments_core.NewAccount(external_user_id="x", subject_type="individual")
    payee = world.service.acting_as(theirs).accounts.create(account, idempotency_key=KEY).account
    order = NewPayment(amount="5", destination=ToAccount(account_id=payee.id))
    assert world.service.acting_as(theirs).payments.receive(order, idempotency_key="other")
    assert create(world) == first


def test_a_key_is_kept_as_long_as_the_settings_say(memory_world: World) -> None:
    service = memory_world.restarted(settings=Settings(idempotency_retention_ms=DAY))
    first = create(memory_world, service)
    memory_world.advance(86_399)
    assert create(memory_world, service) == first
    memory_world.advance(1)
    assert create(memory_world, service).payment.id != first.payment.id


def test_threads_with_one_key_make_one_payment(world: World) -> None:
    made: list[Any] = []

    def task() -> None:
        while True:
            with suppress(IdempotencyInProgress):
                made.append(create(world))
                return

    threads = [threading.Thread(target=task) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 6
    assert all(one == made[0] for one in made)
    assert count_payments(world) == 1


def test_each_kind_of_result_comes_back_as_it_was(world: World) -> None:
    service, server, client = world.service, world.server, world.client
    payment, option = world.payment(), world.option(world.payment())
    account = payments_core.NewAccount(
        external_user_id="new", subject_type="individual", metadata={"a": "b"}
    )
    calls: list[Callable[[], Any]] = [
        lambda: service.acting_as(server).accounts.create(account, idempotency_key="1"),
        lambda: service.acting_as(server).accounts.change(
            world.payer.id, metadata={"a": None}, idempotency_key="2"
        ),
        lambda: service.acting_as(server).client_sessions.create(
            account_id=world.payer.id,
            expires_in_s=900,
            permissions=["account:read"],
            idempotency_key="3",
        ),
        lambda: service.acting_as(client).options.create(payment.payment.id, idempotency_key="4"),
        lambda: world.authorize(option, idempotency_key="5"),
        lambda: service.acting_as(server).webhooks.create(
            url="https://example.com/h", idempotency_key="6"
        ),
        lambda: world.resources.sandbox.fund(
            world.payer.id, 8453, "USDC", "7", idempotency_key="7"
        ),
        lambda: world.resources.sandbox.transfer(
            8453, "USDC", "7", to=WALLET, idempotency_key="10"
        ),
        lambda: world.resources.sandbox.advance_clock(5, idempotency_key="8"),
        lambda: world.resources.sandbox.trigger_event("payment.created", idempotency_key="9"),
    ]
    first = [call() for call in calls]
    assert [call() for call in calls] == first
    held = world.held()[0]
    assert [call() for call in calls] == first
    assert world.held()[0] == held


def test_each_movement_of_funds_happens_once(world: World) -> None:
    service, server = world.service, world.server
    done = world.authorized().payment
    world.finish()
    assert world.paid(done.id).status == "succeeded"
    vault = world.vault_of()
    terms = payments_core.NewMandate(vault_id=vault.id, amount_per_period="40", period="month")
    to = ToAccount(account_id=world.merchant.id)
    mandate = (
        service.acting_as(server)
        .mandates.create(world.payer.id, terms, idempotency_key="m")
        .mandate
    )
    send = payments_core.NewSend(amount="1", account_id=world.payer.id, destination=to)
    collect = payments_core.NewCollect(amount="2", mandate_id=mandate.id, destination=to)
    refund = payments_core.NewRefund(amount="3")
    calls: list[Callable[[], Any]] = [
        lambda: (
            service.acting_as(server)
            .mandates.create(world.payer.id, terms, idempotency_key="m")
            .mandate
        ),
        lambda: service.acting_as(server).payments.send(send, idempotency_key="s"),
        lambda: service.acting_as(server).payments.collect(collect, idempotency_key="c"),
        lambda: service.acting_as(server).payments.refund(done.id, refund, idempotency_key="r"),
        lambda: service.acting_as(server).payments.refund_all(done.id, refund, idempotency_key="r")[
            0
        ],
        lambda: service.acting_as(server).mandates.revoke(
            world.payer.id, mandate.id, idempotency_key="revoke"
        ),
    ]
    first = [call() for call in calls]
    assert first[0] == mandate
    world.finish()
    held = world.held()
    assert [call() for call in calls] == first
    world.finish()
    assert world.held() == held
    assert len(service.acting_as(server).payments.list_refunds(done.id).records) == 1


KEYS = st.sampled_from(["a", "b", "c"])
AMOUNTS = st.sampled_from(["1", "2"])
CHOICE = st.tuples(KEYS, AMOUNTS, st.sampled_from(["payment", "account"]))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CHOICE, max_size=12))
def test_for_all_callers_and_orders_a_key_means_its_first_call(
    choices: list[tuple[str, str, str]],
) -> None:
    world = funded(MemoryStorage())
    payments = world.resources.payments
    known: dict[str, tuple[tuple[str, str], Any]] = {}
    for key, text, what in choices:
        try:
            if what == "payment":
                done: Any = payments.receive(new(world, text), idempotency_key=key)
            else:
                account = payments_core.NewAccount(
                    external_user_id=f"{key}{text}", subject_type="individual"
                )
                done = world.resources.accounts.create(account, idempotency_key=key)
        except IdempotencyConflict:
            assert known[key][0] != (text, what)
            continue
        asked, result = known.setdefault(key, ((text, what), done))
        assert asked == (text, what)
        assert done == result
    assert count_payments(world) == sum(asked[1] == "payment" for asked, _ in known.values())


def test_a_request_made_by_hand_is_answered_by_its_maker(memory_world: World) -> None:
    world = memory_world
    service = world.resources.payments
    service.receive(new(world), idempotency_key=once("k"))
    with pytest.raises(AlreadyResponded):
        service.receive(new(world), idempotency_key=once("k"))


def operations() -> Iterator[tuple[type, str, Callable[..., Any]]]:
    """All that take a key."""
    loaded = [module for name, module in sys.modules.items() if name.startswith("payments_core.")]
    for module in loaded:  # by `PaymentsService`, which has them all
        for kind in vars(module).values():
            if not inspect.isclass(kind) or kind.__module__ != module.__name__:
                continue
            if issubclass(kind, OpenResource):
                continue  # its rows lead to the operations of parts
            for name, value in vars(kind).items():
                if not inspect.isfunction(value) or name.startswith("_"):
                    continue
                if "idempotency_key" in inspect.signature(value).parameters:
                    yield kind, name, value


HAND_THE_KEY_ON = {
    ("Offers", "create"): "reserves with it, and asks the provider again for what it has reserved",
    ("Offers", "refresh"): "the same",
    ("Payments", "create_receive_payment"): "is for other operations",
    ("Refunds", "create"): "gives the first of what `create_all` gives",
}


def test_every_operation_that_takes_a_key_happens_once_for_it() -> None:
    found = list(operations())
    assert len(found) > 50
    for kind, name, operation in found:
        if (kind.__name__, name) in HAND_THE_KEY_ON:
            continue
        made_once = [f for f in _wrappers(operation) if "once_per_key" in f.__code__.co_qualname]
        assert made_once, f"{kind.__name__}.{name} lacks @once_per_key"
        assert "_committer" in inspect.getsource(kind.__init__), kind
        result = get_type_hints(operation, include_extras=True)["return"]
        with pytest.raises((documents.UnreadableDocument, msgspec.DecodeError)):
            documents.decode_value(result, b"nothing")


def _wrappers(operation: Any) -> Iterator[Any]:
    while operation is not None:
        yield operation
        operation = getattr(operation, "__wrapped__", None)
