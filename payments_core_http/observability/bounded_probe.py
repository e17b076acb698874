"""A probe that may hang: it runs in its own thread, and each caller waits only for its timeout."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from payments_core.fork_safety import register_fork_reset

T = TypeVar("T")

READY_TIMEOUT_S = 2.0
"""A process that does not know within this time whether it is ready is not ready."""


class BoundedProbe(Generic[T]):
    """A probe that runs once at a time, for any number of callers."""

    def __init__(self, ask: Callable[[], T], *, name: str) -> None:
        self._ask = ask
        self._name = name
        self._lock = threading.Lock()
        self._asked: Future[T] | None = None
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Start with a free lock, and without the parent's probe: its thread is not here."""
        self._lock, self._asked = threading.Lock(), None

    def ask(self, within_s: float) -> T:
        """The answer. Raises what the probe raises, and TimeoutError if there is none in time.

        If an earlier probe still hangs, this waits for that one: there is never a second.
        """
        with self._lock:
            asked = self._asked
            if asked is None or asked.done():
                asked = Future()
                # A daemon: the process need not wait for it at its end.
                threading.Thread(
                    target=self._run_probe, args=(asked,), name=self._name, daemon=True
                ).start()
                self._asked = asked  # only now: if no thread could be started, none will answer
        return asked.result(within_s)

    def _run_probe(self, asked: Future[T]) -> None:
        try:
            answer = self._ask()
        except BaseException as error:  # raised in those that wait
            asked.set_exception(error)
        else:
            asked.set_result(answer)
