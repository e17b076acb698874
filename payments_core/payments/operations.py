"""Payments: create to receive, read, list, cancel (contract §6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated

import attrs
from msgspec import Meta

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.reservations import void_reservation
from payments_core.amounts import parse_positive_amount
from payments_core.brief_repr import brief_repr
from payments_core.chains.port import AddressSpec
from payments_core.credentials.tokens import Claims
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import FieldError, NotFound, ValidationFailed
from payments_core.evolve import evolve
from payments_core.networks import DEFAULT_CHAIN_ID, DEFAULT_SYMBOL, Asset, Networks
from payments_core.payment_settings.origins import find_url_fault
from payments_core.payment_settings.record import (
    READ_SETTINGS,
    PaymentMethod,
    PaymentTerms,
    lock_settings,
)
from payments_core.payment_settings.validation import EXPIRY_RANGE_S
from payments_core.payments import lifecycle
from payments_core.payments.creation import Payee, draft_payment
from payments_core.payments.destinations import DestinationRequest, Destinations
from payments_core.payments.details import (
    PaymentDetails,
    load_details,
    lock_payment,
    read_details_ahead,
    reads_of_details,
)
from payments_core.payments.expiry import expiry_job
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.links import Links
from payments_core.payments.option_cleanup import cancel_transfer, close_open_options
from payments_core.payments.payouts import lifecycle as payouts
from payments_core.payments.queries import PaymentStatus, find_payments
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Intent, Payment
from payments_core.payments.release import reservation_of_send
from payments_core.storage.damaged_records import load_listed
from payments_core.storage.newest import where_matches
from payments_core.storage.port import (
    Page,
    Position,
    Snapshot,
    Transaction,
    Where,
)
from payments_core.storage.reads import Get
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import (
    Amount,
    AssetSymbol,
    ChainId,
    ExpiryInSeconds,
    MetadataInput,
    PageLimit,
    Reference,
    Sentence,
    Url,
)

MAX_JOURNAL_ENTRIES = 1_000
"""The maximum number of journal entries shown; a Payment with more is under a dust attack."""


AllowedMethods = Annotated[Sequence[PaymentMethod], Meta(min_length=1, max_length=4)]


@attrs.frozen(kw_only=True)
class NewPayment:
    """The input of a receive Payment.

    `amount` is decimal text in whole tokens, greater than zero, with no more decimals than the
    asset has. By default, chain and asset are the recipient's preference, or USDC on Base.
    `reference`, `description` and `metadata` are stored and returned. The Payment takes new options
    for `expires_in_s` seconds. `allowed_methods` are the ways in which it may be paid. The checkout
    page leads to `success_url` or `cancel_url` at its end. Without an expiry, methods or URLs the
    Payment has those of the payment settings.

    >>> new = NewPayment(
    ...     amount="25.00",
    ...     destination=ToAccount(external_user_id="bob"),
    ...     reference="order-8",
    ...     success_url="https://shop.example/thanks",
    ... )
    >>> shop.payments.receive(new, idempotency_key="order-8").payment.reference
    'order-8'
    """

    __repr__ = brief_repr

    amount: Amount
    destination: DestinationRequest
    asset_symbol: AssetSymbol | None = None
    chain_id: ChainId | None = None
    reference: Reference | None = None
    description: Sentence | None = None
    expires_in_s: ExpiryInSeconds | None = None
    allowed_methods: AllowedMethods | None = None
    success_url: Url | None = None
    cancel_url: Url | None = None
    metadata: MetadataInput | None = None


@attrs.frozen
class ReceiptsWithJournal:
    """A page of a Payment's receipts, oldest first, with its journal.

    >>> found = shop.payments.list_receipts(paid.id)
    >>> [entry.cause for entry in found.entries]
    ['receipt', 'release']
    """

    __repr__ = brief_repr

    payment: Payment
    receipts: Page[Receipt]
    entries: tuple[JournalEntry, ...]


class Payments:
    """Creates receive Payments; reads and cancels Payments of any intent."""

    def __init__(self, ports: Ports, destinations: Destinations, links: Links) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._destinations = destinations
        self._tokens = ports.tokens
        self._links = links

    @once_per_key
    def create(
        self, authority: Authority, new: NewPayment, *, idempotency_key: IdempotencyKey = None
    ) -> PaymentDetails:
        """A receive Payment, waiting for funds in its own escrow.

        Raises ValidationFailed, NotFound, DestinationNotAllowed, AmountOutOfRange,
        UnsupportedChain, UnsupportedAsset, and AccountSuspended if the calling account is
        to be paid and is not active.
        """
        _require_no_metadata_of_clients(authority, new)
        _require_valid_urls(authority, new)
        recipient_id = self._destinations.resolve_recipient_id(authority, new.destination)

        def resolve_payee(tx: Transaction, terms: PaymentTerms) -> Payee:
            recipient = self._destinations.lock_recipient(tx, authority, recipient_id)
            asset = choose_asset(self._networks, new.chain_id, new.asset_symbol, recipient)
            amount = parse_positive_amount(new.amount, asset)
            destination = self._destinations.resolve_destination(
                authority, new.destination, recipient, asset
            )
            return Payee(asset, amount, destination)

        reads = () if recipient_id is None else (Get(Account, recipient_id, "shared"),)
        return self.create_receive_payment(
            authority, new, resolve_payee, idempotency_key=idempotency_key, reads=reads
        )

    def create_receive_payment(
        self,
        authority: Authority,
        new: NewPayment,
        payee: Callable[[Transaction, PaymentTerms], Payee],
        *,
        complete: Callable[[Payment], Decision[Payment]] = Decision,
        id_sequence: IdSequence | None = None,
        idempotency_key: IdempotencyKey = None,
        reads: Sequence[Get] = (),
    ) -> PaymentDetails:
        """Like `create`, but `payee` decides inside the transaction, by the terms in force, who is
        paid and how much; `reads` are its queries. `complete` may change the draft, and adds
        records to its commit. A caller that gives the `id_sequence` has drawn the Payment's id from
        it.

        Raises ValidationFailed, UnsupportedChain, and the errors of `payee`."""
        if new.expires_in_s is not None:
            _require_valid_expiry(new.expires_in_s)
        id_sequence = id_sequence or self._committer.id_sequence()
        id_sequence.reset()
        payment_id = id_sequence.issue("payment")
        partition = authority.partition
        link = self._links.mint(partition, payment_id, authority.environment.mode)
        secret = self._tokens.payment_secret(
            Claims(partition, payment_id, authority.api_version, 0)
        )
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[PaymentDetails]:
            terms = lock_settings(tx).terms
            paid = payee(tx, terms)
            chain = self._destinations.require_chain(paid.asset)
            methods = terms.allowed_methods if new.allowed_methods is None else new.allowed_methods
            draft = evolve(
                draft_payment(authority, paid, new, id_sequence, now=now),
                early_acceptance=self._networks.choose_acceptance(paid.asset, paid.amount_atomic),
                **terms.freeze_for_payment(
                    paid.asset.chain_id, now=now, expires_in_s=new.expires_in_s
                ),
                escrow_address=chain.derive(AddressSpec(partition, "escrow", payment_id)),
                allowed_methods=tuple(methods),
                link_code=link.sealed_code,
                success_url=terms.success_url if new.success_url is None else new.success_url,
                cancel_url=terms.cancel_url if new.cancel_url is None else new.cancel_url,
            )
            completed = complete(draft)
            step = lifecycle.create(completed.result, now=now)
            expiry = expiry_job(partition, step.record)
            details = PaymentDetails(step.record, client_secret=secret, payment_url=link.url)
            return step.as_decision(details).merge(
                completed, Decision(None, inserts=(link.record,), jobs=(expiry,))
            )

        return self._committer.commit(
            authority,
            decide,
            idempotent=idempotency_key,
            id_sequence=id_sequence,
            reads=(READ_SETTINGS, *reads),
        )

    def get(self, authority: Authority, payment_id: str) -> PaymentDetails:
        """A Payment. Raises NotFound."""

        def load(snapshot: Snapshot) -> PaymentDetails:
            snapshot.read_ahead(Get(Payment, payment_id), *reads_of_details(payment_id))
            return load_details(snapshot, _load_payment(snapshot, payment_id))

        return self._storage.read(authority.partition, load)

    def list(
        self,
        authority: Authority,
        *,
        account_id: str | None = None,
        status: PaymentStatus | None = None,
        intent: Intent | None = None,
        reference: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[PaymentDetails]:
        """The Payments that match all filters, newest first.

        The window of creation includes `created_after`, and not `created_before`.
        """
        where = where_matches(
            status=status,
            intent=intent,
            reference=reference,
            created_after=created_after,
            created_before=created_before,
        )
        return self._list(authority, account_id, where, after, limit)

    def _list(
        self,
        authority: Authority,
        account_id: str | None,
        where: Sequence[Where],
        after: Position | None,
        limit: int,
    ) -> Page[PaymentDetails]:
        def load(snapshot: Snapshot) -> Page[PaymentDetails]:
            page = find_payments(snapshot, account_id, where, after, limit)
            read_details_ahead(snapshot, page.records)
            found = {payment.id: payment for payment in page.records}
            details = load_listed(
                authority.partition, Payment, found, lambda id: load_details(snapshot, found[id])
            )
            return Page(details, page.next)

        return self._storage.read(authority.partition, load)

    def list_briefly(
        self,
        authority: Authority,
        *,
        account_id: str | None = None,
        status: PaymentStatus | None = None,
        intent: Intent | None = None,
        reference: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[Payment]:
        """As `list`, without options, receipts and refunds: one query for the whole page."""
        where = where_matches(
            status=status,
            intent=intent,
            reference=reference,
            created_after=created_after,
            created_before=created_before,
        )
        return self._storage.read(
            authority.partition,
            lambda snapshot: find_payments(snapshot, account_id, where, after, limit),
        )

    def list_received(
        self,
        authority: Authority,
        account_id: str,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[PaymentDetails]:
        """The Payments that an account receives, newest first: all of its Payments but its sends,
        which are filed under the account that pays."""
        return self._list(authority, account_id, [Where("intent", "!=", "send")], after, limit)

    def list_receipts(
        self,
        authority: Authority,
        payment_id: str,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> ReceiptsWithJournal:
        """A Payment's receipts, and its journal: where the money is now. Raises NotFound.

        A receipt or an entry that cannot be read is skipped with an alarm. The balances are
        correct nevertheless: they come from `Payment.books`, not from a sum of the entries.
        """

        def load(snapshot: Snapshot) -> ReceiptsWithJournal:
            payment = _load_payment(snapshot, payment_id)
            key = (payment_id,)
            receipts = snapshot.find(
                Receipt, "by_payment", key, after=after, limit=limit, skip_damaged=True
            )
            entries = snapshot.find(
                JournalEntry, "by_payment", key, limit=MAX_JOURNAL_ENTRIES, skip_damaged=True
            )
            return ReceiptsWithJournal(payment, receipts, entries.records)

        return self._storage.read(authority.partition, load)

    @once_per_key
    def cancel(
        self, authority: Authority, payment_id: str, *, idempotency_key: IdempotencyKey = None
    ) -> PaymentDetails:
        """Cancel a Payment that received nothing and has no pending transfer.

        Raises NotFound, InvalidState.
        """
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[PaymentDetails]:
            payment = lock_payment(tx, payment_id)
            step = lifecycle.cancel(payment, now=now)
            if payment.payout is not None:
                step = step.then(payouts.cancel)
            ended = close_open_options(tx, payment, "cancel", now=now)
            result = evolve(ended.result, payment=step.record)
            return step.as_decision(result).merge(ended, _cancel_send(tx, payment))

        reads = (Get(Payment, payment_id, "exclusive"),)
        return self._committer.commit(authority, decide, idempotent=idempotency_key, reads=reads)


def choose_asset(
    networks: Networks, chain_id: int | None, symbol: str | None, recipient: Account | None
) -> Asset:
    """The requested asset, else the recipient's preference, else the default.

    Raises UnsupportedChain, UnsupportedAsset.
    """
    settlement = recipient.settlement if recipient else None
    if chain_id is None:
        chain_id = settlement.chain_id if settlement else DEFAULT_CHAIN_ID
    if symbol is None:
        symbol = settlement.asset_symbol if settlement else DEFAULT_SYMBOL
    return networks.find_asset(chain_id, symbol)


def _load_payment(snapshot: Snapshot, payment_id: str) -> Payment:
    payment = snapshot.get(Payment, payment_id)
    if payment is None:
        raise NotFound("payment")
    return payment


def _cancel_send(tx: Transaction, payment: Payment) -> Decision[None]:
    """Release a send's reservation. Raises InvalidState if its transfer was sent."""
    if payment.intent != "send":
        return Decision(None)
    assert payment.release_id is not None
    stopped = cancel_transfer(tx, payment, payment.release_id)
    return Decision(None, replaces=(stopped,)).merge(
        void_reservation(tx, reservation_of_send(payment))
    )


def _require_no_metadata_of_clients(authority: Authority, new: NewPayment) -> None:
    """Raise ValidationFailed if a browser sets metadata: backends trust it as their own."""
    if authority.requirement.caller == "client" and new.metadata is not None:
        raise ValidationFailed.at("metadata", "cannot be set with a client token")


def _require_valid_urls(authority: Authority, new: NewPayment) -> None:
    local = authority.mode == "sandbox"
    urls = (("success_url", new.success_url), ("cancel_url", new.cancel_url))
    faults = [
        FieldError(path, fault)
        for path, url in urls
        if url is not None and (fault := find_url_fault(url, local_allowed=local)) is not None
    ]
    if faults:
        raise ValidationFailed(tuple(faults))


def _require_valid_expiry(expires_in_s: int) -> None:
    minimum, maximum = EXPIRY_RANGE_S
    if not minimum <= expires_in_s <= maximum:
        raise ValidationFailed.at("expires_in_s", f"must be {minimum} to {maximum}")
