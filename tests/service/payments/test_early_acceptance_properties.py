"""Under every policy and reorg, what was released early is undone with its payment, or stands.

Everything happens through the public operations, on a simulated chain that is final with three
blocks on top; reorgs go as deep as that allows.
"""

from __future__ import annotations

import attrs
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from payments_core.acceptance import Acceptance
from payments_core.chains import scanner
from payments_core.chains.simulated.blocks import CONFIRMATIONS
from payments_core.errors import PaymentsError
from payments_core.payment_settings.record import PaymentTerms
from payments_core.payments.details import PaymentDetails
from tests.service.payments.test_early_acceptance import ANY, Shop
from tests.service.world import BASE, OTHER_WALLET, STRANGER, USDC, WALLET, atomic

WALLETS = (WALLET, OTHER_WALLET)

ROWS = st.builds(
    Acceptance,
    st.sampled_from(["latest", "safe"]),
    depth=st.integers(0, CONFIRMATIONS - 1),
    up_to=st.just("10.00"),
)


@attrs.frozen
class Story:
    """What happens to a Payment of 5 USDC.

    `transfers` are (amount, wallet, seconds after it); then `seconds` pass, and a reorg of `depth`
    blocks comes. `spends_again` has the payers send their money to somebody else after it.
    """

    row: Acceptance
    confirmations: int
    fee_bps: int
    is_cancelled: bool
    transfers: tuple[tuple[str, str, int], ...]
    refund: str | None
    depth: int
    reinclude: bool
    spends_again: bool
    pays_after: bool
    scans_notice: bool


STORIES = st.builds(
    Story,
    row=ROWS,
    confirmations=st.sampled_from([0, 0, 2]),
    fee_bps=st.sampled_from([0, 100]),
    is_cancelled=st.booleans(),
    transfers=st.lists(
        st.tuples(
            st.sampled_from(["5.00", "5.00", "2.50", "0.01"]),
            st.sampled_from(WALLETS),
            st.integers(0, CONFIRMATIONS),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    refund=st.sampled_from([None, "all", "2.50", "5.00"]),
    depth=st.integers(1, CONFIRMATIONS),
    reinclude=st.booleans(),
    spends_again=st.booleans(),
    pays_after=st.booleans(),
    scans_notice=st.booleans(),
)


CALM = Story(
    row=Acceptance("latest", up_to="10.00"),
    confirmations=0,
    fee_bps=0,
    is_cancelled=False,
    transfers=(("5.00", WALLET, 1),),
    refund=None,
    depth=2,
    reinclude=False,
    spends_again=False,
    pays_after=False,
    scans_notice=False,
)
"""A release that its Payment believes is undone, and no scan notices it."""

REFUNDED = attrs.evolve(
    CALM,
    is_cancelled=True,
    transfers=(("5.00", OTHER_WALLET, CONFIRMATIONS), ("2.50", WALLET, 0)),
    refund="2.50",
    depth=CONFIRMATIONS,
    spends_again=True,
)
"""A transfer is undone and spent elsewhere after its refund was requested, and another is final."""


def send(shop: Shop, amount: str, to: str, source: str) -> None:
    shop.resources.sandbox.transfer(BASE, "USDC", amount, to=to, from_=source)


def play(story: Story) -> tuple[Shop, PaymentDetails]:
    shop = Shop(story.row, ANY)
    more = {BASE: story.confirmations} if story.confirmations else {}
    terms = PaymentTerms(fee_bps=story.fee_bps, confirmations=more)
    shop.resources.payment_settings.replace(terms)
    shop.fund("50.00", shop.merchant)
    for wallet in WALLETS:
        shop.chain.mint(USDC.address, wallet, atomic("50"), f"wallet-{wallet}")
    payment = shop.payment("5.00")
    shop.run()
    if story.is_cancelled:
        shop.resources.payments.cancel(payment.payment.id)
    escrow = str(payment.payment.escrow_address)
    for amount, wallet, seconds in story.transfers:
        send(shop, amount, escrow, wallet)
        shop.run()
        shop.advance(seconds)
    if story.refund is not None:
        try:
            shop.refund(payment, None if story.refund == "all" else story.refund)
        except PaymentsError as refused:
            event(f"refund refused: {refused.code}")
        shop.run()
    event(f"{shop.now(payment).status} at the reorg")
    shop.reorg(story.depth, reinclude=story.reinclude)
    if story.spends_again:
        for wallet in WALLETS:
            send(shop, "40.00", STRANGER, wallet)
    if story.pays_after:
        send(shop, "1.00", escrow, OTHER_WALLET)
    shop.advance(1)
    shop.finish()
    shop.finish()
    return shop, payment


@pytest.mark.timeout(300)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(STORIES)
@example(CALM)
@example(attrs.evolve(CALM, depth=CONFIRMATIONS, spends_again=True))
@example(REFUNDED)
def test_nothing_is_paid_twice_and_the_chain_has_what_the_books_say(story: Story) -> None:
    remembered = scanner.RING_BLOCKS
    scanner.RING_BLOCKS = remembered if story.scans_notice else 1
    try:
        shop, payment = play(story)
    finally:
        scanner.RING_BLOCKS = remembered
    after = shop.now(payment)
    books, escrow = after.books, shop.on_chain(str(after.escrow_address))
    merchant, refunds = shop.on_chain(shop.vault_address(shop.merchant)), after.refunded_atomic
    event(f"{after.status} at the end")
    assert after.status not in ("processing", "accepted", "executing")
    assert (after.unsettled, after.refunding) == ((), ())
    assert escrow == books.held_atomic + books.fees
    assert merchant == atomic("50") + books.recipient
    assert books.recipient >= 0
    assert books.held_atomic >= 0
    assert after.received_atomic == escrow + books.recipient + refunds
    assert shop.held(shop.merchant)[1] == 0
    receipts = shop.resources.payments.list_receipts(after.id).receipts.records
    verified = [one for one in receipts if one.status == "verified"]
    assert after.received_atomic == sum(one.amount_atomic for one in verified)
    for one in verified:
        seen = shop.chain.transaction(one.transaction_hash)
        assert seen is not None
        assert seen.block.hash == one.block_hash
    made = shop.resources.payments.list_refunds(after.id).records
    refunded = [one for one in made if one.status == "succeeded"]
    assert refunds == sum(one.amount_atomic for one in refunded)
    for wallet in WALLETS:
        back = [one for one in refunded if one.destination == wallet]
        came = [one for one in verified if one.sender == wallet]
        assert sum(one.amount_atomic for one in back) <= sum(one.amount_atomic for one in came)
