"""Whatever a payer sends to a router: all of it is delivered or returned, and nothing is kept."""

from __future__ import annotations

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_core.routers.simulated.offers import OFFER_TTL_MS
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.payments.offers.shopper import FULL, Shopper, terms_of
from tests.service.world import World, atomic

PRICE = atomic("25.075")


@attrs.frozen
class Sent:
    """A payer's transfer: so many cents, after a pause of so many seconds, by the newest quote or
    by the first."""

    cents: int
    pause_s: int
    by_first: bool


SENT = st.builds(
    Sent,
    cents=st.sampled_from([1, 700, 1254, 2507, 2508, 5015]),
    pause_s=st.sampled_from([0, 3, 30, OFFER_TTL_MS // 1000 + 1]),
    by_first=st.booleans(),
)


@given(sent=st.lists(SENT, min_size=1, max_size=4), refreshes=st.booleans())
@settings(max_examples=25, deadline=None)
def test_all_that_is_paid_is_delivered_or_comes_back(sent: list[Sent], refreshes: bool) -> None:
    world = World(MemoryStorage()).open()
    shopper = Shopper(world)
    first = shopper.routed()
    newest = shopper.refresh(first) if refreshes else first
    before = shopper.wallet_holds()
    for number, one in enumerate(sent):
        world.advance(one.pause_s)
        quote = first if one.by_first else newest
        source = f"0x{number + 0xE0000:040x}"
        shopper.pay_router(quote, f"{one.cents / 100:.2f}", source)
    world.advance(60)
    world.advance(3_600)
    payment = shopper.paid()
    returned = shopper.wallet_holds() - before
    addresses = {str(terms_of(first).address), str(terms_of(newest).address)}
    kept_for_deliveries = sum(shopper.wallet_holds(address) for address in addresses)
    assert returned + kept_for_deliveries == sum(one.cents for one in sent) * 10_000
    # What the router keeps it has delivered, in proportion.
    receipts = [one for one in shopper.details().receipts if one.status == "verified"]
    assert len(receipts) <= len(addresses)
    assert payment.received_atomic == sum(one.amount_atomic for one in receipts)
    assert abs(payment.received_atomic * PRICE // FULL - kept_for_deliveries) <= 2 * len(addresses)
    assert {one.payer for one in receipts} <= {first.option.refund_address}
    assert payment.books.held_atomic + payment.settled_atomic == payment.received_atomic
    if payment.received_atomic >= FULL:
        assert payment.status in ("succeeded", "executing")
