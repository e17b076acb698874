"""The checks of a router that payers pay too (`routers.port.OffersRoutes`).

With pytest, a few lines beside the class of `RouterConformance` make it run::

    class TestMyOffers(OffersConformance):
        can_return = can_expire = True
        ...  # the hooks of `RouterConformance`, and

        def count_refunded(self, order):
            return self.sandbox.balance(order.source, order.refund_address)

        def expire(self):
            self.sandbox.advance(minutes=30)
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.clock import Instant, SystemClock
from payments_core.conformance.router.harness import Harness
from payments_core.entropy import system_entropy
from payments_core.networks import shipped_networks
from payments_core.routers.port import (
    OfferOrder,
    OfferProgress,
    OffersRoutes,
    RouteKeyReused,
    RouteOffer,
    RouteRefused,
)

RECIPIENT = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
REFUND_ADDRESS = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"


@attrs.frozen
class _Case:
    """An offer that nobody has paid, and what its addresses held before."""

    order: OfferOrder
    offer: RouteOffer
    received_before: int
    refunded_before: int


class OffersConformance(Harness):
    """Every check of a router's offers. Nothing that is paid to an address is ever kept."""

    can_expire: bool = False
    """`expire` works."""

    def open_router(self) -> OffersRoutes:
        """A handle to the router, as another process would have it."""
        raise NotImplementedError  # the adapter's own test class says how

    def count_refunded(self, order: OfferOrder) -> int:
        """The refund address's balance of the source asset, by the chain."""
        raise NotImplementedError  # the adapter's own test class says how

    def expire(self) -> None:
        """Let enough time pass for the terms of every offer to expire."""
        raise NotImplementedError  # the adapter's own test class says how

    def now(self) -> Instant:
        """The time by which an offer's validity is judged."""
        return SystemClock().now()

    def new_offer_order(self, **changes: object) -> OfferOrder:
        """An order under a key that was never used."""
        terms = {
            "key": f"offer_{system_entropy(12).hex()}",
            "source": self.source,
            "destination": self.destination,
            "amount_atomic": 25_000_000,
            "recipient": RECIPIENT,
            "refund_address": REFUND_ADDRESS,
        }
        return OfferOrder(**{**terms, **changes})  # type: ignore[arg-type]

    # Offers.

    def test_the_sources_of_a_destination_are_its_own(self) -> None:
        sources = self.open_router().list_sources(self.destination)
        ids = [asset.id for asset in sources]
        assert self.source.id in ids, f"{self.source.id} must be a source, of {ids}"
        assert self.destination.id not in ids, "nobody routes an asset to itself"
        assert len(set(ids)) == len(ids), "each source must be listed once"

    def test_the_same_order_has_the_same_offer(self) -> None:
        router, order = self.open_router(), self.new_offer_order()
        first = router.offer(order)
        for handle in (router, self.open_router()):
            again = handle.offer(order)
            assert again == first, f"the offer must stay {first}, but became {again}"

    def test_an_offer_says_what_to_pay_and_until_when(self) -> None:
        offer = self.open_router().offer(self.new_offer_order())
        assert offer.amount_atomic > 0, f"a payer cannot send {offer.amount_atomic}"
        left_ms = offer.expires_at_ms - self.now()
        assert left_ms > 0, f"the offer expired {-left_ms} ms ago"

    def test_each_offer_has_an_address_of_its_own(self) -> None:
        router, order = self.open_router(), self.new_offer_order()
        again = attrs.evolve(order, key=f"{order.key}/2")  # the next offer to the same payer
        addresses = {router.offer(one).address for one in (order, again, self.new_offer_order())}
        assert len(addresses) == 3, "two offers must not share an address"

    def test_somebody_can_hold_an_offers_address(self) -> None:
        address = self.open_router().offer(self.new_offer_order()).address
        chain_type = shipped_networks().find_network(self.source.chain_id).chain_type
        assert shipped_networks().is_wallet_address(chain_type, address), (
            f"funds sent to {address} would be lost"
        )

    def test_an_offers_key_with_another_order_is_refused(self) -> None:
        router, order = self.open_router(), self.new_offer_order()
        router.offer(order)
        for changes in (
            {"amount_atomic": order.amount_atomic + 1},
            {"recipient": order.refund_address},
            {"refund_address": order.recipient},
        ):
            try:
                offer = router.offer(self.new_offer_order(key=order.key, **changes))
            except RouteKeyReused:
                continue
            raise AssertionError(f"{[*changes]} changed under a used key, but it got {offer}")

    def test_an_offer_that_was_never_made_is_not_followed(self) -> None:
        try:
            answer = self.open_router().follow_offer(self.new_offer_order().key)
        except RouteRefused:
            return
        raise AssertionError(f"no offer was made, but the answer was: {answer}")

    # Payments.

    def test_an_offer_that_nobody_paid_is_waiting(self) -> None:
        case, other = self._open_case(), self._open_case()
        self.pay(other.offer.address, other.offer.amount_atomic)
        progress = self._follow(case)
        assert progress.state == "waiting", f"nobody has paid, but it is {progress.state}"

    def test_an_offer_delivers_its_exact_amount(self) -> None:
        case = self._open_case()
        self.pay(case.offer.address, case.offer.amount_atomic)
        progress = self._follow(case)
        assert progress.state == "delivered", f"it was paid, but is {progress.state}"
        self._require_transfers(case, progress, case.order.amount_atomic)
        self._require_moved(case, received=case.order.amount_atomic, refunded=0)

    def test_an_offer_is_delivered_once_however_often_it_is_followed(self) -> None:
        case = self._open_case()
        self.pay(case.offer.address, case.offer.amount_atomic)
        first = self._follow(case)
        for handle in (self.open_router(), self.open_router()):
            self.wait()
            again = handle.follow_offer(case.order.key)
            assert again == first, f"the answer must stay {first}, but became {again}"
        self._require_moved(case, received=case.order.amount_atomic, refunded=0)

    def test_a_lost_answer_leaves_one_delivery_of_an_offer(self) -> None:
        self.require_capability("can_lose_answers")
        case, router = self._open_case(), self.open_router()
        self.pay(case.offer.address, case.offer.amount_atomic)
        router.follow_offer(case.order.key)
        self.wait()
        self.lose_next_answer()
        self.require_unavailable(lambda: router.follow_offer(case.order.key))
        self._follow(case)
        self._require_moved(case, received=case.order.amount_atomic, refunded=0)

    def test_a_short_payment_is_not_kept(self) -> None:
        case = self._open_case()
        paid = case.offer.amount_atomic // 5
        self.pay(case.offer.address, paid)
        self._require_settled(case, (paid,))

    def test_a_second_payment_is_not_kept(self) -> None:
        case = self._open_case()
        paid = case.offer.amount_atomic
        self.pay(case.offer.address, paid)
        self._follow(case)
        self.pay(case.offer.address, paid)
        self._require_settled(case, (paid, paid))
        received = self.count_received(case.order) - case.received_before
        assert received >= case.order.amount_atomic, "the second must not undo the first"

    def test_a_late_payment_is_not_kept(self) -> None:
        self.require_capability("can_expire")
        case = self._open_case()
        self.expire()
        paid = case.offer.amount_atomic
        self.pay(case.offer.address, paid)
        self._require_settled(case, (paid,))

    def test_the_address_of_an_earlier_offer_keeps_nothing(self) -> None:
        case = self._open_case()
        again = attrs.evolve(case.order, key=f"{case.order.key}/2")
        self.open_router().offer(again)
        paid = case.offer.amount_atomic
        self.pay(case.offer.address, paid)
        self._require_settled(case, (paid,))
        state = self.open_router().follow_offer(again.key).state
        assert state == "waiting", f"nobody has paid the newer offer, but it is {state}"

    def test_a_return_goes_whole_to_the_refund_address(self) -> None:
        self.require_capability("can_return")
        case = self._open_case()
        self.return_next()
        paid = case.offer.amount_atomic
        self.pay(case.offer.address, paid)
        progress = self._follow(case)
        assert progress.state == "returned", f"it must be returned, but is {progress.state}"
        self._require_transfers(case, progress, paid)
        self._require_moved(case, received=0, refunded=paid)
        self.wait()
        again = self.open_router().follow_offer(case.order.key)
        assert again == progress, f"a returned payment must stay returned, but became {again}"

    def test_offers_of_a_router_that_is_down_are_unavailable(self) -> None:
        self.require_capability("can_fail")
        router, order = self.open_router(), self.new_offer_order()
        router.offer(order)
        self.fail()
        self.require_unavailable(lambda: router.offer(self.new_offer_order()))
        self.require_unavailable(lambda: router.follow_offer(order.key))
        self.restore()
        router.offer(order)

    # Shared by the checks.

    def _open_case(self) -> _Case:
        order = self.new_offer_order()
        offer = self.open_router().offer(order)
        return _Case(order, offer, self.count_received(order), self.count_refunded(order))

    def _follow(self, case: _Case) -> OfferProgress:
        """What became of the payments, after enough time."""
        router = self.open_router()
        router.follow_offer(case.order.key)
        self.wait()
        return router.follow_offer(case.order.key)

    def _require_transfers(self, case: _Case, progress: OfferProgress, amount_atomic: int) -> None:
        """The transaction of a final state moves this amount in one transfer."""
        order, is_delivery = case.order, progress.state == "delivered"
        asset = order.destination if is_delivery else order.source
        to = order.recipient if is_delivery else order.refund_address
        assert progress.transaction_hash is not None, "a final state must name its transaction"
        logs = [
            log
            for log in self.read_transfers(asset.chain_id, progress.transaction_hash)
            if (log.recipient, log.token_address) == (to, asset.address)
        ]
        amounts = [log.amount_atomic for log in logs]
        assert amounts == [amount_atomic], f"{amount_atomic} must come to {to}, not {amounts}"
        said = progress.amount_atomic
        assert said in (None, amount_atomic), f"it says {said}, and the chain {amount_atomic}"
        if not is_delivery:
            sender = logs[0].sender
            assert sender == case.offer.address, f"it must come from the offer, not from {sender}"

    def _require_moved(self, case: _Case, *, received: int, refunded: int) -> None:
        found = (
            self.count_received(case.order) - case.received_before,
            self.count_refunded(case.order) - case.refunded_before,
        )
        expected = (received, refunded)
        assert found == expected, f"received and refunded must be {expected}, but are {found}"

    def _require_settled(self, case: _Case, payments: Sequence[int]) -> None:
        """Each payment is delivered in proportion, or returned in full; nothing is left over.

        A router may hold what is short until its offer ends: the rest may still come.
        """
        progress = self._follow(case)
        if progress.state == "paid" and self.can_expire:
            self.expire()
            progress = self._follow(case)
        assert progress.state in ("delivered", "returned"), f"it was paid, but is {progress.state}"
        received = self.count_received(case.order) - case.received_before
        refunded = self.count_refunded(case.order) - case.refunded_before
        price, amount = case.offer.amount_atomic, case.order.amount_atomic
        ends = {(0, 0)}  # what may have been received and refunded
        for paid in payments:
            delivered = {(got + amount * paid // price, back) for got, back in ends}
            ends = delivered | {(got, back + paid) for got, back in ends}
        assert (received, refunded) in ends, (
            f"of {payments} for {amount}, {received} was delivered and {refunded} returned"
        )
