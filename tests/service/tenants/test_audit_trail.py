"""The audit trail: who changed what, in the commit of the change, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from docs.client.names import RESOURCES
from payments_core.clock import DAY, to_datetime
from payments_core.engine.audit import SYSTEM, Actor, AuditEntry, CallSource, Trace
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.errors import AmountOutOfRange, InvalidState, ValidationFailed
from payments_core.maintenance import audit_purge
from payments_core.maintenance.audit_purge import AuditPurge
from payments_core.operation import READING_VERBS
from payments_core.storage.port import DIRECTORY
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core_http.routes import ROUTES
from tests.service.payer import Payer
from tests.service.world import World, answer_of, once

HOOK = "https://192.0.43.8/events"


def trail(world: World, **filters: Any) -> Sequence[AuditEntry]:
    """All entries that match, newest first."""
    found: list[AuditEntry] = []
    after = None
    while True:
        page = world.service.acting_as(world.system_authority).audit.list(
            **{"limit": 100, **filters}, after=after
        )
        found += page.records
        after = page.next
        if after is None:
            return found


def names(entries: Sequence[AuditEntry]) -> list[str]:
    return [entry.operation for entry in entries]


def write_entry(world: World, partition: str, operation: str, environment_id: str | None) -> None:
    """A commit that changes nothing but an empty job, in somebody's name."""
    trace = Trace(Actor("operator", "ann"), operation, environment_id=environment_id)
    job = NewJob("timers", "none", "none", world.clock.now() + 1_000 * DAY, "none")
    world.service.parts.ports.committer.commit(
        WorkerAuthority(partition, "elsewhere", trace),
        lambda tx, id_sequence: Decision(None, jobs=(job,)),
    )


def test_a_change_says_who_what_and_when(world: World) -> None:
    payment = world.payment()
    world.system.advance(1)
    source = CallSource("203.0.113.9", "req_one")
    server = attrs.evolve(world.server, source=source)
    world.service.acting_as(server).payments.cancel(payment.payment.id)
    cancelled, made = trail(world, object_id=payment.payment.id)
    assert (made.operation, made.outcome) == ("payments.receive", "succeeded")
    assert made.actor == Actor("key", world.key.id, "main")
    assert cancelled.operation == "payments.cancel"
    assert (cancelled.address, cancelled.request_id) == ("203.0.113.9", "req_one")
    assert cancelled.created_at_ms == made.created_at_ms + 1_000 == world.clock.now()


def test_each_kind_of_caller_is_told_apart(memory_world: World) -> None:
    world = memory_world
    option = world.authorized()
    program = world.service.environment(world.environment_id, person="alice@shop.example")
    program.webhooks.create(url=HOOK)
    world.finish()
    by_actor = {(entry.actor_type, entry.operation): entry for entry in trail(world)}
    authorized = by_actor["client_session", "options.authorize"]
    assert authorized.object_id == option.payment.id
    assert authorized.related_ids[0] == option.option.id
    assert by_actor["program", "webhooks.create"].actor_id == "alice@shop.example"
    assert by_actor["program", "keys.create"].object_id == world.key.id
    released = by_actor["system", "payment.executing"]
    assert released.object_id == option.payment.id and released.actor_name is not None


@pytest.mark.parametrize("name", ["", "x" * 201, "two\nlines"])
def test_a_person_has_a_name_that_can_be_shown(memory_world: World, name: str) -> None:
    with pytest.raises(ValidationFailed):
        memory_world.service.environment(memory_world.environment_id, person=name)


def test_reads_replays_and_refusals_leave_nothing(memory_world: World) -> None:
    world = memory_world
    payment = world.payment()

    def cancel() -> None:
        world.resources.payments.cancel(payment.payment.id, idempotency_key=once("one"))

    cancel()
    before = trail(world)
    world.resources.payments.read(payment.payment.id)
    world.resources.payments.list(limit=5)
    world.resources.accounts.read_balances(world.payer.id)
    assert answer_of(cancel) is not None
    with pytest.raises(AmountOutOfRange):
        world.refund(payment, "1.00")
    assert trail(world) == before


def test_what_is_refused_in_the_commit_has_neither_change_nor_entry(world: World) -> None:
    """One transaction has both: if it ends with an error, it has none of them."""
    payment = world.payment()
    before = trail(world)

    def decide(tx: Any, id_sequence: Any) -> Decision[None]:
        tx.insert(AuditEntry(id="audit_x", created_at_ms=1, actor_type="system", operation="x"))
        raise InvalidState("payment", "x", "y")

    with pytest.raises(InvalidState):
        world.service.parts.ports.committer.commit(
            attrs.evolve(world.server, operation="payments.cancel"), decide
        )
    assert trail(world) == before
    assert world.paid(payment.payment.id).status == "awaiting_payment"


def test_settings_keys_and_webhooks_are_in_it_and_no_secret_is(memory_world: World) -> None:
    world = memory_world
    webhooks, tenants = world.resources.webhooks, world.service.tenants
    world.system.advance(1)
    endpoint, signing_secret = webhooks.create(url=HOOK)
    world.system.advance(1)
    webhooks.change(endpoint.id, EndpointChanges(description="for orders"))
    world.system.advance(1)
    _, rotated = webhooks.rotate_secret(endpoint.id)
    world.system.advance(1)
    key, secret = tenants.create_key(world.environment_id, "standard", "second")
    world.system.advance(1)
    tenants.set_products(world.environment_id, world.environment.products)
    world.system.advance(1)
    tenants.revoke_key(world.environment_id, key.id)
    assert names(trail(world))[:6] == [
        "keys.revoke", "environment.set_products", "keys.create", "webhooks.rotate_secret",
        "webhooks.change", "webhooks.create",
    ]  # fmt: skip
    text = repr([attrs.asdict(entry) for entry in trail(world)])
    assert endpoint.id in text and key.id in text
    for hidden in (signing_secret, rotated, secret, world.secret, HOOK, "for orders"):
        assert hidden not in text


def test_filters_and_cursors_find_each_entry_once(world: World) -> None:
    started = world.clock.now()
    world.system.advance(60)
    for _ in range(3):
        payment = world.payment()
        world.system.advance(1)
        world.resources.payments.cancel(payment.payment.id)
        world.system.advance(59)
    audit = world.resources.audit
    everything = trail(world)
    walked, after = [], None
    while True:
        page = audit.list(limit=2, after=after)
        walked += page.records
        after = page.next
        if after is None:
            break
    assert walked == list(everything)
    assert len({entry.id for entry in walked}) == len(walked)
    cancels = trail(world, operation="payments.cancel", limit=1)
    assert names(cancels) == ["payments.cancel"] * 3
    middle = to_datetime(started + 120_000), to_datetime(started + 180_000)
    assert names(trail(world, created_after=middle[0], created_before=middle[1])) == [
        "payments.cancel", "payments.receive",
    ]  # fmt: skip
    assert trail(world, actor_id=world.key.id, actor_type="operator") == []
    assert {entry.actor_id for entry in trail(world, actor_id=world.key.id)} == {world.key.id}


def test_the_directory_s_entries_are_merged_by_time_and_by_owner(world: World) -> None:
    for number in range(6):
        world.system.advance(1)
        own = number % 2 == 0
        write_entry(
            world,
            world.environment_id if own else DIRECTORY,
            f"test.{number}",
            None if own else world.environment_id,
        )
        write_entry(world, DIRECTORY, "test.other", "env_" + "0" * 24)
        write_entry(world, DIRECTORY, "test.nobody", None)
    for limit in (1, 2, 100):
        found = trail(world, actor_type="operator", actor_id="ann", limit=limit)
        assert names(found) == [f"test.{number}" for number in range(5, -1, -1)]


def test_another_environment_s_entries_are_never_shown(world: World) -> None:
    other = World(world.storage, system=world.system).open("other")
    payment = other.payment()
    assert trail(world, object_id=payment.payment.id) == []
    assert other.key.id not in {entry.actor_id for entry in trail(world)}
    assert names(trail(other, object_id=payment.payment.id)) == ["payments.receive"]


def test_a_worker_leaves_an_entry_only_for_what_matters(memory_world: World) -> None:
    world = memory_world
    world.authorized()
    before = len(trail(world))
    world.finish()
    assert names(trail(world))[: len(trail(world)) - before] == ["payment.executing"]


def test_the_endpoint_of_a_handler_has_its_entries(memory_world: World) -> None:
    world = memory_world
    for events in (("payment.succeeded",), (), ()):
        world.system.advance(1)
        endpoint = world.resources.on_event("ship", print, subscribed_events=events)
    assert names(trail(world, object_id=endpoint.id)) == ["webhooks.change", "webhooks.create"]


def test_old_entries_go_and_young_ones_stay(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_purge, "BATCH", 2)
    purge = AuditPurge(world.service.parts.ports, 30 * DAY)
    write_entry(world, DIRECTORY, "old", world.environment_id)
    write_entry(world, DIRECTORY, "old", None)
    assert not purge.run(world.environment_id)
    world.system.advance(31 * DAY / 1_000)
    world.service.refresh()
    payment = world.payment()
    rounds = 0
    while purge.run(world.environment_id):
        rounds += 1
    assert rounds > 1
    assert names(trail(world)) == ["payments.receive"]
    assert trail(world)[0].object_id == payment.payment.id
    assert world.service.parts.audit_trail.list_deployment().records == ()


def test_a_sandbox_s_clock_deletes_nothing_of_the_deployment(memory_world: World) -> None:
    world = memory_world
    write_entry(world, DIRECTORY, "theirs", None)
    write_entry(world, DIRECTORY, "own", world.environment_id)
    world.clock.advance_to(world.clock.now() + 32 * DAY)
    AuditPurge(world.service.parts.ports, 30 * DAY).run(world.environment_id)
    assert names(trail(world)) == []
    assert names(world.service.parts.audit_trail.list_deployment().records) == ["theirs"]


def test_rows_of_the_actions_before_become_entries() -> None:
    convert = AuditEntry.collection.takes_over["webhook_console_actions"]
    row = {"id": "webhook_action_1", "schema": 2, "version": 1, "created_at_ms": 7}
    assert convert({**row, "subject": "evt_1", "action": "resend"}) == {
        "id": "webhook_action_1", "schema": 1, "version": 1, "created_at_ms": 7,
        "actor_type": "unknown", "operation": "events.resend", "object_id": "evt_1",
    }  # fmt: skip


def test_the_first_word_of_an_operation_says_whether_it_changes_anything() -> None:
    """So that no read leaves an entry, and no change is without one."""
    known = {
        operation: name
        for client in RESOURCES.values()
        for resource in client.values()
        for operation, name in resource.items()
        if name
    }
    for route in ROUTES:
        name = known.get(route.operation or "", "")
        if not name or route.path.startswith(("/sdk/", "/healthz", "/readyz", "/livez")):
            continue
        is_read = name.partition("_")[0] in READING_VERBS
        assert is_read == (route.method == "GET"), (route.method, route.path, name)


def test_the_service_itself_is_an_actor_without_a_name() -> None:
    assert WorkerAuthority("env", "sandbox").trace.actor == SYSTEM


def test_a_payer_s_choice_is_in_it(memory_world: World) -> None:
    payer = Payer(memory_world)
    memory_world.system.advance(1)
    option = payer.option()
    memory_world.system.advance(1)
    payer.select(option)
    selected, made, _ = trail(memory_world, object_id=payer.id)
    assert (selected.operation, made.operation) == (
        "public_options.select",
        "public_options.create",
    )
    assert selected.actor == Actor("payer", payer.id)
    assert selected.related_ids == made.related_ids == (option.option.id,)
