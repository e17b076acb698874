"""Who created a Payment: a backend never takes the word of a browser for its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_core.errors import ValidationFailed
from payments_core.payments.destinations import ToAccount
from payments_core.payments.operations import NewPayment
from payments_core.payments.record import Payment
from payments_core.storage import documents
from payments_core.tenants.authorization import Authority
from tests.service.payments.checkout import test_public_creation as public
from tests.service.payments.test_collects import collect, mandate
from tests.service.payments.test_sends import send
from tests.service.world import World


def own_payment(world: World, authority: Authority, **more: Any) -> Payment:
    """A Payment of one cent to the payer's account, for an order that costs more."""
    to = ToAccount(account_id=world.payer.id)
    new = NewPayment(amount="0.01", destination=to, reference="order-1042", **more)
    return world.service.acting_as(authority).payments.receive(new).payment


def test_a_payment_and_its_events_say_who_created_it(world: World) -> None:
    public.set_terms(world)
    trusted = world.service.tenants.system_authority(world.environment_id)
    order = {"order": 1042}
    made = {
        "server": [
            own_payment(world, world.server, metadata=order),
            own_payment(world, trusted),
            send(world, "1.00").payment,
            collect(world, mandate(world)).payment,
        ],
        "client": [own_payment(world, world.client)],
        "public": [public.create(world, public.asked(reference="order-1042")).payment],
    }
    world.finish()
    for creator, payments in made.items():
        for payment in payments:
            assert payment.created_by == world.paid(payment.id).created_by == creator
            reported = [event.payload for event in world.events(payment.id)]
            own = [one for one in reported if "labels" in one]
            assert {one["createdBy"] for one in own} == {creator}
            shown = None if creator == "public" else payment.reference
            assert {one["reference"] for one in own} == {shown}
            assert {one["externalUserId"] for one in own} == {payment.external_user_id}
            assert all(one["metadata"] == payment.metadata for one in own)
    of_order = [event.payload for event in world.events(made["server"][0].id)]
    assert {(one["reference"], str(one["metadata"])) for one in of_order if "labels" in one} == {
        ("order-1042", str(order))
    }
    assert made["public"][0].reference == "order-1042"


def test_a_browser_sets_no_metadata(memory_world: World) -> None:
    for metadata in ({"order": 1042}, {}):
        with pytest.raises(ValidationFailed) as caught:
            own_payment(memory_world, memory_world.client, metadata=metadata)
        assert [field.path for field in caught.value.fields] == ["metadata"]
    assert memory_world.resources.payments.list().records == ()


def test_a_payment_of_the_release_before_has_no_creator(memory_world: World) -> None:
    stored = memory_world.paid(own_payment(memory_world, memory_world.server).id)
    document = json.loads(documents.encode(stored))
    del document["created_by"]
    before = documents.decode(Payment, json.dumps({**document, "schema": 1}))
    assert before.created_by is None
    assert before.reference == stored.reference
