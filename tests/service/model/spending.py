"""What may leave a vault: nothing reserved twice, no limit passed, nobody who may not pay."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from payments_core.accounts.record import Account
from payments_core.accounts.vaults.record import Policy, Vault, VaultBalance
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.mandates.record import Mandate
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.records import Record
from tests.service.model.index import LIVE_OPERATION, LIVE_SEND, Index, Wrong, reservations
from tests.service.model.mirror import Commit
from tests.service.model.model_world import ModelWorld

DAY = 86_400_000


def no_funds_are_reserved_twice(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """What a balance has reserved is what the live operations, sends and refunds need."""
    touched = {balance.id for balance in commit.after(VaultBalance)}
    for before, after in commit.changes:
        for record in (before, after):
            if record is not None:
                touched |= {id for id, _ in reservations(record)}
    for id in sorted(touched):
        balance = world.all(VaultBalance).get(id)
        reserved = balance.reserved_atomic if balance else 0
        if reserved != index.reserved[id]:
            yield f"{id} reserves {reserved}, and {index.reserved[id]} is needed"
    for before, after in _balances(commit):
        risen = after.reserved_atomic > (before.reserved_atomic if before else 0)
        if risen and after.reserved_atomic > after.total_atomic:
            yield f"{after.id} reserves {after.reserved_atomic} of {after.total_atomic}"


def limits_are_kept(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """What counts towards a day or a period is not below what was spent, nor above the limit."""
    for before, after in _balances(commit):
        vault = world.all(Vault)[after.id.split("/")[0]]
        limit = world.all(Policy)[vault.policy_id].daily_limit
        known = before.spent_atomic if before and before.spent_day == after.spent_day else 0
        if (
            after.spent_atomic > known
            and limit is not None
            and after.spent_atomic > Decimal(limit) * 10**6
        ):
            yield f"{after.id} has spent {after.spent_atomic} of {limit}"
        least = sum(_spent(world, after))
        if after.spent_atomic < least:
            yield f"{after.id} counts {after.spent_atomic}, and {least} was spent on that day"
    for mandate in commit.after(Mandate):
        if not 0 <= mandate.drawn_atomic <= mandate.amount_per_period_atomic:
            yield f"{mandate.id} drew {mandate.drawn_atomic} of {mandate.amount_per_period_atomic}"


def _spent(world: ModelWorld, balance: VaultBalance) -> Iterator[int]:
    """What certainly counts on the balance's day: authorized then, and not failed."""
    for operation in world.all(FundingOperation).values():
        is_its = f"{operation.vault_id}/{operation.asset_symbol}" == balance.id
        is_on = operation.status in (*LIVE_OPERATION, "confirmed")
        if is_its and is_on and (operation.authorized_at_ms or 0) // DAY == balance.spent_day:
            yield operation.amount_atomic
    for payment in world.all(Payment).values():
        source = payment.source
        if payment.intent != "send" or source is None:
            continue
        is_its = f"{source.vault_id}/{payment.asset_symbol}" == balance.id
        is_on = payment.status in LIVE_SEND or payment.settled_atomic > 0
        if is_its and is_on and source.reserved_at_ms // DAY == balance.spent_day:
            yield payment.amount_atomic


def nobody_pays_who_may_not(world: ModelWorld, index: Index, commit: Commit) -> Wrong:
    """At the commit itself the policy is active, in the version that is recorded, and lets the
    amount pass; the payer's account is active, and so is the mandate."""
    for vault_id, version, amount in _spending(commit):
        vault = world.all(Vault)[vault_id]
        policy = world.all(Policy)[vault.policy_id]
        if policy.status != "active" or version not in (None, policy.policy_version):
            yield f"{policy.id} is {policy.status} in version {policy.policy_version}"
        limit = policy.per_payment_limit
        if version is not None and limit is not None and amount > Decimal(limit) * 10**6:
            yield f"{policy.id} lets no more than {limit} pass, and not {amount}"
        account = world.all(Account)[vault.account_id]
        if version is not None and account.status != "active":
            yield f"{account.id} is {account.status}, and pays"
    for payment in commit.inserted(Payment):
        source = payment.source
        if source is not None and source.mandate_id is not None:
            mandate = world.all(Mandate)[source.mandate_id]
            if mandate.status != "active":
                yield f"{mandate.id} is {mandate.status}, and is drawn on"


def _spending(commit: Commit) -> Iterator[tuple[str, int | None, int]]:
    """What a commit lets out of which vault under which version; refunds record no version."""
    for before, after in commit.changes:
        if isinstance(after, FundingOperation) and _is_authorized_by(before, after):
            yield after.vault_id, after.policy_version, after.amount_atomic
        if isinstance(after, Payment) and after.intent == "send" and after.source is not None:
            earlier = before.source if isinstance(before, Payment) else None
            if earlier != after.source:
                yield after.source.vault_id, after.source.policy_version, after.amount_atomic
        if isinstance(after, Refund) and before is None and after.vault_id is not None:
            yield after.vault_id, None, after.amount_atomic


def _is_authorized_by(before: Record | None, after: FundingOperation) -> bool:
    earlier = before.status if isinstance(before, FundingOperation) else "awaiting_authorization"
    return after.status == "authorized" and earlier == "awaiting_authorization"


def _balances(commit: Commit) -> Iterator[tuple[VaultBalance | None, VaultBalance]]:
    yield from commit.replaced(VaultBalance)
    for balance in commit.inserted(VaultBalance):
        yield None, balance
