"""Lists of Payments: the filters that an index answers, however many Payments there are."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.clock import to_datetime
from payments_core.payments.record import Payment
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import Position
from tests.service.world import World

LOOKS_AT_FIVE = Weakness(
    stale_get=0, stale_find=0, short_page=1, rerun=0, lost_commit=0, short_claim=0, clock_ahead=0
)
"""A page with comparisons looks at five rows at most, as others do at 10,000."""


@pytest.fixture
def short_world() -> World:
    return World(MemoryStorage(LOOKS_AT_FIVE)).open()


def list_ids(world: World, **filters: Any) -> list[str]:
    """The ids on the first page."""
    page = world.resources.payments.list_briefly(**filters)
    return [payment.id for payment in page.records]


def test_a_reference_is_found_behind_any_number_of_newer_payments(short_world: World) -> None:
    world = short_world
    first = world.payment(reference="order-1").payment
    for _ in range(6):
        world.payment(reference="order-2")
    assert list_ids(world, reference="order-1") == [first.id]
    assert list_ids(world, reference="order-1", account_id=world.merchant.id) == [first.id]
    assert list_ids(world, reference="order-1", status=first.status) == [first.id]


def walk(world: World, **filters: Any) -> list[list[str]]:
    """The ids on each page."""
    pages: list[list[str]] = []
    after: Position | None = None
    while after is not None or not pages:
        page = world.resources.payments.list_briefly(**filters, after=after, limit=2)
        pages.append([payment.id for payment in page.records])
        after = page.next
    return pages


@pytest.mark.parametrize("of_one", [False, True])
def test_a_day_is_found_behind_any_number_of_newer_payments(
    short_world: World, of_one: bool
) -> None:
    """Nor are all that are older looked through."""
    world, made = short_world, []
    for _ in range(30):
        made.append(world.payment().payment)
        world.system.advance(1)
    account_id = world.merchant.id if of_one else None
    for first, last in ((0, 3), (8, 12), (24, 29), (29, 29)):
        wanted = [payment.id for payment in made[first : last + 1]][::-1]
        since, until = made[first].created_at_ms, made[last].created_at_ms
        pages = walk(
            world,
            created_after=to_datetime(since),
            created_before=to_datetime(until + 1),
            account_id=account_id,
        )
        assert [id for page in pages for id in page] == wanted
        assert all(pages[:-1])  # each but the last has one


def test_what_was_made_at_one_instant_is_within_it_or_not(short_world: World) -> None:
    world = short_world
    made = sorted((world.payment().payment for _ in range(9)), key=lambda one: one.id)
    at = made[0].created_at_ms
    for bound in ({"created_before": to_datetime(at + 1)}, {"created_after": to_datetime(at)}):
        pages = walk(world, **bound)
        assert [id for page in pages for id in page] == [one.id for one in reversed(made)]
    for bound in ({"created_before": to_datetime(at)}, {"created_after": to_datetime(at + 1)}):
        assert walk(world, **bound) == [[]]


def test_a_reference_goes_with_the_other_filters(world: World) -> None:
    shared = [world.payment(reference="order-1").payment for _ in range(3)]
    world.payment(reference="order-2")
    world.payment()
    world.resources.payments.cancel(shared[0].id)
    assert set(list_ids(world, reference="order-1")) == {payment.id for payment in shared}
    assert list_ids(world, reference="order-1", status="cancelled") == [shared[0].id]
    assert list_ids(world, reference="order-2", status="cancelled") == []
    assert list_ids(world, reference="order-1", account_id="acct_" + "0" * 24) == []
    for odd in ("order", "ORDER-1", "", "x" * 600):
        assert list_ids(world, reference=odd) == []


def test_pages_by_reference_have_each_payment_once(world: World) -> None:
    made = []
    for _ in range(5):
        made.append(world.payment(reference="order-1").payment)
        world.system.advance(1)
    seen: list[Payment] = []
    after: Position | None = None
    while True:
        page = world.resources.payments.list_briefly(reference="order-1", after=after, limit=2)
        seen += page.records
        after = page.next
        if after is None:
            break
    assert [payment.id for payment in seen] == [payment.id for payment in reversed(made)]
