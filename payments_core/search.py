"""Finds what an id, a reference, an address or a transaction names in an environment.

Only whole texts match, each by an index: a search costs a few queries, whatever is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal

import attrs
from msgspec import Meta

from payments_core.accounts.record import Account, Wallet
from payments_core.accounts.vaults.record import Vault
from payments_core.accounts.verification.record import Verification
from payments_core.addresses import AddressError, identify_chain_type, normalize_address
from payments_core.chains.outbox.record import OutboundTransfer, Replacement
from payments_core.deposits.record import Deposit, DepositAddress
from payments_core.engine.events import Event
from payments_core.engine.identifiers import is_identifier
from payments_core.engine.ports import Ports
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.mandates.record import Mandate
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import Snapshot, Storage
from payments_core.storage.records import Record, Value, fits_column
from payments_core.tenants.authorization import Authority
from payments_core.webhooks.record import Delivery, Endpoint

FoundKind = Literal["payment", "account", "verification", "endpoint", "delivery", "event"]

MOST_FOUND = 20
"""No search finds more."""

_OWNERS: Mapping[str, tuple[type[Record], FoundKind, str]] = {
    "payment": (Payment, "payment", "id"),
    "refund": (Refund, "payment", "payment_id"),
    "receipt": (Receipt, "payment", "payment_id"),
    "pay_option": (PaymentOption, "payment", "payment_id"),
    "pay_funding": (FundingOperation, "payment", "payment_id"),
    "acct": (Account, "account", "id"),
    "wallet": (Wallet, "account", "account_id"),
    "vault": (Vault, "account", "account_id"),
    "deposit": (Deposit, "account", "account_id"),
    "deposit_address": (DepositAddress, "account", "account_id"),
    "mandate": (Mandate, "account", "account_id"),
    "verification": (Verification, "verification", "id"),
    "webhook": (Endpoint, "endpoint", "id"),
    "delivery": (Delivery, "delivery", "id"),
    "evt": (Event, "event", "id"),
}
"""By the prefix of an id: its record, what is shown of it, and the field that names that."""

_HASH = re.compile(r"0x[0-9a-fA-F]{64}|[1-9A-HJ-NP-Za-km-z]{86,88}", re.ASCII)
"""A transaction: of an EVM chain or of Aptos, or of Solana."""

Sought = Annotated[str, Meta(max_length=256)]


@attrs.frozen
class Found:
    """Something that a search has found: its kind and its id.

    `within` is the endpoint of a delivery.
    """

    kind: FoundKind
    id: str
    within: str | None = None


class Search:
    """Finds records of an environment by what people have of them."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage

    def find(self, authority: Authority, text: Sought) -> tuple[Found, ...]:
        """What the text names, without the spaces around it: an id, a Payment's reference, an
        account's external user id, an address or the hash of a transaction.

        Each is found once, at most MOST_FOUND.
        """
        sought, partition = text.strip(), authority.partition
        if not sought or not fits_column(sought):
            return ()
        owners = list(_locate_owners(self._storage, partition, sought))
        found = self._storage.read(
            partition,
            lambda snapshot: tuple(
                dict.fromkeys(one for id in (sought, *owners) for one in _find_by_id(snapshot, id))
                | dict.fromkeys(_find(snapshot, sought))
            ),
        )
        return found[:MOST_FOUND]


def _find_by_id(snapshot: Snapshot, id: str) -> Iterator[Found]:
    for prefix, (record, kind, field) in _OWNERS.items():
        if is_identifier(id, prefix) and (one := snapshot.get(record, id)) is not None:
            within = one.endpoint_id if isinstance(one, Delivery) else None
            yield Found(kind, getattr(one, field), within)


def _find(snapshot: Snapshot, sought: str) -> Iterator[Found]:
    """What has the text as a name of its own."""

    def find(record: type[Record], index: str, *key: Value) -> Iterable[Record]:
        return snapshot.find(record, index, key, limit=MOST_FOUND, skip_damaged=True).records

    for payment in find(Payment, "by_reference", sought):
        yield Found("payment", payment.id)
    for account in find(Account, "by_external_user", sought):
        yield Found("account", account.id)
    if _HASH.fullmatch(sought):
        hash = _normalize_hash(sought)
        for receipt in find(Receipt, "by_transaction", hash):
            assert isinstance(receipt, Receipt)
            yield Found("payment", receipt.payment_id)
        for deposit in find(Deposit, "by_transaction", hash):
            assert isinstance(deposit, Deposit)
            yield Found("account", deposit.account_id)
    try:
        chain_type = identify_chain_type(sought)
        address = normalize_address(chain_type, sought)
    except AddressError:
        return
    for wallet in find(Wallet, "by_linked_address", chain_type, address):
        assert isinstance(wallet, Wallet)
        yield Found("account", wallet.account_id)
    for refund in find(Refund, "by_destination", address):
        assert isinstance(refund, Refund)
        yield Found("payment", refund.payment_id)


def _locate_owners(storage: Storage, partition: str, sought: str) -> Iterator[str]:
    """The ids of what has an address of ours or a transaction of ours, in that partition."""
    if _HASH.fullmatch(sought):
        key = [(_normalize_hash(sought),)]
        for sent in storage.locate(OutboundTransfer, "by_transaction", key):
            if sent.partition == partition:
                yield sent.record.owner_id
        for replaced in storage.locate(Replacement, "by_transaction", key):
            if replaced.partition == partition:
                yield from _read_owner(storage, partition, replaced.record.outgoing_id)
    try:
        address = normalize_address(identify_chain_type(sought), sought)
    except AddressError:
        return
    for escrow in storage.locate(Payment, "by_escrow", [(address,)]):
        if escrow.partition == partition:
            yield escrow.record.id
    for deposit in storage.locate(DepositAddress, "by_address", [(address,)]):
        if deposit.partition == partition:
            yield deposit.record.account_id


def _read_owner(storage: Storage, partition: str, transfer_id: str) -> Iterator[str]:
    sent = storage.read(partition, lambda snapshot: snapshot.get(OutboundTransfer, transfer_id))
    if sent is not None:
        yield sent.owner_id


def _normalize_hash(sought: str) -> str:
    return sought.lower() if sought.startswith("0x") else sought
