"""Reserving a vault's funds for one transfer, and ending the reservation, within a decision.

The chain's balance is read first, outside the transaction
(`Vaults.read_balance`); the answer is compared inside with the record. The record may
have changed in between: the end of a reservation stores the height of a total that contains its
transfer, so only an older answer is wrong, and it raises StaleBalance: ask again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import ClassVar, Literal, TypeVar

import attrs

from payments_core.accounts.vaults.balance import (
    StaleBalance,
    daily_spend,
    reserve,
    settle_reserved_amount,
    void_after_failure,
    void_reserved_amount,
    with_chain_total,
)
from payments_core.accounts.vaults.policy_rules import (
    Spend,
    require_payee_allowed,
    require_policy_allows,
)
from payments_core.accounts.vaults.record import Policy, Vault, VaultBalance, balance_id
from payments_core.chains.port import FinalBalances
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, lock_shared
from payments_core.errors import DependencyFailed
from payments_core.evolve import evolve
from payments_core.field_views import FieldView, optional_instant_view
from payments_core.money import Money
from payments_core.networks import Asset
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

T = TypeVar("T")

PolicyRule = Literal["spending", "payee", "active"]
"""The part of a policy to check: everything, only the recipient, or only whether it is active."""

_MAX_ATTEMPTS = 8


@attrs.frozen
class BalanceReading:
    """A vault, and the chain's balance of it."""

    vault: Vault
    balances: FinalBalances


@attrs.frozen(kw_only=True)
class Reservation:
    """The reservation of a vault for one transfer; `counted_at` is None if it counts towards
    no daily limit."""

    vault_id: str
    asset: Asset
    amount_atomic: int
    counted_at_ms: Instant | None

    counted_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("counted_at_ms")


def retry_on_stale_balance(attempt: Callable[[], T]) -> T:
    """Run `attempt`, which asks the chain and commits, until no newer answer comes in between.

    Raises DependencyFailed if that does not end.
    """
    for _ in range(_MAX_ATTEMPTS):
        try:
            return attempt()
        except StaleBalance:
            continue
    raise DependencyFailed("chain")


def reads_of_reservation(reading: BalanceReading, symbol: str) -> tuple[Get, ...]:
    """The queries of `reserve_funds`."""
    return (
        Get(Policy, reading.vault.policy_id, "shared"),
        Get(VaultBalance, balance_id(reading.vault.id, symbol), "exclusive", is_optional=True),
    )


def reserve_funds(
    tx: Transaction,
    reading: BalanceReading,
    spend: Spend,
    *,
    now: Instant,
    counts: bool = True,
    rule: PolicyRule = "spending",
) -> Decision[int]:
    """Reserve an amount under the vault's policy; the result is the policy's version that allowed
    it.

    A refund to a payer is not spending: it `counts` towards no daily limit, and a weaker
    `rule` applies. Raises PolicyInactive, PolicyDenied, InsufficientBalance, StaleBalance.
    """
    policy = lock_shared(tx, Policy, reading.vault.policy_id)
    assert policy is not None
    id = balance_id(reading.vault.id, spend.asset.symbol)
    stored = tx.get(VaultBalance, id, for_update=True)
    balance = stored or VaultBalance(id=id, asset_id=spend.asset.id)
    if rule == "spending":
        require_policy_allows(policy, spend, daily_spend=daily_spend(balance, now))
    else:
        require_payee_allowed(policy, spend if rule == "payee" else None)
    current = with_chain_total(
        balance, reading.balances.amounts[reading.vault.address], reading.balances.height
    )
    after = reserve(current, Money(spend.amount_atomic, spend.asset.id), now=now, counts=counts)
    if stored is None:
        return Decision(policy.policy_version, inserts=(after,))
    return Decision(policy.policy_version, replaces=(after,))


def void_reservation(tx: Transaction, reservation: Reservation) -> Decision[None]:
    """The reservation released: its transfer was never sent."""
    balance, amount = _lock_balance(tx, reservation)
    freed = void_reserved_amount(balance, amount, counted_at=reservation.counted_at_ms)
    return Decision(None, replaces=(freed,))


def settle_reservation(
    tx: Transaction,
    reservation: Reservation,
    reading: BalanceReading,
    *,
    succeeded: bool,
    now: Instant,
) -> Decision[None]:
    """The reservation ended: its transfer is final, with success or without.

    `reading` was taken after that was known. A vault that has paid is deployed.
    Raises StaleBalance.
    """
    deployed = mark_deployed(tx, reading.vault, now=now) if succeeded else Decision(None)
    balance, amount = _lock_balance(tx, reservation)
    total, height = reading.balances.amounts[reading.vault.address], reading.balances.height
    if succeeded:
        after = settle_reserved_amount(balance, amount, total, height)
    else:
        after = void_after_failure(
            balance, amount, total, height, counted_at=reservation.counted_at_ms
        )
    return deployed.merge(Decision(None, replaces=(after,)))


def mark_deployed(tx: Transaction, known: Vault, *, now: Instant) -> Decision[None]:
    """The vault that has paid: its contract exists from then on."""
    if known.status == "deployed":  # it never goes back
        return Decision(None)
    vault = tx.get(Vault, known.id, for_update=True)
    assert vault is not None
    if vault.status == "deployed":
        return Decision(None)
    return Decision(None, replaces=(evolve(vault, status="deployed", updated_at_ms=now),))


def _lock_balance(tx: Transaction, reservation: Reservation) -> tuple[VaultBalance, Money]:
    id = balance_id(reservation.vault_id, reservation.asset.symbol)
    balance = tx.get(VaultBalance, id, for_update=True)
    assert balance is not None
    return balance, Money(reservation.amount_atomic, reservation.asset.id)
