"""What clients do all the while: create, read, list and cancel Payments, on every process in turn.

Each step of a round goes to another process than the one before, so that with two releases each
reads, lists and rewrites what the other has just written.
"""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import attrs

PATIENCE_S = 60.0
CLIENT_S = 30.0


@attrs.frozen
class Answered:
    """One request: when it was begun and how long it took, in seconds, and what was said."""

    phase: str
    what: str
    began_s: float
    took_s: float
    status: int
    body: Any = attrs.field(repr=False)


@attrs.define
class Made:
    """A Payment, by the release that made it and the one that cancelled it, if one did."""

    id: str
    by: str
    cancelled_by: str | None = None


class Load:
    """Threads that call the processes of `aim`, until the end of the `with`."""

    def __init__(
        self, authorization: str, partition: str, account_id: str, *, threads: int = 3
    ) -> None:
        self.partition = partition
        self.authorization = authorization
        self._account_id = account_id
        self._lock = threading.Condition()
        self._targets: Sequence[tuple[str, str]] = ()
        self._phase = ""
        self._rounds = 0
        self._active = 0
        self._stopping = False
        self._numbers = itertools.count()
        self.answered: list[Answered] = []
        self.made: list[Made] = []
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def aim(self, phase: str, *targets: tuple[str, str]) -> None:
        """From now on, call these: a release's name and a process's URL each. Returns when no
        round is under way that calls others, as a load balancer that takes one out would."""
        with self._lock:
            self._targets = ()
            self._require(self._lock.wait_for(lambda: self._active == 0, PATIENCE_S))
            self._phase, self._targets = phase, targets
            self._lock.notify_all()

    def rounds(self, count: int) -> None:
        """Return when so many more rounds are over."""
        with self._lock:
            until = self._rounds + count
            self._require(self._lock.wait_for(lambda: self._rounds >= until, PATIENCE_S))

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            self._stopping = True
            self._lock.notify_all()
        for thread in self._threads:
            thread.join()

    # The clients.

    def _run(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._targets or self._stopping)
                if self._stopping:
                    return
                number, phase, targets = next(self._numbers), self._phase, self._targets
                self._active += 1
            try:
                self._round(number, phase, targets)
            finally:
                with self._lock:
                    self._active -= 1
                    self._rounds += 1
                    self._lock.notify_all()

    def _round(self, number: int, phase: str, targets: Sequence[tuple[str, str]]) -> None:
        """One Payment's life: made by one process, seen by the next; half of them are cancelled,
        by their maker and by the next in turn."""
        by, url = targets[number % len(targets)]
        other, other_url = targets[(number + 1) % len(targets)]
        body = {
            "intent": "receive",
            "amount": "1.00",
            "destination": {"type": "account", "accountId": self._account_id},
        }
        payment = self._call(phase, url, "POST", "/v2/payments", body, key=f"round-{number}")
        if payment is None:
            return
        made = Made(payment["id"], by)
        with self._lock:
            self.made.append(made)
        path = f"/v2/payments/{made.id}"
        self._call(phase, other_url, "GET", path)
        self._call(phase, other_url if number % 3 else url, "GET", "/v2/payments?limit=20")
        code = payment["paymentUrl"].rpartition("/")[2]
        self._call(phase, other_url, "POST", f"/v2/public/payment-links/{code}/exchange")
        if number % 4 >= 2:
            canceller, where = (by, url) if number % 8 >= 4 else (other, other_url)
            if self._call(phase, where, "POST", f"{path}/cancel") is not None:
                made.cancelled_by = canceller
            self._call(phase, url, "GET", path)

    def _call(
        self, phase: str, url: str, method: str, path: str, body: Any = None, *, key: str = ""
    ) -> Any:
        headers = {"Authorization": self.authorization, "Connection": "close"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key:
            headers["Idempotency-Key"] = key
        if path.endswith("/exchange"):
            del headers["Authorization"]
        sent = None if body is None else json.dumps(body)
        began = time.monotonic()
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=CLIENT_S)
        try:
            connection.request(method, path, sent, headers)
            answer = connection.getresponse()
            status, text = answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            status, text = 0, repr(error)
        finally:
            connection.close()
        took = time.monotonic() - began
        with self._lock:
            what = f"{method} {path.partition('?')[0].rpartition('/')[2][:12]}"
            self.answered.append(Answered(phase, what, began, took, status, text))
        return json.loads(text) if 200 <= status < 300 else None

    @staticmethod
    def _require(in_time: bool) -> None:
        assert in_time, f"the clients did not get on within {PATIENCE_S:.0f} s"
