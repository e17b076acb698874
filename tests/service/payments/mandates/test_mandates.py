"""Mandates: created over a vault, listed as they stand now, revoked once and permanently."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from payments_core.clock import DAY, SECOND, to_datetime
from payments_core.errors import (
    AccountSuspended,
    AmountOutOfRange,
    NotFound,
    UnsupportedAsset,
    ValidationFailed,
)
from payments_core.payments.mandates import lifecycle
from payments_core.payments.mandates.operations import MAX_INSTANT, MandateDetails, NewMandate
from payments_core.payments.mandates.record import Mandate
from tests.service.faults import FaultyStorage, commit_failed, commit_lost
from tests.service.world import BASE, World, answer_of, atomic, once, write


def new(world: World, **given: Any) -> NewMandate:
    facts: dict[str, Any] = {
        "vault_id": world.vault_of().id,
        "amount_per_period": "25.00",
        "period": "month",
    }
    return NewMandate(**{**facts, **given})


def create(world: World, **given: Any) -> MandateDetails:
    return world.resources.mandates.create(world.payer.id, new(world, **given))


def listed(world: World) -> list[MandateDetails]:
    return list(world.resources.mandates.list(world.payer.id).records)


def test_a_mandate_is_made_with_all_that_was_given(world: World) -> None:
    expiry = world.clock.now() + DAY
    made = create(world, expires_at=to_datetime(expiry), reference="r-1", metadata={"a": [1]})
    mandate = world.get(Mandate, made.mandate.id)
    assert (mandate.account_id, mandate.vault_id) == (world.payer.id, world.vault_of().id)
    assert (mandate.chain_id, mandate.asset_symbol) == (BASE, "USDC")
    assert (mandate.amount_per_period_atomic, mandate.period) == (atomic("25"), "month")
    assert (mandate.expires_at_ms, mandate.reference) == (expiry, "r-1")
    assert mandate.metadata == {"a": [1]}
    assert (made.status, made.remaining_atomic) == ("active", atomic("25"))


def test_what_was_drawn_is_missing_from_what_remains(world: World) -> None:
    made = create(world, period="day")
    now = world.clock.now()
    stored = world.get(Mandate, made.mandate.id)
    drawn = lifecycle.charge(stored, atomic("10"), now=now).record
    write(world.storage, world.environment_id, lambda tx: tx.replace(drawn))
    assert listed(world)[0].remaining_atomic == atomic("15")
    world.advance(86_400)
    assert listed(world)[0].remaining_atomic == atomic("25")


def test_a_mandate_expires_by_the_clock_alone(world: World) -> None:
    create(world, expires_at=to_datetime(world.clock.now() + 10 * SECOND))
    world.advance(9)
    assert listed(world)[0].status == "active"
    world.advance(1)
    assert (listed(world)[0].status, listed(world)[0].remaining_atomic) == ("expired", 0)


def test_a_revoked_mandate_stays_revoked_at_the_first_moment(world: World) -> None:
    made = create(world)
    first = world.resources.mandates.revoke(world.payer.id, made.mandate.id)
    assert (first.status, first.remaining_atomic) == ("revoked", 0)
    world.advance(60)
    again = world.resources.mandates.revoke(world.payer.id, made.mandate.id)
    assert again.mandate.revoked_at_ms == first.mandate.revoked_at_ms == first.mandate.updated_at_ms
    assert listed(world)[0].mandate.revoked_at_ms == first.mandate.revoked_at_ms


def test_an_expired_mandate_can_be_revoked(world: World) -> None:
    made = create(world, expires_at=to_datetime(world.clock.now() + SECOND))
    world.advance(60)
    revoked = world.resources.mandates.revoke(world.payer.id, made.mandate.id)
    assert revoked.status == "revoked"


def test_the_newest_mandates_come_first_and_in_pages(world: World) -> None:
    ids = []
    for _ in range(3):
        ids.append(create(world).mandate.id)
        world.advance(1)
    first = world.resources.mandates.list(world.payer.id, limit=2)
    rest = world.resources.mandates.list(world.payer.id, after=first.next)
    assert [item.mandate.id for item in (*first.records, *rest.records)] == ids[::-1]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"amount_per_period": "0.00"}, AmountOutOfRange),
        ({"amount_per_period": "1.0000001"}, ValidationFailed),
        ({"amount_per_period": "-1"}, ValidationFailed),
        ({"asset_symbol": "USDT"}, UnsupportedAsset),
        ({"vault_id": "vault_" + "x" * 24}, NotFound),
        ({"expires_at": to_datetime(0)}, ValidationFailed),
        ({"expires_at": 1_790_000_000_000}, ValidationFailed),
        ({"expires_at": datetime(2030, 1, 1)}, ValidationFailed),  # noqa: DTZ001 - without a zone
    ],
)
def test_what_cannot_be_approved_is_refused(
    memory_world: World, given: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        create(memory_world, **given)
    assert not listed(memory_world)


def test_an_expiry_must_lie_ahead(memory_world: World) -> None:
    with pytest.raises(ValidationFailed) as caught:
        create(memory_world, expires_at=to_datetime(memory_world.clock.now()))
    assert [field.path for field in caught.value.fields] == ["expires_at"]
    assert create(memory_world, expires_at=to_datetime(MAX_INSTANT)).status == "active"


def test_a_vault_of_another_account_can_not_be_approved(world: World) -> None:
    other = world.vault_of(world.merchant).id
    with pytest.raises(NotFound) as caught:
        create(world, vault_id=other)
    assert caught.value.resource == "vault"


def test_an_account_that_may_not_act_approves_nothing_and_still_revokes(world: World) -> None:
    made = create(world)
    world.resources.accounts.change(world.payer.id, status="suspended")
    with pytest.raises(AccountSuspended):
        create(world)
    revoked = world.resources.mandates.revoke(world.payer.id, made.mandate.id)
    assert revoked.status == "revoked"


def test_another_accounts_mandate_and_another_tenants_are_not_found(world: World) -> None:
    made = create(world)
    app = world.service.tenants.create_app("Other", "other")
    stranger = world.service.tenants.system_authority(app.environments["sandbox"])
    with pytest.raises(NotFound) as caught:
        world.resources.mandates.revoke(world.merchant.id, made.mandate.id)
    assert caught.value.resource == "mandate"
    for call in (
        lambda: world.service.acting_as(stranger).mandates.revoke(world.payer.id, made.mandate.id),
        lambda: world.service.acting_as(stranger).mandates.list(world.payer.id),
        lambda: world.service.acting_as(stranger).mandates.create(world.payer.id, new(world)),
    ):
        with pytest.raises(NotFound) as caught:
            call()
        assert caught.value.resource == "account"
    assert listed(world)[0].status == "active"


@pytest.mark.parametrize("fault", [commit_lost, commit_failed])
def test_a_commit_without_an_answer_makes_one_mandate(world: World, fault: Any) -> None:
    faulty = FaultyStorage(world.storage, 1, fault, ("transact",))
    made = (
        world.restarted(faulty).acting_as(world.server).mandates.create(world.payer.id, new(world))
    )
    assert faulty.had_its_fault
    assert [item.mandate.id for item in listed(world)] == [made.mandate.id]


def test_a_key_makes_one_mandate_and_answers_after_its_expiry_too(world: World) -> None:
    wanted = new(world, expires_at=to_datetime(world.clock.now() + SECOND))

    def make() -> MandateDetails:
        return world.resources.mandates.create(world.payer.id, wanted, idempotency_key=once("k"))

    assert answer_of(make) is None
    world.advance(60)
    assert answer_of(make) is not None
    assert len(listed(world)) == 1
