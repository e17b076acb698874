"""What the core reports of itself to those who operate it: a port, and a listener that is deaf.

The core says that something begins and how it ended. Whoever listens has the watch: so nothing
here reads a clock, and a run without a listener is the same run. Nothing that is reported names a
record, an account or an address: kinds, outcomes and chains alone, of which there are few.

Alarms are not reported here: they are log records whose message begins with `ALARM`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol

import attrs

AttemptOutcome = Literal[
    "delivered", "refused", "failing", "no_answer", "unresolved", "forbidden", "postponed"
]
"""What came of an attempt at a delivery: a 2xx; a status that is not tried again; one that is; no
answer in time; a name that does not resolve; an address that may not be sent to."""

RetryReason = Literal["lost_race", "unanswered"]
"""Why a transaction is run again: another came first, or the answer to COMMIT was lost."""

EndAttempt = Callable[[AttemptOutcome], None]


class Telemetry(Protocol):
    """Who is told. Every method returns at once, from any thread, and raises nothing.

    The context managers let every exception through, and learn by it how it ended.
    """

    def observe_job(self, queue: str, kind: str, count: int = 1) -> AbstractContextManager[object]:
        """While a job runs, or `count` of a kind together; LeaseLost says that it was taken."""

    def record_parked(self, queue: str, kind: str) -> None:
        """A job came to no outcome so often that it is not tried any more."""

    def observe_attempt(self) -> AbstractContextManager[EndAttempt]:
        """While a delivery is attempted; to be called with what came of it, unless it raises."""

    def observe_commit(self) -> AbstractContextManager[object]:
        """While a decision is committed; a PaymentsError says that it was refused."""

    def record_retry(self, why: RetryReason) -> None:
        """The transaction of a commit is run again."""

    def record_scan(self, chain_id: int, height: int, head: int) -> None:
        """A chain was scanned up to `height`, while its newest block was `head`."""

    def record_scan_failure(self, chain_id: int) -> None:
        """A chain could not be scanned."""


@attrs.frozen
class NoopTelemetry:
    """Listens to nothing."""

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


_NOOP: AbstractContextManager[object] = nullcontext()
_NOOP_ATTEMPT: AbstractContextManager[EndAttempt] = nullcontext(lambda outcome: None)

NOOP_TELEMETRY: Telemetry = NoopTelemetry()
