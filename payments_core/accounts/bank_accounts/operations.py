"""Bank accounts: requirements, add, list, follow the bank's review (contract §7).

Adding one stores it, with its number sealed. A job gives it to the bank, under a key that is
stored beforehand, and checks until the bank has decided.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import attrs

from payments_core.accounts.bank_accounts import lifecycle
from payments_core.accounts.bank_accounts.fields import (
    FieldRequirement,
    NewBankAccount,
    field_requirements,
    find_bank_account_faults,
    payout_field_requirements,
)
from payments_core.accounts.bank_accounts.record import NUMBER_SEAL, BankAccount
from payments_core.accounts.capabilities.eligibility import load_eligibility, lock_capability
from payments_core.accounts.capabilities.jobs import look_job, next_review_at
from payments_core.accounts.capabilities.operations import find_activation_id, lock_active_account
from payments_core.accounts.capabilities.record import PRODUCT_OF_CAPABILITY
from payments_core.accounts.queries import list_for_account
from payments_core.accounts.vaults.record import Vault
from payments_core.banks.account_numbers import mask_account_number
from payments_core.banks.port import (
    AccountRegistration,
    Bank,
    BankAccountDetails,
    BankRefused,
    BankUnavailable,
    PostalAddress,
)
from payments_core.banks.rails import RAILS, Rail
from payments_core.banks.reviews import BankCapability, BankReview
from payments_core.brief_repr import brief_repr
from payments_core.chains.backoff import back_off
from payments_core.clock import Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.audit import Actor
from payments_core.engine.decision import Decision, NewJob, WorkerAuthority
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import ValidationFailed
from payments_core.evolve import evolve
from payments_core.notices.owners import Routed, bring_looks_forward
from payments_core.storage.jobs import Job
from payments_core.storage.port import ClaimedJob, Page, Position, Transaction
from payments_core.tenants.authorization import Authority, require_product
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import PageLimit

REVIEW_BANK_ACCOUNT = "bank_accounts.review"
LOOK_AT_BANK_ACCOUNT = "bank_accounts.look"
PAYOUT: BankCapability = "us_bank_payout"


@attrs.frozen(kw_only=True)
class BankAccountRequirements:
    """Whether an account can add bank accounts and, if not, why; the required fields, the texts of
    a payout, and the vaults that can pay.

    A reason is `account_suspended`, `account_closed`, `entitlement_required` or
    `capability_not_active`.

    >>> needed = shop.bank_accounts.read_requirements(bob.id)
    >>> needed.rails, [field.name for field in needed.fields][:3]
    (('ach', 'wire'), ['currency', 'country', 'account_holder_name'])
    """

    __repr__ = brief_repr

    eligible: bool
    reasons: tuple[str, ...]
    rails: tuple[Rail, ...]
    vaults: tuple[Vault, ...]
    fields: tuple[FieldRequirement, ...]
    payout_fields: tuple[FieldRequirement, ...]


class BankAccounts:
    """Adds bank accounts to accounts, and lists them."""

    def __init__(self, ports: Ports, banks: Mapping[str, Bank]) -> None:
        self._ports = ports
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._key_ring = ports.key_ring
        self._banks = banks

    def requirements(self, authority: Authority, account_id: str) -> BankAccountRequirements:
        """The requirements of a new bank account. Raises NotFound."""

        found = self._storage.read(
            authority.partition,
            lambda snapshot: load_eligibility(snapshot, authority, account_id, PAYOUT),
        )
        return BankAccountRequirements(
            eligible=not found.reasons,
            reasons=found.reasons,
            rails=() if found.reasons else RAILS,
            vaults=found.vaults,
            fields=tuple(field_requirements()),
            payout_fields=tuple(payout_field_requirements()),
        )

    @once_per_key
    def add(
        self,
        authority: Authority,
        account_id: str,
        new: NewBankAccount,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> BankAccount:
        """A new bank account, which is pending until the bank has reviewed it.

        Raises ValidationFailed with every error, NotFound, AccountSuspended, EntitlementRequired,
        and CapabilityNotActive until the account's capability us_bank_payout is active.
        """
        if faults := find_bank_account_faults(new.routing_number):
            raise ValidationFailed(tuple(faults))
        authority = require_product(authority, PRODUCT_OF_CAPABILITY[PAYOUT])
        now = self._clock.now()
        activation_id = self._storage.read(
            authority.partition, lambda snapshot: find_activation_id(snapshot, account_id, PAYOUT)
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[BankAccount]:
            account = lock_active_account(tx, account_id)
            lock_capability(tx, activation_id, PAYOUT)
            id = id_sequence.issue("bank_account")
            made = BankAccount(
                id=id,
                account_id=account.id,
                external_user_id=account.external_user_id,
                currency=new.currency,
                country=new.country,
                holder_name=new.account_holder_name,
                holder_type=new.account_holder_type,
                sealed_number=seal_number(self._key_ring, id, new.account_number),
                last4=mask_account_number(new.account_number),
                routing_number=new.routing_number,
                account_type=new.account_type,
                bank_name=new.bank_name,
                address=PostalAddress(**attrs.asdict(new.address)),
                api_version=authority.api_version,
                created_at_ms=now,
                updated_at_ms=now,
            )
            step = lifecycle.create(made)
            job = NewJob("timers", REVIEW_BANK_ACCOUNT, f"bank:{authority.partition}", now, made.id)
            return evolve(step.as_decision(step.record), jobs=(job,))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def list(
        self,
        authority: Authority,
        account_id: str,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[BankAccount]:
        """The account's bank accounts, newest first. Raises NotFound."""
        return list_for_account(
            self._storage, authority, account_id, BankAccount, after=after, limit=limit
        )

    def review(self, claimed: ClaimedJob) -> None:
        """The job of a bank account: give it to the bank, and check until the bank has decided."""
        self._review(claimed, is_hint=False)

    def look(self, claimed: ClaimedJob) -> None:
        """The job for a notice of the bank: check once. The bank account's own job continues."""
        self._review(claimed, is_hint=True)

    def bring_forward(self, mode: str, reference: str) -> Routed:
        """Look at the bank account of a key now. See NoticeOwner."""

        def new_job(partition: str, bank_account: BankAccount) -> Job | None:
            if bank_account.status != "pending":
                return None
            now = self._clock.now()
            return look_job(mode, LOOK_AT_BANK_ACCOUNT, partition, bank_account.id, now)

        return bring_looks_forward(
            self._ports, mode, BankAccount, "by_bank_key", reference, new_job
        )

    def _review(self, claimed: ClaimedJob, *, is_hint: bool) -> None:
        authority = WorkerAuthority.of(claimed, Actor("provider", "bank"))
        bank = self._banks.get(authority.mode)
        bank_account = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(BankAccount, claimed.job.subject)
        )
        if bank_account is None or bank_account.status != "pending":
            self._committer.finish(claimed)
            return
        try:
            review = None if bank is None else self._ask(bank, bank_account)
        except BankUnavailable:
            review = None
        now = self._clock.now()
        if review is None:
            self._committer.finish(claimed, back_off(claimed.job, now, "bank"))
            return

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            decided = _decide_review(tx, claimed.job.subject, review, now=now)
            return evolve(decided, next_run_at=None) if is_hint else decided

        self._committer.commit(authority, decide, claimed=claimed)

    def _ask(self, bank: Bank, bank_account: BankAccount) -> BankReview:
        """The bank's review, giving the account to the bank if it never was."""
        found = bank.find_account(bank_account.id)
        if found is not None:
            return found
        registration = AccountRegistration(
            key=bank_account.id,
            account=open_details(self._key_ring, bank_account),
            bank_name=bank_account.bank_name,
            address=bank_account.address,
        )
        try:
            return bank.register_account(registration)
        except BankRefused as error:
            return BankReview(
                key=bank_account.id, reference="", status="rejected", reason=str(error)
            )


def seal_number(key_ring: KeyRing, bank_account_id: str, number: str) -> str:
    """An account number as it is stored."""
    sealed = key_ring.seal(NUMBER_SEAL, bank_account_id, number.encode())
    return base64.b64encode(sealed).decode()


def open_details(key_ring: KeyRing, bank_account: BankAccount) -> BankAccountDetails:
    """The data that a bank needs, with the account number in clear text. Raises SealBroken."""
    sealed = base64.b64decode(bank_account.sealed_number)
    return BankAccountDetails(
        holder_name=bank_account.holder_name,
        holder_type=bank_account.holder_type,
        account_number=key_ring.open(NUMBER_SEAL, bank_account.id, sealed).decode(),
        routing_number=bank_account.routing_number,
        account_type=bank_account.account_type,
    )


def _decide_review(
    tx: Transaction, bank_account_id: str, review: BankReview, *, now: Instant
) -> Decision[None]:
    bank_account = tx.get(BankAccount, bank_account_id, for_update=True)
    if bank_account is None or bank_account.status != "pending":
        return Decision(None)
    step = lifecycle.apply_review(bank_account, review, now=now)
    if step.record.status == "pending":
        return Decision(None, next_run_at=next_review_at(bank_account.created_at_ms, now))
    return step.as_decision()
