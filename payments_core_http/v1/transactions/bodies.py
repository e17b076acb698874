"""The queries of transactions."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from payments_core.legacy.transactions.operations import MAX_REACH
from payments_core.validation.fields import AccountId, ChainId, HttpPageLimit, Id
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.query import DEFAULT_LIMIT


@frozen_body
class OneTransaction:
    """A transaction by its id."""

    transactionId: Id


@frozen_body
class TransactionsQuery:
    """An account's transactions, newest first.

    Pages reach 1,000 transactions; `before` is the id of a transaction, and the list begins after
    it.
    """

    userId: AccountId
    page: Annotated[int, Meta(ge=1, le=MAX_REACH)] = 1
    """The number of the page, from 1."""
    limit: HttpPageLimit = DEFAULT_LIMIT
    type: Literal["deposit", "payment", "settlement"] | None = None
    """Only those of this kind."""
    status: Literal["pending", "processing", "completed", "failed"] | None = None
    """Only those with this status."""
    chainId: ChainId | None = None
    before: Id | None = None
    """The id of a transaction: the list begins after it."""
