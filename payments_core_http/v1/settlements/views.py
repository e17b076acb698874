"""Settlements as v1 returns them (contract §10)."""

from __future__ import annotations

from typing import Literal

from payments_core.legacy.transactions.translation import transaction_id
from payments_core.payments.funding.record import FundingOperation
from payments_core_http.v1.envelope import Success
from payments_core_http.wire.classes import frozen_view

MESSAGE = "The settlement is accepted; the transfer from the vault follows."


@frozen_view
class SettlementView:
    """A settlement that was accepted; `get-transaction` shows its progress."""

    message: str
    """What happens next."""
    transactionId: str
    """The id to read its transaction by."""
    status: Literal["pending"] = "pending"


@frozen_view
class SettlementResponse(Success):
    """A settlement that was accepted."""

    data: SettlementView
    """The settlement."""


def settlement(operation: FundingOperation) -> SettlementView:
    """The transaction of an authorization."""
    return SettlementView(message=MESSAGE, transactionId=transaction_id(operation))
