"""Payments: create, read, list, cancel, expire (contract §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from payments_core.accounts.record import Account
from payments_core.addresses import AddressError, canonical
from payments_core.assets import DEFAULT_CHAIN_ID, DEFAULT_SYMBOL, Asset, asset_of
from payments_core.chains.port import AddressSpec, Chain
from payments_core.clock import DAY, SECOND, Clock, Instant
from payments_core.credentials.authorization import Authority
from payments_core.credentials.tokens import Claims, Tokens
from payments_core.decision import Decision, Follow, Ledger, Scope, held
from payments_core.errors import (
    AmountOutOfRange,
    DestinationNotAllowed,
    NotFound,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.idempotency.record import Idempotent
from payments_core.identifiers import Draw
from payments_core.money import MoneyError, parse_amount
from payments_core.payments import lifecycle
from payments_core.payments.details import PaymentDetails, details_of, locked_payment
from payments_core.payments.ending import end_options
from payments_core.payments.links import Links
from payments_core.payments.record import Destination, Method, Payment
from payments_core.storage.port import (
    Claimed,
    Page,
    Position,
    Snapshot,
    Storage,
    Transaction,
    Where,
)

EXPIRE = "payments.expire"
EXPIRY_POLL_MS = 30 * SECOND
MONITORING_MS = DAY
EXPIRY_RANGE_S = (300, 86_400)
DEFAULT_EXPIRY_S = 3_600
METHODS: tuple[Method, ...] = ("vault", "direct", "routing", "hosted_onramp")


@attrs.frozen(kw_only=True)
class ToAccount:
    """Pay an account, by exactly one of its names."""

    account_id: str | None = None
    external_user_id: str | None = None


@attrs.frozen(kw_only=True)
class ToPaymentAddress:
    """Pay `<username>@<partner id>`."""

    payment_address: str


@attrs.frozen(kw_only=True)
class ToWallet:
    """Pay an address on the Payment's chain."""

    address: str


@attrs.frozen(kw_only=True)
class NewPayment:
    """What a receive Payment is made from; `amount` is a decimal string."""

    amount: str
    destination: ToAccount | ToPaymentAddress | ToWallet
    asset_symbol: str | None = None
    chain_id: int | None = None
    reference: str | None = None
    description: str | None = None
    expires_in_s: int = DEFAULT_EXPIRY_S
    allowed_methods: Sequence[Method] = METHODS
    success_url: str | None = None
    cancel_url: str | None = None
    metadata: Mapping[str, Any] | None = None


class Payments:
    """Creates Payments and reads them."""

    def __init__(
        self,
        storage: Storage,
        ledger: Ledger,
        clock: Clock,
        chains: Mapping[int, Chain],
        tokens: Tokens,
        links: Links,
    ) -> None:
        self._storage = storage
        self._ledger = ledger
        self._clock = clock
        self._chains = chains
        self._tokens = tokens
        self._links = links

    def create(
        self, authority: Authority, new: NewPayment, *, idempotent: Idempotent | None = None
    ) -> PaymentDetails:
        """A receive Payment, waiting for funds in an escrow of its own.

        Raises ValidationFailed, NotFound, DestinationNotAllowed, AmountOutOfRange,
        UnsupportedChain, UnsupportedAsset.
        """
        _check_expiry(new.expires_in_s)
        draw = self._ledger.draw()
        payment_id = draw.id("payment")
        link = self._links.mint(authority.partition, payment_id)
        secret = self._tokens.payment_secret(
            Claims(authority.partition, payment_id, authority.api_version, 0)
        )
        recipient_id = self._recipient_id(authority, new.destination)
        now = self._clock.now()

        def decide(tx: Transaction, draw: Draw) -> Decision[PaymentDetails]:
            recipient = held(tx, Account, recipient_id) if recipient_id else None
            if recipient_id is not None and recipient is None:
                raise NotFound("account")
            asset, amount = _asset_and_amount(new, recipient)
            destination = self._destination(authority, new.destination, recipient, asset)
            chain = self._chains[asset.chain_id]
            expires_at = now + new.expires_in_s * SECOND
            draft = Payment(
                id=draw.id("payment"),
                status="",
                status_version=0,
                account_id=destination.account_id,
                external_user_id=destination.external_user_id,
                chain_id=asset.chain_id,
                asset_symbol=asset.symbol,
                amount=amount,
                destination=destination,
                escrow_address=chain.derive(AddressSpec(authority.partition, "escrow", payment_id)),
                allowed_methods=tuple(new.allowed_methods),
                session_id=draw.id("ses"),
                reference=new.reference,
                description=new.description,
                metadata=new.metadata,
                api_version=authority.api_version,
                link_code=link.sealed_code,
                success_url=new.success_url,
                cancel_url=new.cancel_url,
                expires_at=expires_at,
                monitoring_expires_at=expires_at + MONITORING_MS,
                created_at=now,
                updated_at=now,
            )
            payment, events = lifecycle.created(draft, now=now)
            return Decision(
                PaymentDetails(payment, client_secret=secret),
                inserts=(payment, link.record),
                events=events,
                jobs=(_expiry(authority.partition, payment),),
            )

        return self._ledger.commit(authority, decide, idempotent=idempotent, draw=draw)

    def get(self, authority: Authority, payment_id: str) -> PaymentDetails:
        """A Payment. Raises NotFound."""

        def look(snapshot: Snapshot) -> PaymentDetails:
            payment = snapshot.get(Payment, payment_id)
            if payment is None:
                raise NotFound("payment")
            return details_of(snapshot, payment)

        return self._storage.read(authority.partition, look)

    def list(
        self,
        authority: Authority,
        *,
        account_id: str | None = None,
        where: Sequence[Where] = (),
        after: Position | None = None,
        limit: int = 50,
    ) -> Page[PaymentDetails]:
        """Payments, newest first, of one account or of all."""
        index = "by_created" if account_id is None else "by_account"
        key = () if account_id is None else (account_id,)

        def look(snapshot: Snapshot) -> Page[PaymentDetails]:
            page = snapshot.find(Payment, index, key, where=where, after=after, limit=limit)
            details = tuple(details_of(snapshot, payment) for payment in page.records)
            return Page(details, page.next)

        return self._storage.read(authority.partition, look)

    def cancel(
        self, authority: Authority, payment_id: str, *, idempotent: Idempotent | None = None
    ) -> PaymentDetails:
        """End a Payment that received nothing and has nothing on its way.

        Raises NotFound, InvalidState.
        """
        now = self._clock.now()

        def decide(tx: Transaction, draw: Draw) -> Decision[PaymentDetails]:
            payment = locked_payment(tx, payment_id)
            payment, events = lifecycle.cancel(payment, now=now)
            ended = end_options(tx, payment, "cancel", now=now)
            return Decision(
                PaymentDetails(payment, ended.result), replaces=(payment,), events=events
            ).joined(ended)

        return self._ledger.commit(authority, decide, idempotent=idempotent)

    def run_expiry(self, claimed: Claimed) -> None:
        """The job at a Payment's expiry. A live attempt is waited for: its end expires it.

        The job stays until then all the same, since that end may be seen by a worker whose clock
        is behind, to which the time is not over.
        """
        scope = Scope.of(claimed)
        now = self._clock.now()

        def decide(tx: Transaction, draw: Draw) -> Decision[None]:
            payment = locked_payment(tx, claimed.job.subject)
            if now < payment.expires_at:  # whoever claimed the job has a clock ahead of ours
                return Decision(None, again_at=payment.expires_at)
            if payment.status == "processing":
                return Decision(None, again_at=now + EXPIRY_POLL_MS)
            return expire_if_due(tx, payment, now=now)

        self._ledger.commit(scope, decide, claimed=claimed)

    def _recipient_id(
        self, authority: Authority, wanted: ToAccount | ToPaymentAddress | ToWallet
    ) -> str | None:
        """The id of the account that is paid, None for a wallet. Raises NotFound."""
        if isinstance(wanted, ToWallet):
            return None
        if isinstance(wanted, ToPaymentAddress):
            username, _, resolver = wanted.payment_address.rpartition("@")
            if resolver != authority.environment.partner_id:
                raise NotFound("payment address")
            return self._found(authority, "by_username", username.lower(), "payment address")
        if (wanted.account_id is None) == (wanted.external_user_id is None):
            raise ValidationFailed.at(
                "destination.accountId", "give exactly one of accountId, externalUserId"
            )
        if wanted.account_id is not None:
            return wanted.account_id
        return self._found(authority, "by_external_user", wanted.external_user_id, "account")

    def _found(self, authority: Authority, index: str, key: str | None, noun: str) -> str:
        page = self._storage.read(
            authority.partition, lambda snapshot: snapshot.find(Account, index, (key,), limit=1)
        )
        if not page.records:
            raise NotFound(noun)
        return page.records[0].id

    def _destination(
        self,
        authority: Authority,
        wanted: ToAccount | ToPaymentAddress | ToWallet,
        recipient: Account | None,
        asset: Asset,
    ) -> Destination:
        chain = self._chains.get(asset.chain_id)
        if chain is None:
            raise UnsupportedChain(asset.chain_id)
        if isinstance(wanted, ToWallet):
            try:
                address = canonical(chain.chain_type, wanted.address)
            except AddressError as error:
                raise ValidationFailed.at("destination.address", str(error)) from None
            return Destination(type="wallet", address=address)
        assert recipient is not None
        if recipient.status != "active":
            raise DestinationNotAllowed(f"the account is {recipient.status}")
        named = isinstance(wanted, ToPaymentAddress)
        return Destination(
            type="payment_address" if named else "account",
            address=chain.derive(AddressSpec(authority.partition, "vault", recipient.id)),
            account_id=recipient.id,
            external_user_id=recipient.external_user_id,
            payment_address=recipient.payment_address if named else None,
        )


def expire_if_due(
    tx: Transaction, payment: Payment, *, now: Instant, ended: str | None = None
) -> Decision[None]:
    """Expire a Payment whose time is over and that nothing is under way for, with its options.

    `ended` is an option that the caller's own decision brings to its end.
    """
    if payment.status != "awaiting_payment" or now < payment.expires_at:
        return Decision(None)
    payment, events = lifecycle.expire(payment, now=now)
    others = end_options(tx, payment, "expire", now=now, but=ended)
    return Decision(None, replaces=(payment,), events=events).joined(others)


def _expiry(partition: str, payment: Payment) -> Follow:
    return Follow("timers", EXPIRE, f"expiry:{partition}", payment.expires_at, payment.id)


def _check_expiry(expires_in_s: int) -> None:
    least, most = EXPIRY_RANGE_S
    if not least <= expires_in_s <= most:
        raise ValidationFailed.at("expiresInSeconds", f"must be {least} to {most}")


def _asset_and_amount(new: NewPayment, recipient: Account | None) -> tuple[Asset, int]:
    settlement = recipient.settlement if recipient else None
    chain_id, symbol = new.chain_id, new.asset_symbol
    if chain_id is None:
        chain_id = settlement.chain_id if settlement else DEFAULT_CHAIN_ID
    if symbol is None:
        symbol = settlement.asset_symbol if settlement else DEFAULT_SYMBOL
    asset = asset_of(chain_id, symbol)
    try:
        amount = parse_amount(new.amount, asset.decimals)
    except MoneyError as error:
        raise ValidationFailed.at("amount", str(error)) from None
    if amount == 0:
        raise AmountOutOfRange("it must be more than zero")
    return asset, amount
