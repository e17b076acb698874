"""The threads that send: they take from a backlog, and tell what came of it.

As few as keep up are awake: many at once pass the interpreter to and fro, and one serves quick
endpoints faster. Where a delivery waits, or all that are awake are held up, one more is woken.
Those that are held up for long have others started in their place, up to a bound.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

import attrs

from payments_core.webhooks.attempting import Attempts, Sending
from payments_core.webhooks.lanes import MOST_SPARE
from payments_core.webhooks.lifecycle import Attempt

PATIENCE_S = 0.005
"""A delivery that waits for longer has one more woken; a sender that is at one for longer may be
held up for good."""


HELD_S = 0.25
"""A sender that is at one attempt for longer has another started in its place."""

FRESH_S = 0.25
"""What was read of a delivery and its endpoint longer ago is read again before it is sent: the
secret may have been rotated since, or the endpoint closed."""


@attrs.frozen
class Ended:
    """An attempt that was made, or the fault of ours that kept it from being made.

    Without either the delivery was not sent, since its lease had ended, or as it was `stale`.
    """

    sending: Sending
    attempt: Attempt | Exception | None
    took_s: float | None
    stale: bool = False


class Senders:
    """A pool of threads. Its methods are for one thread, the conductor, but for `under_way`."""

    def __init__(
        self, attempts: Attempts, count: int, told: Callable[[Ended], None], *, name: str
    ) -> None:
        """`told` hears of each end, in the thread of its sender."""
        self._attempts = attempts
        self._count = count
        self._told = told
        self._name = name
        self._backlog: deque[tuple[Sending, float]] = deque()
        self._under_way: dict[str, tuple[Sending, float]] = {}
        self._calls = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._awake = 0
        self._over = False
        self.threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads. Once only: a pool that was ended stays ended."""
        for _ in range(self._count):
            self._start_one()

    def _start_one(self) -> None:
        name = f"{self._name}-{len(self.threads)}"
        thread = threading.Thread(target=self._serve, name=name, daemon=True)
        thread.start()
        self.threads.append(thread)

    def end(self) -> None:
        """Let the threads end when they are done."""
        self._over = True
        self._calls.release(len(self.threads))

    @property
    def held_up(self) -> int:
        """How many attempts hold a sender up, as far as others can be started in its place."""
        since = time.monotonic() - HELD_S
        held = sum(began < since for _, began in tuple(self._under_way.values()))
        return min(held, MOST_SPARE)

    def hand(self, sending: Sending) -> None:
        """Give a delivery to be sent; `rouse` afterwards."""
        self._backlog.append((sending, time.monotonic()))

    def rouse(self) -> bool:
        """Wake some where those that are awake do not keep up; True where it should be asked
        again soon."""
        oldest = next(iter(self._backlog.copy()), None)  # a sender may take it meanwhile
        if oldest is None:
            return False
        since = time.monotonic() - PATIENCE_S
        held = sum(began < since for _, began in tuple(self._under_way.values()))
        with self._lock:
            if self._awake > held and oldest[1] > since:
                return True
            if self._awake == len(self.threads):
                spare = len(self.threads) - self._count
                if spare >= self.held_up:
                    return spare < MOST_SPARE
                self._start_one()
            self._awake += 1
        self._calls.release()
        return True

    def take_back(self, lane: str | None = None) -> list[Sending]:
        """What has not begun, of a lane or of all."""
        back: list[tuple[Sending, float]] = []
        rest: list[tuple[Sending, float]] = []
        while True:
            try:
                item = self._backlog.popleft()
            except IndexError:
                break
            (back if lane in (None, item[0].claimed.job.lane) else rest).append(item)
        self._backlog.extendleft(reversed(rest))
        return [sending for sending, _ in back]

    def lagging(self, longer_than_s: float) -> set[str]:
        """The lanes with an attempt that has been under way for longer."""
        since = time.monotonic() - longer_than_s
        under_way = tuple(self._under_way.values())
        return {sending.claimed.job.lane for sending, began in under_way if began < since}

    def _serve(self) -> None:
        while True:
            self._calls.acquire()
            while True:
                try:
                    sending, handed_at = self._backlog.popleft()
                except IndexError:
                    break
                if time.monotonic() - handed_at > FRESH_S:
                    self._told(Ended(sending, None, None, stale=True))
                else:
                    self._told(self._sent(sending))
            with self._lock:
                self._awake -= 1
            if self._over:
                return

    def _sent(self, sending: Sending) -> Ended:
        job_id, began = sending.claimed.job.id, time.monotonic()
        self._under_way[job_id] = (sending, began)
        try:
            attempt = self._attempts.send(sending)
        except Exception as error:  # a fault of ours, which the endpoint must not pay for
            return Ended(sending, error, None)
        finally:
            self._under_way.pop(job_id, None)
        took_s = time.monotonic() - began
        return Ended(sending, attempt, None if attempt is None or sending.why else took_s)
