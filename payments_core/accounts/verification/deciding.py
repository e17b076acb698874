"""What a decision of a provider, or of an operator, changes: in one commit with its cause."""

from __future__ import annotations

from payments_core.accounts.capabilities.jobs import review_job
from payments_core.accounts.record import Account, KycStatus
from payments_core.accounts.verification.lifecycle import apply_trigger, follow, triggers_to
from payments_core.accounts.verification.record import Verification
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.step import Step
from payments_core.errors import NotFound
from payments_core.storage.port import Transaction


def decide_verification(
    tx: Transaction,
    partition: str,
    account_id: str,
    verification_id: str,
    status: KycStatus,
    api_version: str,
    *,
    now: Instant,
) -> Decision[Verification]:
    """The verification after a decision; its account follows only its newest verification.

    A decision that was made before changes nothing. Raises NotFound, and InvalidState if it was
    decided otherwise.
    """
    account = lock_account(tx, account_id)
    verification = tx.get(Verification, verification_id, for_update=True)
    if verification is None or verification.account_id != account.id:
        raise NotFound("verification")
    if verification.status == status:
        return Decision(verification)
    step = apply_triggers(verification, status, now=now)
    decision = step.as_decision(step.record)
    if verification.id != account.verification_id:
        return decision
    return decision.merge(follow_newest(partition, account, step.record, api_version, now=now))


def apply_triggers(
    verification: Verification, status: KycStatus, *, now: Instant
) -> Step[Verification]:
    """The verification at a status of the provider: a decision may come before the start ended."""
    step = Step(verification)
    for trigger in triggers_to(status, verification):
        step = step.then(apply_trigger, trigger, now=now)
    return step


def follow_newest(
    partition: str,
    account: Account,
    newest: Verification,
    api_version: str,
    *,
    now: Instant,
) -> Decision[None]:
    """The account with the status of its newest verification; an approval wakes what waits."""
    followed = follow(account, newest, api_version, now=now).as_decision()
    if newest.status != "approved":
        return followed
    return followed.merge(Decision(None, jobs=(review_job(partition, account.id, now),)))


def lock_account(tx: Transaction, account_id: str) -> Account:
    """The account, locked. Raises NotFound."""
    account = tx.get(Account, account_id, for_update=True)
    if account is None:
        raise NotFound("account")
    return account
