"""Asking what may hang: in a thread of its own, which nobody waits for longer than he means to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")

READY_TIMEOUT_S = 2.0
"""A process that does not know within this whether it is ready is not."""


class BoundedProbe(Generic[T]):
    """A question, asked once at a time however many want to know."""

    def __init__(self, ask: Callable[[], T], *, name: str) -> None:
        self._ask = ask
        self._name = name
        self._lock = threading.Lock()
        self._asked: Future[T] | None = None

    def ask(self, within_s: float) -> T:
        """The answer. Raises what asking raises, and TimeoutError where there is none in time.

        Where an earlier question still hangs, this waits for that one: there is never a second.
        """
        with self._lock:
            asked = self._asked
            if asked is None or asked.done():
                asked = Future()
                # A daemon: the process need not wait for it at its end.
                threading.Thread(
                    target=self._run_probe, args=(asked,), name=self._name, daemon=True
                ).start()
                self._asked = asked  # only now: where no thread could be begun, none will answer
        return asked.result(within_s)

    def _run_probe(self, asked: Future[T]) -> None:
        try:
            answer = self._ask()
        except BaseException as error:  # told to those who wait
            asked.set_exception(error)
        else:
            asked.set_result(answer)
