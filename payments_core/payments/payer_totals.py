"""The amount that each sender has paid to a Payment's escrow, for refunds. Pure."""

from __future__ import annotations

from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.payments.record import PayerTotal

MAX_PAYERS = 100
"""The maximum number of senders recorded for a Payment: those that sent most."""


def add_payment_from(
    paid_by: tuple[PayerTotal, ...], address: str, amount: int, excess: int
) -> tuple[PayerTotal, ...]:
    """The senders' totals after another amount; the sender concerned comes last.

    Beyond the maximum number, the smallest total is dropped: dust never displaces a payer.
    """
    known = next(
        (item for item in paid_by if item.address == address),
        PayerTotal(address=address, amount_atomic=Atomic(0)),
    )
    changed = evolve(
        known,
        amount_atomic=known.amount_atomic + amount,
        excess_atomic=known.excess_atomic + excess,
    )
    others = tuple(item for item in paid_by if item.address != address)
    if not changed.amount_atomic and not changed.excess_atomic:
        return others
    if len(others) < MAX_PAYERS:
        return (*others, changed)
    least = min((*others, changed), key=lambda item: abs(item.amount_atomic))
    return tuple(item for item in (*others, changed) if item is not least)


def move_payment(
    paid_by: tuple[PayerTotal, ...], sender: str, payer: str, amount: int, excess: int
) -> tuple[PayerTotal, ...] | None:
    """The totals after an amount of `sender` turned out to be another payer's.

    None if the sender's total is smaller: some of it was sent back already.
    """
    known = next((item for item in paid_by if item.address == sender), None)
    if known is None or known.amount_atomic < amount or known.excess_atomic < excess:
        return None
    left = add_payment_from(paid_by, sender, -amount, -excess)
    return add_payment_from(left, payer, amount, excess)
