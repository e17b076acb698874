"""A vault's balance: reserved, voided and settled amounts, and today's total. Pure."""

from __future__ import annotations

from payments_core.accounts.vaults.record import VaultBalance
from payments_core.clock import DAY, Instant
from payments_core.engine.decision import StaleView
from payments_core.errors import InsufficientBalance
from payments_core.evolve import evolve
from payments_core.money import Money


class StaleBalance(StaleView):
    """The chain's answer is older than the known total: ask the chain again."""


def with_chain_total(balance: VaultBalance, total: int, height: int) -> VaultBalance:
    """The balance with the chain's total at a final height. Raises StaleBalance."""
    if height < balance.height:
        raise StaleBalance
    return evolve(balance, total_atomic=total, height=height)


def daily_spend(balance: VaultBalance, now: Instant) -> int:
    """The amount that counts towards the daily limit now.

    If the clock has stepped back over midnight, the newer day's count continues; a day
    further ahead was counted under a wrong clock, and is ignored.
    """
    return balance.spent_atomic if balance.spent_day == _current_spend_day(balance, now) else 0


def reserve(
    balance: VaultBalance, amount: Money, *, now: Instant, counts: bool = True
) -> VaultBalance:
    """The balance with `amount` set aside, and by default counted towards the day.

    Raises InsufficientBalance.
    """
    if not amount <= balance.available:
        raise InsufficientBalance(balance.available.amount_atomic, amount.amount_atomic)
    reserved = evolve(balance, reserved_atomic=balance.reserved_atomic + amount.amount_atomic)
    if not counts:
        return reserved
    return evolve(
        reserved,
        spent_day=_current_spend_day(balance, now),
        spent_atomic=daily_spend(balance, now) + amount.amount_atomic,
    )


def void_reserved_amount(
    balance: VaultBalance, amount: Money, *, counted_at: Instant | None
) -> VaultBalance:
    """The balance after a voided reservation.

    `counted_at` is the moment that `reserve` counted it, None if it did not. A count of an
    earlier day is over, and nothing is taken off today's for it.
    """
    freed = _reduce_reserved(balance, amount)
    if counted_at is None or _day_of(counted_at) != balance.spent_day:
        return freed
    return evolve(freed, spent_atomic=max(0, balance.spent_atomic - amount.amount_atomic))


def settle_reserved_amount(
    balance: VaultBalance, amount: Money, total: int, height: int
) -> VaultBalance:
    """The balance after the reserved transfer is final; the counted amount stays counted.

    The new total and the end of the reservation must come together: if the reservation were given
    back against the old total, the same funds could be authorized twice.
    Raises StaleBalance.
    """
    return _reduce_reserved(with_chain_total(balance, total, height), amount)


def void_after_failure(
    balance: VaultBalance, amount: Money, total: int, height: int, *, counted_at: Instant | None
) -> VaultBalance:
    """The balance after the reserved transfer has failed permanently: given back, as in
    `void_reserved_amount`.

    The total is a new one, since a transfer may have failed because the funds had gone.
    Raises StaleBalance.
    """
    return void_reserved_amount(
        with_chain_total(balance, total, height), amount, counted_at=counted_at
    )


def _reduce_reserved(balance: VaultBalance, amount: Money) -> VaultBalance:
    left = Money(balance.reserved_atomic, balance.asset_id) - amount
    return evolve(balance, reserved_atomic=left.amount_atomic)


def _current_spend_day(balance: VaultBalance, now: Instant) -> int:
    """The day that a reservation counts towards."""
    today = _day_of(now)
    return today + 1 if balance.spent_day == today + 1 else today


def _day_of(instant: Instant) -> int:
    return instant // DAY
