"""Public checkout: authenticates payers and shows them a Payment (contract §6 "Public checkout").

A payer has a Payment's client secret, or a link whose code is exchanged for it. The payer's
operations are in `checkout/options.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import ClassVar, TypeVar

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.chains.scanner import read_cursor
from payments_core.clock import Instant
from payments_core.credentials.tokens import Claims, TokenInvalid
from payments_core.engine.decision import CommitAuthority, WorkerAuthority
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound, PaymentExpired, Unauthorized
from payments_core.evolve import evolve
from payments_core.field_views import FieldView, instant_view
from payments_core.payment_settings.record import (
    DEFAULT_SETTINGS,
    SETTINGS_ID,
    Branding,
    PaymentMethod,
    PaymentSettings,
)
from payments_core.payments.checkout.options import CheckoutMethod
from payments_core.payments.checkout.stages import (
    Notice,
    Stage,
    compute_due,
    find_stage,
    list_notices,
)
from payments_core.payments.details import (
    OptionDetails,
    PaymentDetails,
    load_details,
    load_receipts,
    sum_pending_amount,
)
from payments_core.payments.links import Links, environment_of
from payments_core.payments.options.lifecycle import is_open
from payments_core.payments.options.offer import Offer
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.paying.selection import has_locking_submission
from payments_core.payments.receipts.progress import ReceiptProgress, find_progress
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment, PaymentLink
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import Snapshot
from payments_core.tenants.authorization import Authority, Requirement, authorize
from payments_core.tenants.record import Environment
from payments_core.validation.fields import Credential

T = TypeVar("T")

Offered = Mapping[PaymentMethod, OptionDetails]
DescribeMethods = Callable[[CommitAuthority, Payment], tuple[CheckoutMethod, ...]]
"""The ways to pay a Payment, as `PublicOptions` describes them."""

PAYER = Requirement("payer", products=("payments", "public_checkout"))
"""The parts that every call of a payer needs."""


@attrs.frozen
class ExchangedLink:
    """The result of exchanging a link's code; the code works until `expires_at`.

    >>> link = service.checkout.exchange_link(code, mode="sandbox")
    >>> environment, claims = service.checkout.authenticate(link.client_secret, mode="sandbox")
    """

    payment_id: str
    client_secret: str = attrs.field(repr=False)
    expires_at_ms: Instant

    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")


@attrs.frozen
class CheckoutState:
    """The data that a checkout page polls: the Payment and its public options, without receipts.

    >>> visitor.public_payments.read_state(payment.id)
    CheckoutState(payment=Payment(id='payment_...', ...), options=<2 PaymentOption>)
    """

    __repr__ = brief_repr

    payment: Payment
    options: tuple[PaymentOption, ...]
    progress: ReceiptProgress | None = None


@attrs.frozen
class CheckoutPage:
    """The data of a checkout link's page, from one snapshot.

    `due_atomic` is the atomic amount to send now; zero while a transfer that the payer has named
    may come. `scanned_height` is the newest block that was scanned; -1 without one. `landmark` is a
    block (height, hash) that a wallet on the same network shows too. `scanned_at_ms` is when the
    last scan of the chain began; None without one. `app_name` names the merchant where the branding
    does not. `allowed_origins` are those of the settings, whose pages may frame this one.
    `refunding_atomic` is what refunds are sending back that are not final.
    `looked_at` is the time of the snapshot. `client_secret` is set while the link can be
    exchanged for it. `methods` are those that can be used now, and `offered` has for each that has
    a provider the newest offer that was not paid.
    """

    payment: Payment
    receipts: tuple[Receipt, ...]
    branding: Branding
    stage: Stage
    notices: tuple[Notice, ...]
    pending_atomic: int
    due_atomic: int
    refunding_atomic: int
    scanned_height: int
    landmark: tuple[int, str] | None
    scanned_at_ms: Instant | None
    app_name: str
    looked_at: Instant
    client_secret: str | None = attrs.field(repr=False)
    methods: tuple[CheckoutMethod, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    offered: Mapping[PaymentMethod, OptionDetails] = attrs.field(factory=dict)


class Checkout:
    """Authenticates a payer, and shows one Payment."""

    def __init__(self, ports: Ports, links: Links, describe_methods: DescribeMethods) -> None:
        self._storage = ports.storage
        self._clock = ports.clock
        self._tokens = ports.tokens
        self._versions = ports.versions
        self._networks = ports.networks
        self._links = links
        self._describe_methods = describe_methods

    def authenticate(self, secret: Credential, *, mode: str) -> tuple[Environment, Claims]:
        """The caller of a client secret, in any state of its Payment. Raises Unauthorized."""
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

    def exchange(self, code: Credential, *, mode: str) -> ExchangedLink:
        """The Payment of a link's code, with its client secret; repeatable until it expires.

        Raises NotFound, alike for an unknown code and for a code of another mode;
        EntitlementRequired; PaymentExpired. Every failure ends at the same look-up, so
        that its duration reveals no more than its bytes.
        """
        environment, payment, _ = self._find_linked(code, mode, lambda snapshot, payment: None)
        if self._clock.now() >= payment.expires_at_ms:
            raise PaymentExpired(payment.expires_at_ms)
        secret = self._make_secret(environment, payment, payment.api_version)
        return ExchangedLink(payment.id, secret, payment.expires_at_ms)

    def get_page(self, code: Credential, *, mode: str) -> CheckoutPage:
        """The data of a link's page, also after the Payment's end; the secret only before it.

        Raises NotFound, as `exchange` does; EntitlementRequired.
        """

        now = self._clock.now()

        def load_more(
            snapshot: Snapshot, payment: Payment
        ) -> tuple[tuple[Receipt, ...], PaymentSettings, bool, Offered, int]:
            settings = snapshot.get(PaymentSettings, SETTINGS_ID) or DEFAULT_SETTINGS
            is_submitted = has_locking_submission(snapshot, payment, now=now)
            offered = _load_offered(snapshot, payment)
            receipts = load_receipts(snapshot, payment.id)
            return receipts, settings, is_submitted, offered, _sum_refunding(snapshot, payment)

        environment, payment, more = self._find_linked(code, mode, load_more)
        receipts, settings, is_submitted, offered, refunding = more
        pending_amount = sum_pending_amount(payment, receipts)
        due = 0 if is_submitted else compute_due(payment, pending_amount, now=now)
        worker = WorkerAuthority(environment.id, mode)
        methods = self._describe_methods(worker, payment) if due else ()
        usable = tuple(method for method in methods if method.available)
        cursor = read_cursor(self._storage, mode, payment.chain_id)
        is_open = now < payment.expires_at_ms
        newest = self._versions.current  # what the page's script is written for
        return CheckoutPage(
            payment=payment,
            receipts=receipts,
            branding=settings.terms.branding,
            stage=find_stage(payment, now=now),
            notices=list_notices(
                payment,
                is_submitted=is_submitted,
                is_from_contract=any(receipt.is_from_contract for receipt in receipts),
            ),
            pending_atomic=pending_amount,
            due_atomic=due if usable else 0,
            refunding_atomic=refunding,
            scanned_height=-1 if cursor is None else cursor.tip,
            landmark=None if cursor is None else cursor.landmark,
            scanned_at_ms=None if cursor is None else cursor.scanned_at_ms,
            app_name=environment.app_name,
            looked_at=now,
            client_secret=self._make_secret(environment, payment, newest) if is_open else None,
            methods=usable,
            allowed_origins=settings.terms.allowed_origins,
            offered=offered,
        )

    def get_payment(self, authority: Authority, payment_id: str) -> PaymentDetails:
        """The payer's Payment. Raises NotFound."""
        authority.require_payment(payment_id)
        return self._storage.read(
            authority.partition,
            lambda snapshot: load_details(snapshot, load_payment(snapshot, payment_id)),
        )

    def get_state(self, authority: Authority, payment_id: str) -> CheckoutState:
        """The state of the payer's Payment, from one snapshot; how far its chain was scanned is
        read too, but only while a transfer waits. Raises NotFound."""
        authority.require_payment(payment_id)

        def load(snapshot: Snapshot) -> tuple[CheckoutState, tuple[Receipt, ...]]:
            payment = load_payment(snapshot, payment_id)
            found = snapshot.get_many(PaymentOption, payment.option_ids)
            options = (found[id] for id in payment.option_ids if id in found)
            receipts = load_receipts(snapshot, payment_id) if payment.is_pending else ()
            shown = tuple(option for option in options if option.is_public)
            return CheckoutState(payment, shown), receipts

        state, receipts = self._storage.read(authority.partition, load)
        if not receipts:
            return state
        cursor = read_cursor(self._storage, authority.mode, state.payment.chain_id)
        network = self._networks.get(state.payment.chain_id)
        height = -1 if cursor is None else cursor.tip
        return evolve(state, progress=find_progress(state.payment, receipts, network, height))

    def _find_linked(
        self, code: str, mode: str, load_more: Callable[[Snapshot, Payment], T]
    ) -> tuple[Environment, Payment, T]:
        """The Payment of a link's code, with the result of `load_more` in the same snapshot.

        Raises NotFound, EntitlementRequired.
        """
        environment_id = environment_of(code)
        digests = self._links.candidate_digests(code)

        def load(snapshot: Snapshot) -> tuple[Environment, Payment, T] | None:
            links = [snapshot.get(PaymentLink, digest) for digest in digests]
            link = next((link for link in links if link is not None), None)
            if link is None or link.mode != mode:
                return None
            environment = snapshot.get(Environment, environment_id)
            payment = snapshot.get(Payment, link.payment_id)
            if environment is None or payment is None or environment.mode != mode:
                return None
            return environment, payment, load_more(snapshot, payment)

        found = self._storage.read(environment_id, load)
        if found is None:
            raise NotFound("payment link")
        environment, payment, _ = found
        authorize(PAYER, environment, None, None, payment.id)
        return found

    def _make_secret(self, environment: Environment, payment: Payment, version: str) -> str:
        claims = Claims(environment.id, payment.id, version, 0)
        return self._tokens.payment_secret(claims)


def _load_offered(snapshot: Snapshot, payment: Payment) -> Offered:
    """By method, the newest open option whose provider's newest offer was not paid."""
    options = snapshot.get_many(PaymentOption, payment.option_ids)
    known = (options[id] for id in payment.option_ids if id in options)
    open_ones = [one for one in known if one.offer_id is not None and is_open(one)]
    offers = snapshot.get_many(Offer, [str(option.offer_id) for option in open_ones])
    return {
        option.method: OptionDetails(payment, option, offer=offer)
        for option in open_ones
        if (offer := offers.get(str(option.offer_id))) is not None and offer.status == "waiting"
    }


def _sum_refunding(snapshot: Snapshot, payment: Payment) -> int:
    """What the refunds that are not final send back; usually there are none."""
    if not payment.refunding:
        return 0
    found = snapshot.get_many(Refund, payment.refunding)
    return sum(refund.amount_atomic for refund in found.values())


def load_payment(snapshot: Snapshot, payment_id: str) -> Payment:
    """The Payment. Raises NotFound."""
    payment = snapshot.get(Payment, payment_id)
    if payment is None:
        raise NotFound("payment")
    return payment
