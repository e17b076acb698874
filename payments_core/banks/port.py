"""The bank port: the promises of a bank that pays US accounts.

Amounts are US cents. Every request has a key that the caller made and stored before the request:
the key makes a request safe to repeat. Each kind of request has its own space of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Literal, Protocol

import attrs

from payments_core.banks.payouts import BankPayout, BankPayoutStatus
from payments_core.banks.rails import Rail
from payments_core.banks.return_codes import HolderType
from payments_core.banks.reviews import BankCapability, BankReview
from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view

BankAccountType = Literal["checking", "savings"]

MAX_NOTICES = 100

UNNAMED = "*"
"""The reference of a webhook that names nothing (`notices.port`): the lists of notices are read."""


class BankUnavailable(Exception):
    """The bank did not answer in time. The request may have been carried out: read its state."""


class BankRefused(Exception):
    """The bank will not do this, now or later. Nothing has happened.

    `reason` is a word for programs. No text holds an account number.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class KeyReused(Exception):
    """The key belongs to another order or request. Nothing has happened."""


@attrs.frozen(kw_only=True)
class BankAccountDetails:
    """The account of a recipient."""

    holder_name: str = attrs.field(repr=False)
    holder_type: HolderType
    account_number: str = attrs.field(repr=False)
    routing_number: str
    account_type: BankAccountType


@attrs.frozen(kw_only=True)
class CapabilityRequest:
    """An account that is to use a service of the bank. Its holder's identity is verified."""

    key: str
    capability: BankCapability
    account_id: str
    external_user_id: str
    subject_type: HolderType
    return_url: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class PostalAddress:
    """An address in the United States. `state` has two letters."""

    __repr__ = brief_repr

    line1: str = attrs.field(repr=False)
    line2: str | None = attrs.field(default=None, repr=False)
    city: str
    state: str
    postal_code: str
    country: str = "US"


@attrs.frozen(kw_only=True)
class AccountRegistration:
    """A recipient's account that payouts are to go to."""

    key: str
    account: BankAccountDetails
    bank_name: str | None = None
    address: PostalAddress


@attrs.frozen(kw_only=True)
class PayoutOrder:
    """A transfer to be made, once per key.

    `statement_text` is for the recipient's statement. `same_day` asks for the fastest ACH service
    that takes the amount; a wire is always fast.
    """

    key: str
    rail: Rail
    amount_cents: int
    recipient: BankAccountDetails
    statement_text: str | None = None
    same_day: bool = False


@attrs.frozen(kw_only=True)
class BankNotice:
    """A hint that a payout changed: read the payout for its true state."""

    id: str
    payout_key: str
    status: BankPayoutStatus
    occurred_at_ms: Instant

    occurred_at: ClassVar[FieldView[datetime]] = instant_view("occurred_at_ms")


class Bank(Protocol):
    """An adapter. It may be used from many threads, and by several processes at once."""

    def request_capability(self, request: CapabilityRequest) -> BankReview:
        """Ask for a service for an account, or return the review of an earlier, identical request.

        Raises BankUnavailable, after which the request may have been made: ask again. Raises
        BankRefused for a request that the bank will never take, and KeyReused.
        """

    def find_capability(self, key: str) -> BankReview | None:
        """The review of a capability request as it is now, or None without such a request.

        A status only moves from `pending` to `active` or `rejected`. Raises BankUnavailable.
        """

    def register_account(self, registration: AccountRegistration) -> BankReview:
        """Give the bank a recipient's account, or return the review of an earlier, identical one.

        Raises as `request_capability` does.
        """

    def find_account(self, key: str) -> BankReview | None:
        """The review of a recipient's account as it is now, or None without such an account.

        A status only moves from `pending` to `active` or `rejected`. Raises BankUnavailable.
        """

    def submit(self, order: PayoutOrder) -> BankPayout:
        """Make a payout, or return the payout that was made earlier under the same key.

        Raises BankUnavailable, after which the payout may have been made: ask `find_payout`, or
        submit the same order again. Raises BankRefused for an order that the bank will never take,
        and KeyReused if the key came with another order.
        """

    def find_payout(self, key: str) -> BankPayout | None:
        """The payout as it is now, or None if the bank has none under this key.

        A payout that `submit` has answered is found from then on. A status only moves forward:
        from `submitted` to `settled`, and from either to `returned`. Raises BankUnavailable.
        """

    def list_notices(self, limit: int = MAX_NOTICES) -> Sequence[BankNotice]:
        """Notices that were not acknowledged, at most `limit` of them.

        Each payout that settles, and each that is returned, has a notice. Notices come late, more
        than once and in any order, but none comes before `find_payout` shows the change, and
        none is lost: it is listed again until it is acknowledged. Raises BankUnavailable.
        """

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        """Acknowledge these notices: they are not listed again. Unknown ids are ignored.

        Raises BankUnavailable, after which they may be listed again.
        """
