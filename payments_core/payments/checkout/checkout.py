"""Public checkout: who a payer is, and what a payer sees (contract §6 "Public checkout").

A payer has a Payment's client secret, or a link whose code is exchanged for it. What a payer does
is in `checkout/direct_options.py`.
"""

from __future__ import annotations

import attrs

from payments_core.clock import Instant
from payments_core.credentials.tokens import Claims, TokenInvalid
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound, PaymentExpired, Unauthorized
from payments_core.payments.checkout.links import Links, environment_of
from payments_core.payments.details import PaymentDetails, load_details
from payments_core.payments.options.record import DirectOption
from payments_core.payments.record import Payment, PaymentLink
from payments_core.storage.port import Snapshot
from payments_core.tenants.authorization import Authority, Requirement, authorize
from payments_core.tenants.record import Environment

PAYER = Requirement("payer", products=("payments", "public_checkout"))
"""What every call of a payer needs."""


@attrs.frozen
class ExchangedLink:
    """What a link's code is exchanged for; the code works until `expires_at`."""

    payment_id: str
    client_secret: str = attrs.field(repr=False)
    expires_at: Instant


@attrs.frozen
class CheckoutState:
    """What a checkout page polls: the Payment and its direct options, without receipts."""

    payment: Payment
    options: tuple[DirectOption, ...]


class Checkout:
    """Lets a payer in, and shows one Payment."""

    def __init__(self, ports: Ports, links: Links) -> None:
        self._storage = ports.storage
        self._clock = ports.clock
        self._tokens = ports.tokens
        self._links = links

    def authenticate(self, secret: str, *, mode: str) -> tuple[Environment, Claims]:
        """Whose Payment a client secret is of, whatever became of that. Raises Unauthorized."""
        try:
            claims = self._tokens.read_payment_secret(secret)
        except TokenInvalid:
            raise Unauthorized() from None
        environment = self._storage.read(
            claims.environment_id,
            lambda snapshot: snapshot.get(Environment, claims.environment_id),
        )
        if environment is None or environment.mode != mode:
            raise Unauthorized()
        return environment, claims

    def exchange(self, code: str, *, mode: str) -> ExchangedLink:
        """The Payment of a link's code, with its client secret; repeatable until it expires.

        Raises NotFound, alike for a code that never was and for one of another mode;
        EntitlementRequired; PaymentExpired. Whatever is not found ends at the same look-up, so
        that its time tells no more than its bytes.
        """
        environment_id = environment_of(code)
        digests = self._links.candidate_digests(code)

        def load(snapshot: Snapshot) -> tuple[Environment | None, Payment | None]:
            links = [snapshot.get(PaymentLink, digest) for digest in digests]
            link = next((link for link in links if link is not None), None)
            if link is None or link.mode != mode:
                return None, None
            return snapshot.get(Environment, environment_id), snapshot.get(Payment, link.payment_id)

        environment, payment = self._storage.read(environment_id, load)
        if payment is None or environment is None or environment.mode != mode:
            raise NotFound("payment link")
        authorize(PAYER, environment, None, None, payment.id)
        if self._clock.now() >= payment.expires_at:
            raise PaymentExpired(payment.expires_at)
        claims = Claims(environment_id, payment.id, payment.api_version, 0)
        secret = self._tokens.payment_secret(claims)
        return ExchangedLink(payment.id, secret, payment.expires_at)

    def get_payment(self, authority: Authority, payment_id: str) -> PaymentDetails:
        """The payer's Payment. Raises NotFound."""
        authority.require_payment(payment_id)
        return self._storage.read(
            authority.partition,
            lambda snapshot: load_details(snapshot, load_payment(snapshot, payment_id)),
        )

    def get_state(self, authority: Authority, payment_id: str) -> CheckoutState:
        """How the payer's Payment stands, out of one snapshot. Raises NotFound."""
        authority.require_payment(payment_id)

        def load(snapshot: Snapshot) -> CheckoutState:
            payment = load_payment(snapshot, payment_id)
            options = [snapshot.get(DirectOption, id) for id in payment.direct_option_ids]
            return CheckoutState(payment, tuple(one for one in options if one is not None))

        return self._storage.read(authority.partition, load)


def load_payment(snapshot: Snapshot, payment_id: str) -> Payment:
    """The Payment. Raises NotFound."""
    payment = snapshot.get(Payment, payment_id)
    if payment is None:
        raise NotFound("payment")
    return payment
