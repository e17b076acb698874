"""The steps of a Payment that reaches its recipient by a router. Pure.

The release pays the router, and the Payment stays `executing` until the destination chain proves
the router's payment, or its own chain proves that the router has returned the funds.
"""

from __future__ import annotations

from payments_core.clock import Instant
from payments_core.engine.decision import Decision, NewJob
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.payments import lifecycle
from payments_core.payments.record import Payment, PaymentRoute

FOLLOW_ROUTE = "payments.follow_route"
RETURNED = "route_returned"


def hand_over(payment: Payment, *, now: Instant) -> Decision[None]:
    """The release is final: the router has the funds, and a job follows the route."""
    route = _route_of(payment)
    paid = evolve(route, payment_hash=payment.release_hash)
    handed = evolve(payment, route=paid, updated_at_ms=now)
    job = NewJob("chain", FOLLOW_ROUTE, f"payment:{payment.id}", now, payment.id)
    return Decision(None, replaces=(handed,), jobs=(job,))


def settle_delivery(payment: Payment, hash: str, amount: int, *, now: Instant) -> Step[Payment]:
    """The recipient has the router's payment, and it is final."""
    delivered = evolve(_route_of(payment), delivery_hash=hash, delivered_atomic=Atomic(amount))
    return lifecycle.settle(evolve(payment, route=delivered), now=now)


def take_back(payment: Payment, hash: str, *, now: Instant) -> Step[Payment]:
    """The router has returned the funds: they are in escrow again, and wait for a decision."""
    route = _route_of(payment)
    returned = evolve(route, payment_hash=None, return_hashes=(*route.return_hashes, hash))
    return lifecycle.fail_release(evolve(payment, route=returned), RETURNED, now=now)


def undo_hand_over(payment: Payment, reason: str, *, now: Instant) -> Step[Payment]:
    """A reorg beyond finality undid the release before the router had paid: it has nothing."""
    idle = evolve(_route_of(payment), payment_hash=None)
    return lifecycle.fail_release(evolve(payment, route=idle), reason, now=now)


def _route_of(payment: Payment) -> PaymentRoute:
    assert payment.route is not None
    return payment.route
