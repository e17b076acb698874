"""What a decision about a Payment is made of."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from payments_core.accounts.vaults.reservations import BalanceReading
from payments_core.clock import Instant
from payments_core.engine.identifiers import IdSequence
from payments_core.payments.payouts.creation import PayoutTerms
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.plans import Refundable
from payments_core.storage.port import Transaction
from payments_core.tenants.authorization import Authority


@attrs.frozen
class Case:
    """A Payment to decide on, locked, with the amounts that can still go back."""

    tx: Transaction
    id_sequence: IdSequence
    authority: Authority
    payment: Payment
    refundable: Refundable
    destination: str | None
    receipt: Receipt | None
    payable: Collection[str]
    reading: BalanceReading | None
    terms: PayoutTerms | None
    note: str | None
    now: Instant
