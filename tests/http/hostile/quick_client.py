"""Clients that mean well, beside an attack: how long they wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import attrs

from tests.http.hostile.attacks import Attack
from tests.http.hostile.target import Target


@attrs.frozen
class Waits:
    """How long each of a number of requests took."""

    seconds: Sequence[float]

    @property
    def p99_s(self) -> float:
        ordered = sorted(self.seconds)
        return ordered[len(ordered) * 99 // 100]

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        return (
            f"{len(ordered):6} requests, median {ordered[len(ordered) // 2] * 1000:6.1f} ms, "
            f"p99 {self.p99_s * 1000:6.1f} ms, longest {ordered[-1] * 1000:6.1f} ms"
        )


MAX_S = 15.0


def measured(target: Target, for_s: float, requests: int = 1) -> Waits:
    """Ask without a pause, on a new connection each time, and be answered each time.

    For so long at least, and so often, but never for longer than MAX_S besides.
    """
    waits: list[float] = []
    end = time.monotonic() + for_s
    latest = end + MAX_S
    while (began := time.monotonic()) < end or (len(waits) < requests and began < latest):
        path = "/v2/partners/config" if len(waits) % 2 else "/readyz"
        answer = target.ask(path)
        assert answer.status == 200, answer
        waits.append(time.monotonic() - began)
    return Waits(waits)


@contextmanager
def under(target: Target, *attacks: Attack) -> Iterator[None]:
    """The attacks run meanwhile; what goes wrong with one of them is raised at the end."""
    stop = threading.Event()
    with ThreadPoolExecutor(len(attacks)) as pool:
        running = [pool.submit(attack, target, stop) for attack in attacks]
        try:
            yield
        finally:
            stop.set()
        for one in running:
            one.result()
