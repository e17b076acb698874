"""What the page of a link is given: above all, whether its payer should send anything now."""

from __future__ import annotations

from payments_core.payments.checkout.checkout import CheckoutPage
from payments_core.payments.options.submissions import SUBMISSION_LOCK_MS
from tests.service.payer import Payer
from tests.service.world import STRANGER, World, atomic

FULL = atomic("25.00")


def look(payer: Payer) -> CheckoutPage:
    service = payer.world.service
    url = service.parts.links.build_url(payer.paid())
    assert url is not None
    return service.checkout.read_page(url.rpartition("/")[2], mode="sandbox")


class TestATransferThatThePayerNamed:
    def test_is_waited_for_and_nothing_is_asked_for_meanwhile(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        assert (look(payer).due_atomic, look(payer).notices) == (FULL, ())
        payer.submit(option)
        assert (look(payer).due_atomic, look(payer).notices) == (0, ("submitted",))

    def test_an_invented_one_keeps_the_payer_from_paying_for_two_minutes(
        self, world: World
    ) -> None:
        payer = Payer(world)
        payer.submit(payer.option())
        world.advance(SUBMISSION_LOCK_MS // 1_000 - 1)
        assert look(payer).due_atomic == 0
        world.advance(1)
        assert (look(payer).due_atomic, look(payer).notices) == (FULL, ())

    def test_is_not_news_once_a_block_has_it(self, world: World) -> None:
        payer = Payer(world)
        option = payer.option()
        payer.submit(option, payer.pay("10.00"))
        world.run()
        page = look(payer)
        assert (page.notices, page.due_atomic, page.pending_atomic) == (
            (), FULL - atomic("10.00"), atomic("10.00"),
        )  # fmt: skip

    def test_what_another_wallet_named_counts_as_well(self, world: World) -> None:
        payer = Payer(world)
        first, second = payer.option(), payer.another()
        payer.select(first)
        payer.submit(second)
        assert look(payer).notices == ("submitted",)


def test_a_token_that_anybody_may_have_made_is_not_on_its_way(world: World) -> None:
    payer = Payer(world)
    option = payer.option()
    escrow = str(payer.paid().escrow_address)
    made_up = world.chain.transfer(STRANGER, None, escrow, FULL, "made-up")
    payer.submit(payer.another(), made_up)
    world.run()
    assert [receipt.status for receipt in look(payer).receipts] == ["observed"]
    assert (look(payer).due_atomic, look(payer).pending_atomic) == (FULL, 0)
    assert payer.read(option).pending_atomic == payer.option().pending_atomic == 0
