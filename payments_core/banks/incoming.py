"""The port to a bank that takes transfers for accounts: virtual accounts, and what arrives there.

Amounts are US cents. A bank that does this as well as `port.Bank` offers reusable on-ramps. The
money of an incoming transfer leaves the bank once: it is delivered as stablecoins, or sent back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Literal, Protocol, runtime_checkable

import attrs

from payments_core.banks.port import MAX_NOTICES
from payments_core.banks.return_codes import HolderType
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view

IncomingRail = Literal["ach_push", "wire"]
INCOMING_RAILS: tuple[IncomingRail, ...] = ("ach_push", "wire")

IncomingStatus = Literal["scheduled", "in_review", "received", "returned", "cancelled"]
DeliveryStatus = Literal["pending", "delivered"]


@attrs.frozen(kw_only=True)
class VirtualAccountRequest:
    """An account that is to get its own account number at the bank."""

    key: str
    account_id: str
    external_user_id: str
    subject_type: HolderType


@attrs.frozen(kw_only=True)
class VirtualAccount:
    """Where others send money for an account. It never changes.

    The addresses are one line each. `reference` is what a sender writes on a transfer.
    """

    key: str
    bank_name: str
    bank_address: str
    beneficiary_name: str
    beneficiary_address: str
    account_number: str = attrs.field(repr=False)
    routing_number: str
    reference: str
    rails: tuple[IncomingRail, ...] = INCOMING_RAILS


@attrs.frozen(kw_only=True)
class IncomingTransfer:
    """A transfer to one of our numbers, as the bank reports it.

    `account_key` is the key of the virtual account, None if the bank does not know it. It is
    `scheduled` until it settles, about at `expected_at`; `in_review` while the bank holds it, and
    `received` when the money may be used. A `cancelled` transfer never arrived; a
    `returned` transfer was sent back, by the bank or by us, for `reason`. Its account, rail and
    amount never change.
    """

    id: str
    account_key: str | None
    rail: IncomingRail
    amount_cents: int
    status: IncomingStatus
    sender_name: str | None = attrs.field(default=None, repr=False)
    reference: str | None = None
    expected_at_ms: Instant | None = None
    received_at_ms: Instant | None = None
    reason: str | None = None

    expected_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("expected_at_ms")
    received_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("received_at_ms")


@attrs.frozen(kw_only=True)
class DeliveryOrder:
    """Stablecoins to be bought with a received transfer and sent to an address, once per key.

    `amount_atomic` is worth as much as the transfer.
    """

    key: str
    incoming_id: str
    chain_id: int
    token_address: str
    address: str
    amount_atomic: int


@attrs.frozen(kw_only=True)
class Delivery:
    """A delivery as the bank reports it. Only the chain proves that it has arrived."""

    key: str
    status: DeliveryStatus
    transaction_hash: str | None = None


@attrs.frozen(kw_only=True)
class IncomingNotice:
    """A hint that an incoming transfer changed: read the transfer for its true state."""

    id: str
    incoming_id: str
    account_key: str | None
    occurred_at_ms: Instant

    occurred_at: ClassVar[FieldView[datetime]] = instant_view("occurred_at_ms")


@attrs.frozen(kw_only=True)
class NoticePage:
    """Notices that were not acknowledged; `next` is where to continue, None at the end."""

    notices: Sequence[IncomingNotice]
    next: str | None


@runtime_checkable
class FundingBank(Protocol):
    """An adapter. It may be used from many threads, and by several processes at once.

    The errors are those of `banks.port`: BankUnavailable, after which the request may have
    been carried out and may be repeated; BankRefused, and nothing has happened; KeyReused.
    """

    @property
    def max_notice_pause_ms(self) -> int:
        """How seldom the bank may be asked for notices when there were none for long."""

    def open_virtual_account(self, request: VirtualAccountRequest) -> VirtualAccount:
        """A number for an account, or the number that was made earlier under the same key.

        Raises BankUnavailable, BankRefused for an account that the bank will never serve, and
        KeyReused if the key came with another request.
        """

    def find_incoming(self, incoming_id: str) -> IncomingTransfer | None:
        """The transfer as it is now, or None if the bank knows no transfer of this id.

        A status only moves forward: `scheduled`, `in_review`, `received`, and from each of them to
        `returned`; `cancelled` only before `received`. After a delivery was ordered it stays
        `received`. Raises BankUnavailable.
        """

    def return_incoming(self, incoming_id: str, reason: str) -> IncomingTransfer:
        """Send a transfer back to its sender. A returned transfer is left as it is.

        `reason` is a word for programs. Raises BankUnavailable, and BankRefused if it is not
        `received` or `in_review`, or if a delivery was ordered with it.
        """

    def deliver(self, order: DeliveryOrder) -> Delivery:
        """Order a delivery, or return the present state of the delivery under the same key.

        Raises BankUnavailable, KeyReused, and BankRefused if the transfer is not `received` or
        has another delivery.
        """

    def list_incoming_notices(
        self, limit: int = MAX_NOTICES, after: str | None = None
    ) -> NoticePage:
        """Notices that were not acknowledged, at most `limit`; `after` is the `next` of a page.

        Each change of a status has a notice. Notices come late, more than once and in any order,
        but none comes before `find_incoming` shows the change, and none is lost: it is listed
        again until it is acknowledged. Raises BankUnavailable.
        """

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        """Acknowledge these notices: they are not listed again. Unknown ids are ignored.

        Raises BankUnavailable, after which they may be listed again.
        """
