"""The calls of a screening provider: outside of any transaction, in the places for such calls.

What an adapter returns beside a verdict, and whatever else it raises, counts as no answer: nothing
may move because of it, and no other transfer waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import get_args

from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import DependencyFailed, ScreeningRefused
from payments_core.screening.judging import make_verdict
from payments_core.screening.port import (
    Outcome,
    Screening,
    ScreeningRequest,
    ScreeningUnavailable,
    Verdict,
)
from payments_core.screening.record import ScreeningVerdict
from payments_core.storage.port import Transaction

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

    def require_clear(
        self, mode: str, partition: str, request: ScreeningRequest, *, passes_review: bool = False
    ) -> None:
        """Return if the subject of a request is clear, or is in review and that passes here.

        A verdict that still counts is not asked for again. One that refuses is stored, so that the
        provider's notices of its case are known. Raises ScreeningRefused, and DependencyFailed
        without an answer unless reviews pass, since then it is asked again.
        """
        if not self.screens(mode):
            return
        subject = request.subject
        stored = self._storage.read(
            partition, lambda snapshot: snapshot.get(ScreeningVerdict, subject.key)
        )
        passing = ("clear", "review") if passes_review else ("clear",)
        if stored is not None and self._clock.now() < stored.valid_until_ms:
            if stored.outcome not in passing:
                raise ScreeningRefused(stored.outcome, stored.reason)
            return
        try:
            verdict = self.ask(mode, partition, request)
        except (ScreeningUnavailable, DependencyFailed) as error:
            if passes_review:
                return
            raise DependencyFailed("screening") from error
        if verdict.outcome in passing:
            return

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            return store_verdict(tx, request, verdict, self._clock.now())

        self._committer.commit(WorkerAuthority(partition, mode), decide)
        raise ScreeningRefused(verdict.outcome, verdict.reason)


def store_verdict(
    tx: Transaction, request: ScreeningRequest, verdict: Verdict, now: int
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
