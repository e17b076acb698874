"""Deposit addresses and deposits as they are stored (contract §5)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.chains.judge import Reason
from payments_core.chains.outbox.record import ReturnAddress
from payments_core.chains.port import Contract
from payments_core.clock import Instant
from payments_core.field_views import FieldView, amount_view, instant_view, optional_instant_view
from payments_core.misdirected.record import SentBack
from payments_core.money import Atomic, atomic
from payments_core.networks import Asset, ChainType, pin_token, shipped_networks
from payments_core.storage.records import Collection, Document, Index, Lookup, Record, Unique

REORGED = "reorged"
"""The failure of a deposit whose block was undone."""

_LOG = ("chain_id", "transaction_hash", "position", "address")


@attrs.frozen(kw_only=True, slots=False)
class DepositAddress(Record):
    """An account's static address on a chain; the same on all EVM chains.

    Transfers there on any served chain go to the account's vault on that chain. `coin_report_id` is
    our newest transaction that makes a log of native coin there.

    >>> [found.chain_type for found in shop.deposits.list_addresses(bob.id).records]
    ['evm']
    """

    collection: ClassVar[Collection] = Collection(
        "deposit_addresses",
        columns={"account_id": str, "chain_id": int, "address": str, "created_at": int},
        indexes=(Index("by_account", key=("account_id",), order=("created_at",)),),
        uniques=(Unique("account_chain", ("account_id", "chain_id")),),
        lookups=(Lookup("by_address", ("address",)),),
        schema=2,
    )

    account_id: str
    chain_id: int
    chain_type: ChainType
    address: str
    coin_report_id: str | None = None
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


AnyDepositAddress = DepositAddress | ReturnAddress
"""Where deposits arrive: at an account's own address, or at one that has paid for its vault."""


def _pin_token(document: Document) -> Document:
    """The token was found by its symbol in a table of the code, which had the watch list too."""
    shipped, pinned = shipped_networks(), pin_token(document)
    token = shipped.find_token(pinned["chain_id"], pinned["asset_symbol"])
    return {**pinned, "is_misdirected": not shipped.is_credited(token)}


@attrs.frozen(kw_only=True, slots=False)
class Deposit(Record):
    """One transfer to a deposit address, counted exactly once.

    The key is the log's position within its transaction, which survives a reorg, and its
    recipient: if the chain later shows another recipient there, that is another deposit.
    `block_number` is the height where it was last seen; without `block_hash` it is not there now.
    `sweep_id` is our transfer of it to the vault. `failure` says why it failed: `reorged`, or
    the reason for which the sweep failed. While it is `watched` there is a job that follows it.
    A token of the watch list is misdirected: no account is credited with it. It is
    `rejected`, with the reason; `sent_back` is its way back, if that was requested. `returned_from`
    is the transfer out of the vault whose recipient has sent it back, if one has.

    >>> address = shop.deposits.issue_address(eve.id, 8453).address.address
    >>> sent = shop.sandbox.transfer(8453, "USDC", "3.00", to=address)
    >>> checked = shop.deposits.check(eve.id)
    >>> [(found.status, found.asset_symbol) for found in shop.deposits.list(eve.id).records]
    [('detected', 'USDC')]
    """

    collection: ClassVar[Collection] = Collection(
        "deposits",
        columns={
            "account_id": str,
            "chain_id": int,
            "transaction_hash": str,
            "position": int,
            "address": str,
            "block_number": int,
            "status": str,
            "failure": str,
            "created_at": int,
        },
        indexes=(
            Index("by_account", key=("account_id",), order=("created_at",), descending=True),
            Index(
                "by_status",
                key=("account_id", "status"),
                order=("created_at",),
                descending=True,
            ),
            Index("by_log", key=_LOG),
            Index("by_transaction", key=("transaction_hash",)),
        ),
        uniques=(Unique("log", _LOG),),
        lookups=(Lookup("by_block", ("chain_id", "block_number")),),
        schema=6,
        upgrades={4: _pin_token},
    )

    account_id: str
    deposit_address_id: str
    chain_id: int
    asset_symbol: str
    token_address: str = attrs.field(repr=False)
    decimals: int = attrs.field(repr=False)
    is_misdirected: bool = False
    amount_atomic: Atomic = attrs.field(converter=atomic)
    sender: str
    address: str
    transaction_hash: str
    position: int
    log_index: int
    block_number: int
    block_hash: str | None
    status: str
    status_version: int
    failure: str | None = None
    rejection_reason: Reason | None = None
    sent_back: SentBack | None = None
    sweep_id: str | None = None
    watched: bool = True
    returned_from: str | None = None
    external_user_id: str
    api_version: str
    created_at_ms: Instant
    updated_at_ms: Instant
    confirmed_at_ms: Instant | None = None
    settled_at_ms: Instant | None = None

    amount: ClassVar[FieldView[str]] = amount_view("amount_atomic")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")
    confirmed_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("confirmed_at_ms")
    settled_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("settled_at_ms")

    @property
    def asset(self) -> Asset:
        """The token that arrived."""
        return Asset(self.chain_id, self.asset_symbol, self.token_address, self.decimals)

    @property
    def contract(self) -> Contract:
        """The contract that holds it until it is swept."""
        if self.returned_from is not None:
            return Contract("escrow", self.returned_from, self.address)
        return Contract("deposit", self.account_id, self.address)


def find_returned_transfer(address: AnyDepositAddress) -> str | None:
    """The transfer out of a vault that came from an address, if any."""
    return address.outgoing_id if isinstance(address, ReturnAddress) else None
