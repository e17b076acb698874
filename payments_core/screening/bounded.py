"""A screening provider whose calls end in time, whatever its adapter does.

A transfer's job has the lane of its sender while it asks, and nobody can end a thread. So each call
runs in a thread of its own, and one that does not end in time counts as not answered.
"""

from __future__ import annotations

import contextvars
import threading
from concurrent.futures import Future, wait

from payments_core.fork_safety import register_fork_reset
from payments_core.screening.port import Screening, ScreeningRequest, ScreeningUnavailable, Verdict

ANSWER_LIMIT_S = 10.0

MAX_LATE = 4
"""While so many calls are late, the provider hangs, and no others are made."""


class BoundedScreening:
    """See Screening. What a late call returns is not used."""

    def __init__(self, provider: Screening) -> None:
        self._provider = provider
        self._lock = threading.Lock()
        self._late = 0
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Start without calls: a forked child has no thread of its parent's."""
        self._lock, self._late = threading.Lock(), 0

    def screen(self, request: ScreeningRequest) -> Verdict:
        """See Screening. Raises what the provider raises."""
        if self._late >= MAX_LATE:
            raise ScreeningUnavailable("the provider does not end earlier calls")
        answer: Future[Verdict] = Future()
        context = contextvars.copy_context()
        threading.Thread(
            target=lambda: context.run(self._call, request, answer),
            name="payments-screening",
            daemon=True,  # the process need not wait for a provider that hangs
        ).start()
        ended, _ = wait([answer], ANSWER_LIMIT_S)
        if ended:
            return answer.result()
        self._count_late(1)
        answer.add_done_callback(lambda _: self._count_late(-1))
        raise ScreeningUnavailable("the provider did not answer in time")

    def _call(self, request: ScreeningRequest, answer: Future[Verdict]) -> None:
        try:
            answer.set_result(self._provider.screen(request))
        except BaseException as error:  # raised in the caller, not in this thread
            answer.set_exception(error)

    def _count_late(self, change: int) -> None:
        with self._lock:
            self._late += change
