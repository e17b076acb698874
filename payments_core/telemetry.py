"""The port by which the core reports to its operators, and a listener that ignores everything.

The core says that something begins and how it ended. The listener measures time: so nothing
here reads a clock, and a run without a listener behaves the same. No report names a
record, an account or an address: kinds, outcomes and chains alone, of which there are few.

Alarms are not reported here: they are log records whose message begins with `ALARM`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal, Protocol

import attrs

from payments_core.plain_calls import notify_plainly

AttemptOutcome = Literal[
    "delivered", "refused", "failing", "no_answer", "unresolved", "forbidden", "postponed"
]
"""The result of a delivery attempt: a 2xx; a permanent status; a status that is retried; no
answer in time; a name that does not resolve; an address that may not be sent to."""

RetryReason = Literal["lost_race", "unanswered"]
"""Why a transaction is run again: another was first, or the answer to COMMIT was lost."""

HeldFinding = Literal["silent", "review", "blocked"]
"""Why screening holds a transfer: the provider does not answer, it looks, or it has blocked."""

EndAttempt = Callable[[AttemptOutcome], None]


class Telemetry(Protocol):
    """A listener. Every method returns at once, from any thread, and raises nothing.

    The context managers pass every exception on, and learn from it how the work ended.
    """

    def observe_job(self, queue: str, kind: str, count: int = 1) -> AbstractContextManager[object]:
        """While `count` jobs of a kind run; LeaseLost means that another worker took them."""

    def record_parked(self, queue: str, kind: str) -> None:
        """A job failed so often that it is not tried any more."""

    def observe_attempt(self) -> AbstractContextManager[EndAttempt]:
        """While a delivery is attempted; to be called with the result, unless it raises."""

    def observe_commit(self) -> AbstractContextManager[object]:
        """While a decision is committed; a PaymentsError means that it was refused."""

    def record_retry(self, why: RetryReason) -> None:
        """The transaction of a commit is run again."""

    def record_scan(self, chain_id: int, height: int, head: int) -> None:
        """A chain was scanned up to `height`, while its newest block was `head`."""

    def record_scan_failure(self, chain_id: int) -> None:
        """A chain could not be scanned."""

    def record_stored_bytes(self, stored: int, limit: int) -> None:
        """The bytes of an environment were counted; it may store `limit` of them."""

    def record_held(self, finding: HeldFinding) -> None:
        """Screening holds a transfer that it did not hold, or has stopped one."""


@attrs.frozen
class NoopTelemetry:
    """Ignores every report."""

    def observe_job(self, queue: str, kind: str, count: int = 1) -> AbstractContextManager[object]:
        return _NOOP

    def record_parked(self, queue: str, kind: str) -> None:
        pass

    def observe_attempt(self) -> AbstractContextManager[EndAttempt]:
        return _NOOP_ATTEMPT

    def observe_commit(self) -> AbstractContextManager[object]:
        return _NOOP

    def record_retry(self, why: RetryReason) -> None:
        pass

    def record_scan(self, chain_id: int, height: int, head: int) -> None:
        pass

    def record_scan_failure(self, chain_id: int) -> None:
        pass

    def record_stored_bytes(self, stored: int, limit: int) -> None:
        pass

    def record_held(self, finding: HeldFinding) -> None:
        pass


@attrs.frozen
class CheckedTelemetry:
    """Reports to another listener, and logs what that returns to be awaited: nobody awaits it."""

    _listener: Telemetry

    def observe_job(self, queue: str, kind: str, count: int = 1) -> AbstractContextManager[object]:
        return self._listener.observe_job(queue, kind, count)

    def record_parked(self, queue: str, kind: str) -> None:
        notify_plainly("record_parked", self._listener.record_parked, queue, kind)

    @contextmanager
    def observe_attempt(self) -> Iterator[EndAttempt]:
        with self._listener.observe_attempt() as end:
            yield lambda outcome: notify_plainly("the end of observe_attempt", end, outcome)

    def observe_commit(self) -> AbstractContextManager[object]:
        return self._listener.observe_commit()

    def record_retry(self, why: RetryReason) -> None:
        notify_plainly("record_retry", self._listener.record_retry, why)

    def record_scan(self, chain_id: int, height: int, head: int) -> None:
        notify_plainly("record_scan", self._listener.record_scan, chain_id, height, head)

    def record_scan_failure(self, chain_id: int) -> None:
        notify_plainly("record_scan_failure", self._listener.record_scan_failure, chain_id)

    def record_stored_bytes(self, stored: int, limit: int) -> None:
        notify_plainly("record_stored_bytes", self._listener.record_stored_bytes, stored, limit)

    def record_held(self, finding: HeldFinding) -> None:
        notify_plainly("record_held", self._listener.record_held, finding)


_NOOP: AbstractContextManager[object] = nullcontext()
_NOOP_ATTEMPT: AbstractContextManager[EndAttempt] = nullcontext(lambda outcome: None)

NOOP_TELEMETRY: Telemetry = NoopTelemetry()
