"""Capabilities: list, activate, follow the bank's review (contract §7).

Activating one only stores the request. A job asks the bank, under a key that is stored
beforehand, and checks until the bank has decided.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.capabilities import lifecycle
from payments_core.accounts.capabilities.jobs import (
    LOOK_AT_CAPABILITIES,
    look_job,
    next_review_at,
    review_job,
)
from payments_core.accounts.capabilities.record import (
    CAPABILITIES,
    PRODUCT_OF_CAPABILITY,
    CapabilityActivation,
)
from payments_core.accounts.capabilities.requirements import (
    Capability,
    capabilities_of,
    describe_capability,
)
from payments_core.accounts.record import Account
from payments_core.banks.incoming import FundingBank
from payments_core.banks.port import Bank, BankRefused, BankUnavailable, CapabilityRequest
from payments_core.banks.reviews import BankCapability, BankReview
from payments_core.brief_repr import brief_repr
from payments_core.chains.backoff import back_off
from payments_core.clock import Instant
from payments_core.engine.audit import Actor
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import (
    AccountSuspended,
    CapabilityNotActive,
    NotFound,
    ResourceConflict,
)
from payments_core.evolve import evolve
from payments_core.notices.owners import Routed, bring_looks_forward
from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.jobs import Job
from payments_core.storage.port import ClaimedJob, Position, Snapshot, Transaction, Where
from payments_core.tenants.authorization import Authority, require_product
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import Url


@attrs.frozen
class ActivatedCapability:
    """An activation, and its capability with the requirements.

    >>> shop.bank_accounts.activate(eve.id, "us_bank_funding").capability.status
    'pending'
    """

    __repr__ = brief_repr

    activation: CapabilityActivation
    capability: Capability


class Capabilities:
    """Activates capabilities, and shows what each waits for.

    `banks` has the bank of each mode, and `funding_banks` those that receive transfers for
    accounts.
    """

    def __init__(
        self,
        ports: Ports,
        banks: Mapping[str, Bank],
        funding_banks: Mapping[str, FundingBank],
    ) -> None:
        self._ports = ports
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._banks = banks
        self._funding_banks = funding_banks

    def list(self, authority: Authority, account_id: str) -> tuple[Capability, ...]:
        """Every capability with its requirements. Raises NotFound.

        A capability whose activation cannot be read is skipped with an alarm: it would look as if
        nobody had requested it.
        """
        offered = self._offered_in(authority.mode)

        def load(snapshot: Snapshot) -> tuple[Capability, ...]:
            account = snapshot.get(Account, account_id)
            if account is None:
                raise NotFound("account")
            try:
                activations, damaged = load_activations(snapshot, account_id), frozenset[str]()
            except UnreadableDocument:
                activations, damaged = _load_readable(snapshot, account_id)
            found = capabilities_of(account, activations, offered=offered)
            return tuple(capability for capability in found if capability.name not in damaged)

        return self._storage.read(authority.partition, load)

    @once_per_key
    def activate(
        self,
        authority: Authority,
        account_id: str,
        capability: BankCapability,
        *,
        return_url: Url | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> ActivatedCapability:
        """Request a capability. A requested or active one is left as it is.

        It is `action_required` until the account's verification is approved, then `pending` until
        the bank has decided. Raises ValidationFailed, NotFound, AccountSuspended,
        EntitlementRequired, and CapabilityNotActive if no bank offers it.
        """
        authority = require_product(authority, PRODUCT_OF_CAPABILITY[capability])
        is_offered = capability in self._offered_in(authority.mode)
        now = self._clock.now()
        known_id = self._storage.read(
            authority.partition,
            lambda snapshot: find_activation_id(snapshot, account_id, capability),
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[ActivatedCapability]:
            account = lock_active_account(tx, account_id)
            if not is_offered:
                raise CapabilityNotActive(capability)
            known = tx.get(CapabilityActivation, known_id, for_update=True) if known_id else None
            if known is None:
                known = CapabilityActivation(
                    id=id_sequence.issue("capability_activation"),
                    account_id=account.id,
                    capability=capability,
                    api_version=authority.api_version,
                    created_at_ms=now,
                    updated_at_ms=now,
                )
            elif known.status not in ("inactive", "rejected"):
                return Decision(_describe(account, known))
            step = lifecycle.activate(evolve(known, return_url=return_url), account, now=now)
            decision = step.as_decision(_describe(account, step.record))
            return evolve(
                decision,
                jobs=(review_job(authority.partition, account.id, now),),
                refusals={
                    "capability": ResourceConflict("This capability is being activated now.")
                },
            )

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def review(self, claimed: ClaimedJob) -> None:
        """The job of an account: request its capabilities at the bank, and check for decisions.

        It ends when nothing is in progress: an account that is verified later gets another one.
        """
        self._review(claimed, is_hint=False)

    def look(self, claimed: ClaimedJob) -> None:
        """The job for a notice of the bank: check once. The account's own job continues."""
        self._review(claimed, is_hint=True)

    def bring_forward(self, mode: str, reference: str) -> Routed:
        """Look at the capability of a request's key now. See NoticeOwner."""

        def new_job(partition: str, activation: CapabilityActivation) -> Job:
            now, subject = self._clock.now(), activation.account_id
            return look_job(mode, LOOK_AT_CAPABILITIES, partition, subject, now)

        return bring_looks_forward(
            self._ports, mode, CapabilityActivation, "by_request_key", reference, new_job
        )

    def _review(self, claimed: ClaimedJob, *, is_hint: bool) -> None:
        authority = WorkerAuthority.of(claimed, Actor("provider", "bank"))
        bank, account_id = self._banks.get(authority.mode), claimed.job.subject
        account, activations = self._storage.read(
            authority.partition,
            lambda snapshot: (
                snapshot.get(Account, account_id),
                load_activations(snapshot, account_id),
            ),
        )
        if bank is None or account is None:
            self._committer.finish(claimed, Decision(None))
            return
        try:
            reviews = {
                activation.id: (activation.version, self._ask(bank, account, activation))
                for activation in activations
                if activation.status == "pending"
                or (activation.status == "action_required" and account.kyc_status == "approved")
            }
        except BankUnavailable:
            self._committer.finish(claimed, back_off(claimed.job, self._clock.now(), "bank"))
            return
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            decided = _decide_reviews(tx, account_id, reviews, now=now)
            return evolve(decided, next_run_at=None) if is_hint else decided

        self._committer.commit(authority, decide, claimed=claimed)

    def _offered_in(self, mode: str) -> tuple[BankCapability, ...]:
        """The capabilities that the bank of a mode offers; it reviews them all."""
        if mode not in self._banks:
            return ()
        return ("us_bank_payout", *(("us_bank_funding",) if mode in self._funding_banks else ()))

    def _ask(self, bank: Bank, account: Account, activation: CapabilityActivation) -> BankReview:
        """The bank's review of the present request, making the request if it never was."""
        found = bank.find_capability(activation.request_key)
        if found is not None:
            return found
        request = CapabilityRequest(
            key=activation.request_key,
            capability=activation.capability,
            account_id=account.id,
            external_user_id=account.external_user_id,
            subject_type=account.subject_type,
            return_url=activation.return_url,
        )
        try:
            return bank.request_capability(request)
        except BankRefused as error:
            return BankReview(
                key=activation.request_key, reference="", status="rejected", reason=str(error)
            )


def load_activations(snapshot: Snapshot, account_id: str) -> tuple[CapabilityActivation, ...]:
    """The account's activations; as fresh as the snapshot."""
    found = snapshot.find(
        CapabilityActivation, "by_account", (account_id,), limit=len(CAPABILITIES)
    )
    return found.records


def _load_readable(
    snapshot: Snapshot, account_id: str
) -> tuple[tuple[CapabilityActivation, ...], frozenset[str]]:
    """The activations that can be read, and the capabilities whose activations cannot."""
    found = snapshot.find(
        CapabilityActivation,
        "by_account",
        (account_id,),
        limit=len(CAPABILITIES),
        skip_damaged=True,
    ).records
    damaged: set[BankCapability] = set()
    for name in {*CAPABILITIES} - {activation.capability for activation in found}:
        try:
            load_activation(snapshot, account_id, name)
        except UnreadableDocument:
            damaged.add(name)
    return tuple(found), frozenset(damaged)


def load_activation(
    snapshot: Snapshot, account_id: str, capability: BankCapability, *, skip_damaged: bool = False
) -> CapabilityActivation | None:
    """The account's activation of one capability; as fresh as the snapshot."""
    after: Position | None = None
    while True:
        page = snapshot.find(
            CapabilityActivation,
            "by_account",
            (account_id,),
            where=(Where("capability", "=", capability),),
            after=after,
            limit=1,
            skip_damaged=skip_damaged,
        )
        if page.records or page.next is None:
            return next(iter(page.records), None)
        after = page.next


def find_activation_id(
    snapshot: Snapshot, account_id: str, capability: BankCapability
) -> str | None:
    """The id of an activation, which never changes; not for a transaction, where an index may be
    stale. An activation of another capability may be damaged."""
    activation = load_activation(snapshot, account_id, capability)
    return None if activation is None else activation.id


def lock_active_account(tx: Transaction, account_id: str) -> Account:
    """The account, locked. Raises NotFound, AccountSuspended."""
    account = tx.get(Account, account_id, for_update=True)
    if account is None:
        raise NotFound("account")
    if account.status != "active":
        raise AccountSuspended(account.id, account.status)
    return account


def _describe(account: Account, activation: CapabilityActivation) -> ActivatedCapability:
    described = describe_capability(account, activation.capability, activation, is_offered=True)
    return ActivatedCapability(activation, described)


def _decide_reviews(
    tx: Transaction,
    account_id: str,
    reviews: Mapping[str, tuple[int, BankReview]],
    *,
    now: Instant,
) -> Decision[None]:
    """The activations after the reviews. One that changed meanwhile is checked again."""
    outcome: Decision[None] = Decision(None)
    account = tx.get(Account, account_id, for_update=True)
    if account is None:
        return outcome
    times: list[Instant] = []
    for id, (version, review) in sorted(reviews.items()):
        activation = tx.get(CapabilityActivation, id, for_update=True)
        if activation is None:
            continue
        if activation.version != version:
            times.append(now)
            continue
        step = lifecycle.apply_review(activation, account, review, now=now)
        if step.record != activation:
            outcome = outcome.merge(step.as_decision())
        if step.record.status == "pending":
            times.append(next_review_at(step.record.updated_at_ms, now))
    return evolve(outcome, next_run_at=min(times, default=None))
