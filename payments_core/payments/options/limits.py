"""How many options a Payment may have."""

from __future__ import annotations

from collections import Counter

from payments_core.errors import PaymentOptionLimitReached
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.storage.port import Transaction

MAX_OPTIONS = 10
"""The maximum number of options that one payer may create for a Payment, ended and superseded ones
included. All payers without an account count as one: nothing distinguishes them."""

MAX_OPTIONS_OF_ALL = 100
"""The maximum number of options of a Payment: its record lists them and must stay small."""


def require_option_capacity(tx: Transaction, payment: Payment, account_id: str | None) -> None:
    """Raise PaymentOptionLimitReached if the payer, or the Payment, has its maximum of options.

    All payers without an account count as one. An option of theirs that was selected has superseded
    at most one Vault option, so an account may create one more for each: no stranger uses up an
    account's limit.
    """
    if len(payment.option_ids) >= MAX_OPTIONS_OF_ALL:
        raise PaymentOptionLimitReached(MAX_OPTIONS_OF_ALL)
    if len(payment.option_ids) < MAX_OPTIONS:
        return
    payers = Counter(
        option.payer_account_id
        for option in tx.get_many(PaymentOption, payment.option_ids, for_update=True).values()
    )
    limit = MAX_OPTIONS if account_id is None else MAX_OPTIONS + payers[None]
    if payers[account_id] >= limit:
        raise PaymentOptionLimitReached(MAX_OPTIONS)
