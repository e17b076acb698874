"""Vault balances: reserving, giving back, settling. Pure."""

from __future__ import annotations

import attrs

from payments_core.errors import InsufficientBalance, PolicyInactive
from payments_core.money import Money
from payments_core.vaults.record import Policy, VaultBalance


class BalanceOutdated(Exception):
    """The chain's answer is older than what is already known: ask the chain again."""


def check_policy(policy: Policy) -> None:
    """Raise PolicyInactive unless the policy lets funds leave the vault."""
    if policy.status != "active":
        raise PolicyInactive()


def observed(balance: VaultBalance, total: int, height: int) -> VaultBalance:
    """The balance with the chain's total at a final height. Raises BalanceOutdated."""
    if height < balance.height:
        raise BalanceOutdated
    return attrs.evolve(balance, total=total, height=height)


def reserve(balance: VaultBalance, amount: Money) -> VaultBalance:
    """The balance with `amount` set aside. Raises InsufficientBalance."""
    if not amount <= balance.available:
        raise InsufficientBalance(balance.available.amount_atomic, amount.amount_atomic)
    return attrs.evolve(balance, reserved=balance.reserved + amount.amount_atomic)


def give_back(balance: VaultBalance, amount: Money) -> VaultBalance:
    """The balance after a reservation that came to nothing."""
    return attrs.evolve(balance, reserved=balance.reserved - amount.amount_atomic)


def spent(balance: VaultBalance, amount: Money, total: int, height: int) -> VaultBalance:
    """The balance after the reserved transfer is final.

    The new total and the end of the reservation must come together: were the reservation given
    back against the old total, the same funds could be authorized once more.
    Raises BalanceOutdated.
    """
    return give_back(observed(balance, total, height), amount)
