"""Reserving a vault's funds for one transfer, and ending the reservation, within a decision.

What is to be reserved is asked of the chain first, outside the transaction (`Vaults.ask`); the
answer is compared inside with what the record knows. The record may have changed in between:
whatever ended a reservation noted the height of a total that contains its transfer, so only an
answer that is older than that is wrong, and it raises BalanceOutdated: ask again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import attrs

from payments_core.accounts.vaults.lifecycle import (
    BalanceOutdated,
    Spend,
    check_payee,
    check_policy,
    give_back,
    observed,
    reserve,
    spent,
    spent_nothing,
    spent_today,
)
from payments_core.accounts.vaults.record import Policy, Vault, VaultBalance, balance_id
from payments_core.assets import Asset
from payments_core.chains.port import BalancesAt
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, held
from payments_core.errors import DependencyFailed
from payments_core.money import Money
from payments_core.storage.port import Transaction

T = TypeVar("T")

Rule = Literal["spending", "payee", "active"]
"""What a policy is asked: everything, only whom it may pay, or only whether it is active."""

_ASKS = 8


@attrs.frozen
class Asked:
    """A vault, and the chain's figure for it."""

    vault: Vault
    at: BalancesAt


@attrs.frozen(kw_only=True)
class Reservation:
    """What is reserved of a vault for one transfer; `counted_at` is None where it counts towards
    no daily limit."""

    vault_id: str
    asset: Asset
    amount: int
    counted_at: Instant | None


def asking(attempt: Callable[[], T]) -> T:
    """Run `attempt`, which asks the chain and commits, until no newer answer comes in between.

    Raises DependencyFailed where that does not end.
    """
    for _ in range(_ASKS):
        try:
            return attempt()
        except BalanceOutdated:
            continue
    raise DependencyFailed("chain")


def reserved(
    tx: Transaction,
    asked: Asked,
    spend: Spend,
    *,
    now: Instant,
    counts: bool = True,
    rule: Rule = "spending",
) -> Decision[int]:
    """Reserve an amount under the vault's policy; the result is the version of it that allowed it.

    What goes back to a payer is no spending: it `counts` towards no daily limit, and a weaker
    `rule` applies. Raises PolicyInactive, PolicyDenied, InsufficientBalance, BalanceOutdated.
    """
    policy = held(tx, Policy, asked.vault.policy_id)
    assert policy is not None
    id = balance_id(asked.vault.id, spend.asset.symbol)
    stored = tx.get(VaultBalance, id, for_update=True)
    balance = stored or VaultBalance(id=id, asset_id=spend.asset.id)
    if rule == "spending":
        check_policy(policy, spend, spent_today=spent_today(balance, now))
    else:
        check_payee(policy, spend if rule == "payee" else None)
    current = observed(balance, asked.at.amounts[asked.vault.address], asked.at.height)
    after = reserve(current, Money(spend.amount, spend.asset.id), now=now, counts=counts)
    if stored is None:
        return Decision(policy.policy_version, inserts=(after,))
    return Decision(policy.policy_version, replaces=(after,))


def withdrawn(tx: Transaction, reservation: Reservation) -> Decision[None]:
    """The reservation given back: its transfer was never sent."""
    balance, amount = _locked(tx, reservation)
    freed = give_back(balance, amount, counted_at=reservation.counted_at)
    return Decision(None, replaces=(freed,))


def settled(
    tx: Transaction, reservation: Reservation, asked: Asked, *, succeeded: bool
) -> Decision[None]:
    """The reservation ended: its transfer is final, with success or without.

    `asked` was read after that was known. Raises BalanceOutdated.
    """
    balance, amount = _locked(tx, reservation)
    total, height = asked.at.amounts[asked.vault.address], asked.at.height
    if succeeded:
        after = spent(balance, amount, total, height)
    else:
        after = spent_nothing(balance, amount, total, height, counted_at=reservation.counted_at)
    return Decision(None, replaces=(after,))


def _locked(tx: Transaction, reservation: Reservation) -> tuple[VaultBalance, Money]:
    id = balance_id(reservation.vault_id, reservation.asset.symbol)
    balance = tx.get(VaultBalance, id, for_update=True)
    assert balance is not None
    return balance, Money(reservation.amount, reservation.asset.id)
