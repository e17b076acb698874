"""Verifications: start, list, read, decide (contract §5).

Starting one reserves it, calls the provider outside any transaction, and records the answer. A
reservation whose call failed is reused by the next attempt, under the same key.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Annotated

import attrs
from msgspec import Meta

from payments_core.accounts.queries import list_for_account
from payments_core.accounts.record import Account, KycStatus
from payments_core.accounts.verification.deciding import (
    apply_triggers,
    decide_verification,
    follow_newest,
    lock_account,
)
from payments_core.accounts.verification.following import MIN_PAUSE_MS, look_job
from payments_core.accounts.verification.lifecycle import (
    DECISIONS,
    PROVIDER_STATUSES,
    VERIFICATION,
    apply_trigger,
    follow,
)
from payments_core.accounts.verification.port import (
    KycCase,
    KycProvider,
    KycRequest,
    KycUnavailable,
)
from payments_core.accounts.verification.record import Verification
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import (
    AccountSuspended,
    CapabilityNotActive,
    DependencyFailed,
    InvalidState,
    NotFound,
    ValidationFailed,
)
from payments_core.evolve import evolve
from payments_core.notices.port import MAX_NAME_LENGTH
from payments_core.storage.port import Page, Position, Snapshot, Transaction, Where
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.faults import require_exactly_one
from payments_core.validation.fields import Id, PageLimit, Url
from payments_core.validation.urls import is_page_url

_log = logging.getLogger(__name__)

ProviderReference = Annotated[str, Meta(min_length=1)]
"""A provider's name for a case, of any length."""


@attrs.frozen
class _StartReservation:
    """A verification that waits for its provider, and its account."""

    account: Account
    verification: Verification


class Verifications:
    """Has accounts verified; the account's `kyc_status` follows its newest verification.

    `providers` has the provider of each mode that has one.
    """

    def __init__(
        self, ports: Ports, providers: Mapping[str, KycProvider], calls: RemoteCalls
    ) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._providers = providers
        self._calls = calls

    @once_per_key
    def start(
        self,
        authority: Authority,
        account_id: str,
        *,
        return_url: Url | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Verification:
        """A new verification, with the URL for the user; one at a time.

        Raises NotFound, AccountSuspended, InvalidState if one is pending or approved,
        CapabilityNotActive without a provider, DependencyFailed, after which nothing new is
        shown.
        """
        provider = self._providers.get(authority.mode)
        if provider is None:
            raise CapabilityNotActive("kyc")
        reserved = self._reserve(authority, account_id, idempotency_key)
        account, verification = reserved.account, reserved.verification
        request = KycRequest(
            key=verification.id,
            account_id=account.id,
            external_user_id=account.external_user_id,
            subject_type=account.subject_type,
            email=account.email,
            return_url=return_url,
        )
        try:
            with self._calls.acquire("kyc", authority.partition):
                case = provider.start(request)
        except KycUnavailable as error:
            raise DependencyFailed("kyc") from error
        if not _is_usable(case):
            _log.error("ALARM: the KYC provider's case of %s cannot be used", verification.id)
            raise DependencyFailed("kyc")
        return self._store_case(authority, reserved, case, idempotency_key)

    def list(
        self,
        authority: Authority,
        account_id: str,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[Verification]:
        """The account's verifications, newest first. Raises NotFound."""
        return list_for_account(
            self._storage,
            authority,
            account_id,
            Verification,
            where=(Where("status", "!=", "not_started"),),
            after=after,
            limit=limit,
        )

    def list_pending(
        self, authority: Authority, *, after: Position | None = None, limit: PageLimit = 50
    ) -> Page[Verification]:
        """The verifications of all accounts that wait for a decision, the oldest first."""
        return self._storage.read(
            authority.partition,
            lambda snapshot: snapshot.find(
                Verification, "by_status", ("pending",), after=after, limit=limit
            ),
        )

    def get(self, authority: Authority, verification_id: str) -> Verification:
        """A verification. Raises NotFound."""
        found = self._storage.read(
            authority.partition, lambda snapshot: snapshot.get(Verification, verification_id)
        )
        if found is None or found.status not in PROVIDER_STATUSES:
            raise NotFound("verification")
        return found

    @once_per_key
    def decide(
        self,
        authority: Authority,
        account_id: str,
        status: KycStatus,
        *,
        verification_id: Id | None = None,
        reference: ProviderReference | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Verification:
        """Record what the provider decided of one verification: `approved` or `rejected`.

        Name the verification by its id (the key of `KycRequest`) or by the provider's `reference`,
        exactly one of the two: a decision that arrives late must not decide a later verification.
        The account's `kyc_status` changes only with its newest verification. A repeat of a decision
        changes nothing.

        Raises ValidationFailed, NotFound, and InvalidState if the verification was decided
        otherwise.
        """
        if status not in DECISIONS:
            raise ValidationFailed.at("status", f"must be one of {', '.join(DECISIONS)}")
        require_exactly_one({"verification_id": verification_id, "reference": reference})
        now = self._clock.now()
        decided_id = verification_id or self._storage.read(
            authority.partition,
            lambda snapshot: _find_by_reference(snapshot, account_id, str(reference)),
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Verification]:
            return decide_verification(
                tx,
                authority.partition,
                account_id,
                decided_id,
                status,
                authority.api_version,
                now=now,
            )

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    @once_per_key
    def simulate_decision(
        self,
        authority: Authority,
        account_id: str,
        status: KycStatus,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> Verification:
        """Bring the account's newest verification to `pending`, `approved` or `rejected`.

        For the sandbox and tests; a provider's decision names its verification (`decide`).
        If there is none, or the newest was rejected and another status is requested, a new one
        is made, which no provider hosts. An equal status is not an error, and changes nothing.

        Raises ValidationFailed, NotFound, InvalidState: an approved verification stays approved.
        """
        if status not in PROVIDER_STATUSES:
            raise ValidationFailed.at("status", f"must be one of {', '.join(PROVIDER_STATUSES)}")
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Verification]:
            account = lock_account(tx, account_id)
            newest = _load_newest(tx, account)
            if newest is not None and newest.status == status:
                return Decision(newest)
            if newest is None or newest.status == "rejected":
                account, newest = _new_verification(account, authority, id_sequence, now)
            step = apply_triggers(newest, status, now=now)
            followed = follow_newest(
                authority.partition, account, step.record, authority.api_version, now=now
            )
            return step.as_decision(step.record).merge(followed)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def _reserve(
        self, authority: Authority, account_id: str, idempotency_key: IdempotencyKey
    ) -> _StartReservation:
        """The verification to start: a new one, or one whose start failed.

        The answer is stored later, so a request that was answered before is looked for here.
        """
        self._committer.replay(authority, idempotency_key)
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[_StartReservation]:
            account = _lock_startable_account(tx, account_id)
            newest = _load_newest(tx, account)
            if newest is not None and newest.status == "not_started":
                return Decision(_StartReservation(account, newest))
            account, made = _new_verification(account, authority, id_sequence, now)
            return Decision(_StartReservation(account, made), inserts=(made,), replaces=(account,))

        try:
            return self._committer.commit(authority, decide)
        except InvalidState:
            # its twin may have come first
            self._committer.replay(authority, idempotency_key)
            raise

    def _store_case(
        self,
        authority: Authority,
        reserved: _StartReservation,
        case: KycCase,
        idempotency_key: IdempotencyKey,
    ) -> Verification:
        now = self._clock.now()

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Verification]:
            account = _lock_startable_account(tx, reserved.account.id)
            newest = _load_newest(tx, account)
            wanted = (reserved.verification.id, "not_started")
            if newest is None or (newest.id, newest.status) != wanted:
                # It was decided meanwhile, perhaps also restarted: this case belongs to nobody.
                raise InvalidState(VERIFICATION.name, account.kyc_status, "start")
            opened = evolve(
                newest, reference=case.reference, hosted_url=case.hosted_url, created_at_ms=now
            )
            step = apply_trigger(opened, "start", now=now)
            followed = follow(account, step.record, authority.api_version, now=now)
            look = look_job(authority.mode, authority.partition, opened, now + MIN_PAUSE_MS)
            return step.as_decision(step.record).merge(
                followed.as_decision(), Decision(None, inserts=(look,))
            )

        return self._committer.commit(authority, decide, idempotent=idempotency_key)


def _is_usable(case: object) -> bool:
    """Whether a notice can name the case, and a browser can open its URL."""
    if not isinstance(case, KycCase):
        return False
    name: object = case.reference
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= MAX_NAME_LENGTH:
        return False
    return is_page_url(case.hosted_url)


def _lock_startable_account(tx: Transaction, account_id: str) -> Account:
    """The account, locked. Raises if no verification of it can start now."""
    account = lock_account(tx, account_id)
    if account.status != "active":
        raise AccountSuspended(account.id, account.status)
    VERIFICATION.step(account.kyc_status, "start")
    return account


def _find_by_reference(snapshot: Snapshot, account_id: str, reference: str) -> str:
    """The id of the account's verification with that reference, which never changes.

    Not in the transaction, where an index look-up may be stale. Raises NotFound.
    """
    after: Position | None = None
    while True:
        page = snapshot.find(Verification, "by_account", (account_id,), after=after, limit=100)
        for verification in page.records:
            if verification.reference == reference:
                return verification.id
        if page.next is None:
            raise NotFound("verification")
        after = page.next


def _load_newest(tx: Transaction, account: Account) -> Verification | None:
    if account.verification_id is None:
        return None
    return tx.get(Verification, account.verification_id, for_update=True)


def _new_verification(
    account: Account, authority: Authority, id_sequence: IdSequence, now: Instant
) -> tuple[Account, Verification]:
    """A verification that is not shown yet, and the account that has it."""
    made = Verification(
        id=id_sequence.issue("verification"),
        account_id=account.id,
        api_version=authority.api_version,
        created_at_ms=now,
        updated_at_ms=now,
    )
    return evolve(account, verification_id=made.id), made
