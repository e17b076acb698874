"""The calls of a screening provider: outside of any transaction, in the places for such calls.

What an adapter returns beside a verdict, and whatever else it raises, counts as no answer: nothing
may move because of it, and no other transfer waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import get_args

from payments_core.clock import Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import DependencyFailed, ScreeningRefused
from payments_core.screening.judging import Concern, decision_id, make_verdict, to_verdict
from payments_core.screening.port import (
    Outcome,
    Screening,
    ScreeningRequest,
    ScreeningUnavailable,
    Subject,
    Verdict,
)
from payments_core.screening.record import HeldTransfer, ScreeningVerdict
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

MAX_TEXT_LENGTH = 500
"""The length of a provider's case, and of what is kept of its reason."""

_OUTCOMES = get_args(Outcome)

_log = logging.getLogger(__name__)


class Screener:
    """Asks the provider of a mode. `providers` has those of the modes that have one."""

    def __init__(
        self, ports: Ports, providers: Mapping[str, Screening], calls: RemoteCalls
    ) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._telemetry = ports.telemetry
        self._providers = providers
        self._calls = calls

    def screens(self, mode: str) -> bool:
        """Whether the mode has a provider: without one nothing is screened."""
        return mode in self._providers

    def ask(self, mode: str, partition: str, request: ScreeningRequest) -> Verdict:
        """The provider's verdict.

        Raises ScreeningUnavailable without a usable one, and DependencyFailed if no place for the
        call was free.
        """
        provider = self._providers[mode]
        with self._calls.acquire("screening", partition):
            try:
                answer = provider.screen(request)
            except ScreeningUnavailable:
                raise
            except Exception as error:
                _log.exception("the screening provider failed at %s", request.key)
                raise ScreeningUnavailable("the provider failed") from error
        if not _is_usable(answer):
            _log.error("ALARM: the screening provider's verdict of %s is none", request.key)
            raise ScreeningUnavailable("the answer is no verdict")
        return answer

    def require_linkable(self, mode: str, partition: str, address: str) -> None:
        """Return if the address of a wallet is clear; a wallet is of every chain.

        A verdict that still counts is not asked for again. One that refuses is stored, so that the
        provider's notices of its case are known. Raises ScreeningRefused, DependencyFailed.
        """
        if not self.screens(mode):
            return
        subject = Subject(kind="address", reference=address)
        request = ScreeningRequest(key=f"link/{subject.key}", subject=subject, direction="link")
        [stored] = self._storage.fetch(partition, Get(ScreeningVerdict, subject.key))
        if stored is not None and self._clock.now() < stored.valid_until_ms:
            if stored.outcome != "clear":
                raise ScreeningRefused(stored.outcome, stored.reason)
            return
        try:
            verdict = self.ask(mode, partition, request)
        except ScreeningUnavailable as error:
            raise DependencyFailed("screening") from error
        if verdict.outcome != "clear":
            self._commit(mode, partition, request, verdict, None)
            raise ScreeningRefused(verdict.outcome, verdict.reason)

    def require_unblocked(self, mode: str, partition: str, resource: str, concern: Concern) -> None:
        """Return unless the destination is blocked to which a request sends funds back.

        What is not refused here is judged again before it is signed, so a review passes, and no
        answer too. What is refused waits for an operator's decision for the resource. Raises
        ScreeningRefused.
        """
        if not self.screens(mode):
            return
        key, by_hand = concern.subject.key, decision_id(resource, concern)
        stored, decided = self._storage.fetch(
            partition, Get(ScreeningVerdict, key), Get(ScreeningVerdict, by_hand)
        )
        if decided is not None:
            if decided.outcome == "blocked":
                raise ScreeningRefused("blocked", decided.reason)
            return
        request = ScreeningRequest(
            key=by_hand, subject=concern.subject, direction=concern.direction
        )
        if stored is not None and self._clock.now() < stored.valid_until_ms:
            verdict = to_verdict(stored)
        else:
            try:
                verdict = self.ask(mode, partition, request)
            except (ScreeningUnavailable, DependencyFailed):
                return
        if verdict.outcome == "blocked":
            self._commit(mode, partition, request, verdict, resource)
            raise ScreeningRefused("blocked", verdict.reason)

    def _commit(
        self,
        mode: str,
        partition: str,
        request: ScreeningRequest,
        verdict: Verdict,
        resource: str | None,
    ) -> None:
        """Store a verdict that refuses a request; with a `resource`, an operator decides."""

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            """Its result says whether an operator is to decide about something new."""
            now = self._clock.now()
            known = resource and tx.get(HeldTransfer, request.key, for_update=True)
            stored = store_verdict(tx, request, verdict, now)
            if resource is None or known is not None:
                return Decision(False).merge(stored)
            held = HeldTransfer(
                id=request.key,
                status="blocked",
                subject_key=request.subject.key,
                subject=request.subject,
                direction=request.direction,
                resource=resource,
                owner=resource,
                case=verdict.case,
                reason=verdict.reason,
                created_at_ms=now,
                updated_at_ms=now,
            )
            return Decision(True, inserts=(held,)).merge(stored)

        if self._committer.commit(WorkerAuthority(partition, mode), decide):
            self._telemetry.record_held("blocked")


def store_verdict(
    tx: Transaction, request: ScreeningRequest, verdict: Verdict, now: Instant
) -> Decision[None]:
    """An answer, in place of the earlier one of its subject."""
    known = tx.get(ScreeningVerdict, request.subject.key, for_update=True)
    row = make_verdict(request.subject, verdict, known, now=now)
    if known is None:
        return Decision(None, inserts=(row,))
    return Decision(None, replaces=(row,))


def _is_usable(answer: object) -> bool:
    """Whether an answer says something that can be stored, and that notices can name."""
    if not isinstance(answer, Verdict) or answer.outcome not in _OUTCOMES:
        return False
    until: object = answer.valid_until_ms
    if type(until) is not int or not 0 <= until < 2**63:
        return False
    texts: tuple[object, ...] = (answer.case, answer.reason)
    return all(
        text is None
        or (isinstance(text, str) and text.isprintable() and len(text) <= MAX_TEXT_LENGTH)
        for text in texts
    )
