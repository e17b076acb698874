"""Quotes: create, read, and show whether one is done (interface "v1 quote flow").

A quote is a Payment with terms: its deposit address is the Payment's escrow, so that funds that
arrive there late, short or twice follow the Payment's reconciliation, and nothing is lost. In
another asset, or on another chain, the release goes to a router (`jobs.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from decimal import Decimal

import attrs

from payments_core.accounts.record import Account
from payments_core.addresses import AddressError, normalize_address
from payments_core.brief_repr import brief_repr
from payments_core.chains.port import AddressSpec
from payments_core.deposits.record import Deposit, DepositAddress
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey, require_request
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import (
    CapabilityNotActive,
    DependencyFailed,
    NotFound,
    UnsupportedAsset,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.money import format_amount
from payments_core.networks import Asset
from payments_core.payment_settings.record import (
    DEFAULT_SETTINGS,
    SETTINGS_ID,
    PaymentSettings,
    PaymentTerms,
)
from payments_core.payments.creation import Payee
from payments_core.payments.destinations import Destinations
from payments_core.payments.details import PaymentDetails
from payments_core.payments.disputes.lifecycle import PAYMENT_SESSION_STATUSES
from payments_core.payments.fees import deduct_fee
from payments_core.payments.operations import NewPayment, Payments
from payments_core.payments.record import Payment, PaymentRoute
from payments_core.pricing.answers import ask_estimate, ask_usd_prices
from payments_core.pricing.port import Estimate, NotPriced, Pricing, PricingUnavailable
from payments_core.quotes.record import QUOTE_LIFETIME_S, Quote
from payments_core.quotes.request import (
    Exchange,
    NewQuote,
    require_one_payer_and_amount,
    resolve_exchange,
)
from payments_core.quotes.terms import (
    QuoteTerms,
    compute_terms,
    format_rate,
    value_in_usd,
)
from payments_core.routers.port import RouteOrder, Router, RouteRefused, RouterUnavailable
from payments_core.storage.port import Snapshot, Transaction, Where
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key

_log = logging.getLogger(__name__)


@attrs.frozen
class QuoteDetails:
    """A quote and the Payment that carries it out; None once that was purged.

    >>> new = NewQuote(amount="7.00", user_id=eve.id, destination=ToAccount(account_id=bob.id))
    >>> shop.legacy.create_quote(new)
    QuoteDetails(quote=Quote(id='quote_...', ...), payment=Payment(id='payment_...', ...))
    """

    __repr__ = brief_repr

    quote: Quote
    payment: Payment | None

    @property
    def is_done(self) -> bool:
        """Whether the recipient has the funds: whether the Payment's session is settled."""
        payment = self.payment
        return payment is not None and PAYMENT_SESSION_STATUSES[payment.status] == "settled"


@attrs.frozen
class _Offer:
    """The price of an exchange, and the terms that follow from it."""

    estimate: Estimate
    usd: Mapping[str, Decimal]
    terms: QuoteTerms


class Quotes:
    """Creates quotes, and shows their results."""

    def __init__(
        self,
        ports: Ports,
        payments: Payments,
        destinations: Destinations,
        pricing: Mapping[str, Pricing],
        routers: Mapping[str, Router],
        calls: RemoteCalls,
    ) -> None:
        """`pricing` and `routers` map each mode to its source of prices and its router, if any."""
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._payments = payments
        self._destinations = destinations
        self._pricing = pricing
        self._routers = routers
        self._calls = calls

    @once_per_key
    def create(
        self, authority: Authority, new: NewQuote, *, idempotency_key: IdempotencyKey = None
    ) -> QuoteDetails:
        """A quote, valid for 15 minutes, with a Payment that waits for its funds.

        Prices and the router are asked before anything is stored: a crash leaves at most an order
        at the router that nobody pays. A used key returns its quote, without
        asking either, even after its expiry.

        Raises ValidationFailed, NotFound, DestinationNotAllowed, UnsupportedChain,
        UnsupportedAsset, AmountOutOfRange, CapabilityNotActive without prices or a router,
        DependencyFailed, and IdempotencyConflict.
        """
        require_one_payer_and_amount(new)
        exchange = self._resolve(authority, new)
        offer = self._ask_prices(authority, exchange)
        id_sequence = self._committer.id_sequence()
        escrow = self._destinations.require_chain(exchange.source).derive(
            AddressSpec(authority.partition, "escrow", id_sequence.issue("payment"))
        )
        quote_id = id_sequence.issue("quote")
        route = self._open_route(authority, new, exchange, offer.terms, quote_id, escrow)
        made: list[Quote] = []
        request = require_request(idempotency_key)

        def resolve_payee(tx: Transaction, settings: PaymentTerms) -> Payee:
            recipient_id = exchange.recipient.id if exchange.recipient else None
            recipient = self._destinations.lock_recipient(tx, authority, recipient_id)
            paid = self._destinations.resolve_destination(
                authority, new.destination, recipient, exchange.destination
            )
            return Payee(exchange.source, exchange.amount_atomic, paid)

        def complete(draft: Payment) -> Decision[Payment]:
            quoted = evolve(draft, fee_bps=exchange.fee_bps, route=route, quote_id=quote_id)
            if route is not None:  # the router pays on, and no reorg takes that back
                quoted = evolve(quoted, early_acceptance=None)
            quote = _make_quote(quote_id, quoted, exchange, offer)
            made[:] = [quote]
            return Decision(quoted, inserts=(quote,))

        def describe(created: PaymentDetails) -> QuoteDetails:
            return QuoteDetails(made[0], created.payment)

        if request is not None:
            render = request.render
            request = evolve(request, render=lambda created: render(describe(created)))
        created = self._payments.create_receive_payment(
            authority,
            NewPayment(
                amount=format_amount(exchange.amount_atomic, exchange.source.decimals),
                destination=new.destination,
                expires_in_s=QUOTE_LIFETIME_S,
                allowed_methods=exchange.methods,
            ),
            resolve_payee,
            complete=complete,
            id_sequence=id_sequence,
            idempotency_key=request,
        )
        return describe(created)

    def get(self, authority: Authority, quote_id: str) -> QuoteDetails:
        """A quote, with the Payment that carries it out. Raises NotFound."""

        def load(snapshot: Snapshot) -> QuoteDetails:
            quote = snapshot.get(Quote, quote_id)
            if quote is None:
                raise NotFound("quote")
            return QuoteDetails(quote, snapshot.get(Payment, quote.payment_id))

        return self._storage.read(authority.partition, load)

    def is_transfer_done(self, authority: Authority, chain_id: int, deposit_address: str) -> bool:
        """Whether the funds sent to a deposit address have arrived: the newest deposit there, or
        the Payment of the quote whose address it is.

        Raises NotFound for an address that is neither, UnsupportedChain, ValidationFailed.
        """
        try:
            chain_type = self._networks.find_network(chain_id).chain_type
            canonical = normalize_address(chain_type, deposit_address)
        except AddressError as error:
            raise ValidationFailed.at("deposit_address", str(error)) from None
        issued = [
            located.record
            for located in self._storage.locate(DepositAddress, "by_address", [(canonical,)])
            if located.partition == authority.partition
        ]

        def load(snapshot: Snapshot) -> bool:
            for row in issued:
                where = (Where("chain_id", "=", chain_id), Where("address", "=", canonical))
                newest = snapshot.find(
                    Deposit, "by_account", (row.account_id,), where=where, limit=1
                ).records
                return bool(newest) and newest[0].status == "settled"
            quotes = snapshot.find(Quote, "by_deposit_address", (canonical,), limit=1).records
            if not quotes or quotes[0].source_chain_id != chain_id:
                raise NotFound("deposit address")
            return QuoteDetails(quotes[0], snapshot.get(Payment, quotes[0].payment_id)).is_done

        return self._storage.read(authority.partition, load)

    # The terms of a quote.

    def _resolve(self, authority: Authority, new: NewQuote) -> Exchange:
        """The payer, the recipient, the assets and the amount. Raises as `create` does."""
        recipient_id = self._destinations.resolve_recipient_id(authority, new.destination)

        def load(snapshot: Snapshot) -> Exchange:
            settings = snapshot.get(PaymentSettings, SETTINGS_ID) or DEFAULT_SETTINGS
            payer = _load_account(snapshot, new.user_id)
            recipient = _load_account(snapshot, recipient_id)
            return resolve_exchange(self._networks, new, payer, recipient, settings.terms.fee_bps)

        exchange = self._storage.read(authority.partition, load)
        for asset in (exchange.source, exchange.destination):
            self._destinations.require_chain(asset)
        return exchange

    def _ask_prices(self, authority: Authority, exchange: Exchange) -> _Offer:
        """The terms of the exchange. Raises as `create` does."""
        pricing = self._pricing.get(authority.mode)
        if pricing is None:
            raise CapabilityNotActive("pricing")
        source, destination = exchange.source, exchange.destination
        paid_on = deduct_fee(exchange.amount_atomic, exchange.fee_bps)
        try:
            with self._calls.acquire("pricing", authority.partition):
                estimate = ask_estimate(pricing, source, destination, paid_on)
                usd = ask_usd_prices(pricing, (source, destination))
        except PricingUnavailable as error:
            raise DependencyFailed("pricing") from error
        except NotPriced as error:
            raise UnsupportedAsset(error.asset.chain_id, error.asset.symbol) from error
        return _Offer(
            estimate,
            usd,
            compute_terms(source, destination, exchange.amount_atomic, exchange.fee_bps, estimate),
        )

    def _open_route(
        self,
        authority: Authority,
        new: NewQuote,
        exchange: Exchange,
        terms: QuoteTerms,
        quote_id: str,
        escrow: str,
    ) -> PaymentRoute | None:
        """The route by a router, if the assets of input and output differ."""
        if not exchange.is_routed:
            return None
        router = self._routers.get(authority.mode)
        if router is None:
            raise CapabilityNotActive("routing")
        destination = exchange.destination
        recipient = self._destinations.resolve_destination(
            authority, new.destination, exchange.recipient, destination
        )
        order = RouteOrder(
            key=quote_id,
            source=exchange.source,
            destination=destination,
            amount_atomic=terms.paid_on,
            expected_atomic=terms.output_atomic,
            minimum_atomic=terms.minimum_atomic,
            recipient=recipient.address,
            return_to=escrow,
        )
        try:
            with self._calls.acquire("router", authority.partition):
                address = router.open(order)
        except RouterUnavailable as error:
            raise DependencyFailed("router") from error
        except RouteRefused as error:
            raise CapabilityNotActive("routing") from error
        return PaymentRoute(
            key=quote_id,
            chain_id=destination.chain_id,
            asset_symbol=destination.symbol,
            token_address=destination.address,
            decimals=destination.decimals,
            address=self._check_route_address(
                authority.partition, exchange.source, escrow, address
            ),
            amount_atomic=terms.paid_on,
            expected_atomic=terms.output_atomic,
            minimum_atomic=terms.minimum_atomic,
        )

    def _check_route_address(self, partition: str, source: Asset, escrow: str, text: str) -> str:
        """The address that a router names, in its canonical form: it is compared with the chain's.

        It is checked like one that a caller names, since funds go there. Raises DependencyFailed.
        """
        try:
            chain_type = self._networks.find_network(source.chain_id).chain_type
            address = self._networks.normalize_wallet_address(chain_type, text)
        except AddressError as error:
            _log.critical("ALARM: the router names %r, which nobody can hold", text)
            raise DependencyFailed("router", retryable=False) from error
        if address == escrow or self._destinations.find_own(partition, [address]):
            _log.critical("ALARM: the router names %s, an address of this service", address)
            raise DependencyFailed("router", retryable=False)
        return address


def _make_quote(id: str, payment: Payment, exchange: Exchange, offer: _Offer) -> Quote:
    source, destination, terms = exchange.source, exchange.destination, offer.terms
    assert payment.escrow_address is not None
    return Quote(
        id=id,
        payment_id=payment.id,
        deposit_address=payment.escrow_address,
        payer_account_id=exchange.payer_account_id,
        payer_address=exchange.payer_address,
        source_chain_id=source.chain_id,
        source_symbol=source.symbol,
        source_token_address=source.address,
        source_decimals=source.decimals,
        input_atomic=terms.input_atomic,
        input_usd=value_in_usd(terms.input_atomic, source, offer.usd.get(source.id)),
        destination_chain_id=destination.chain_id,
        destination_symbol=destination.symbol,
        destination_token_address=destination.address,
        destination_decimals=destination.decimals,
        output_atomic=terms.output_atomic,
        output_usd=value_in_usd(terms.output_atomic, destination, offer.usd.get(destination.id)),
        minimum_atomic=terms.minimum_atomic,
        fee_atomic=terms.fee_atomic,
        rate=format_rate(offer.estimate.rate),
        time_s=offer.estimate.time_s,
        expires_at_ms=payment.expires_at_ms,
        created_at_ms=payment.created_at_ms,
    )


def _load_account(snapshot: Snapshot, account_id: str | None) -> Account | None:
    if account_id is None:
        return None
    account = snapshot.get(Account, account_id)
    if account is None:
        raise NotFound("account")
    return account
