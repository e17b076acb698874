"""A good partner: it repeats a request under the same key until it is answered, and remembers.

It writes what it was answered to a file that only grows. That file is the oracle: all of it
must be true of the deployment when all is over.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from payments_core_http.cli.api_client import ApiClient, ApiResponse, NoResponse

TIMEOUT_S = 15.0
PATIENCE_S = 120.0
"""So long a request is repeated; after that, the service has failed it."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0


class NeverAnswered(Exception):
    """A request was repeated for as long as a partner can be asked to."""


class Refused(Exception):
    """A request that had to succeed was refused."""


@attrs.frozen(kw_only=True)
class AnsweredRequest:
    """A request and the answer that it got, after so many tries. Times are monotonic, in s:
    when it was first sent, when the try was sent that was answered, and when that was.

    `about` is the resource that it belongs to, `whose` says which credential it was sent with:
    `backend`, the id of an account, or `payer` for the Payment's own `secret`.
    """

    what: str
    about: str | None
    method: str
    path: str
    body: Any
    key: str | None
    whose: str
    secret: str | None = attrs.field(default=None, repr=False)
    status: int
    answer: str = attrs.field(repr=False)
    replayed: bool
    began: float
    sent: float
    ended: float
    tries: int

    @property
    def document(self) -> Any:
        """The answer."""
        return json.loads(self.answer)

    @property
    def is_write(self) -> bool:
        """Whether something was to be changed."""
        return self.method != "GET"


class Memory:
    """The file of what was answered, and why a try had no answer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self.unanswered: dict[str, int] = {}
        self.complaints: list[str] = []

    def write(self, answered: AnsweredRequest) -> None:
        """Append it."""
        line = json.dumps(attrs.asdict(answered)) + "\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()

    def count(self, why: str) -> None:
        """A try without an answer."""
        with self._lock:
            self.unanswered[why] = self.unanswered.get(why, 0) + 1

    def complain(self, text: str) -> None:
        """Something that no partner should see."""
        with self._lock:
            self.complaints.append(text)

    def close(self) -> None:
        """Nothing more is written; it can still be read."""
        self._file.close()

    def read(self) -> list[AnsweredRequest]:
        """All that was answered so far."""
        return list(self._lines())

    def _lines(self) -> Iterator[AnsweredRequest]:
        with self._path.open(encoding="utf-8") as file:
            for line in file:
                yield AnsweredRequest(**json.loads(line))


class Partner:
    """Calls one of several servers, and another one on failure."""

    def __init__(
        self,
        urls: Sequence[str],
        memory: Memory,
        credentials: dict[str, str],
        chance: random.Random,
    ) -> None:
        """`credentials` are the Authorizations by whose they are; all partners share them."""
        self._clients = [ApiClient(url, timeout_s=TIMEOUT_S) for url in urls]
        self.memory = memory
        self.credentials = credentials
        self.chance = chance

    def ask(
        self,
        what: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        about: str | None = None,
        whose: str = "backend",
        secret: str | None = None,
        once: bool = False,
    ) -> Any:
        """The answer's document, once there is one.

        With `once` a lost answer is a NoResponse: the request cannot be repeated. Raises
        NeverAnswered, Refused.
        """
        began = time.monotonic()
        answer, tries, sent = self._until_answered(
            what, method, path, body, key=key, whose=whose, secret=secret, once=once
        )
        answered = AnsweredRequest(
            what=what,
            about=about,
            method=method,
            path=path,
            body=body,
            key=key,
            whose=whose,
            secret=secret,
            status=answer.status,
            answer=answer.body.decode(),
            replayed=answer.headers.get("idempotent-replayed") == "true",
            began=began,
            sent=sent,
            ended=time.monotonic(),
            tries=tries,
        )
        if answer.status >= 400:
            raise Refused(f"{what} {method} {path} after {tries} tries: {answered.answer}")
        self.memory.write(answered)
        return answered.document

    def again(self, answered: AnsweredRequest) -> ApiResponse:
        """The answer to the very same request, sent once more. Raises NeverAnswered."""
        answer, _, _ = self._until_answered(
            answered.what,
            answered.method,
            answered.path,
            answered.body,
            key=answered.key,
            whose=answered.whose,
            secret=answered.secret,
            once=False,
        )
        return answer

    def _until_answered(
        self,
        what: str,
        method: str,
        path: str,
        body: Any,
        *,
        key: str | None,
        whose: str,
        secret: str | None,
        once: bool,
    ) -> tuple[ApiResponse, int, float]:
        until = time.monotonic() + PATIENCE_S
        turn, pause_s, tries = self.chance.randrange(len(self._clients)), FIRST_PAUSE_S, 0
        authorization = f"Bearer {secret}" if whose == "payer" else self.credentials[whose]
        while time.monotonic() < until:
            tries += 1
            sent = time.monotonic()
            try:
                answer = self._clients[(turn + tries) % len(self._clients)].call(
                    method,
                    path,
                    body,
                    authorization=authorization,
                    key=key,
                    payment_secret=None if whose == "payer" else secret,
                )
            except NoResponse as error:
                self.memory.count(type(error.__cause__).__name__)
                if once:
                    raise
            else:
                why = _why_again(answer)
                if why is None:
                    return answer, tries, sent
                self.memory.count(why)
                if once:
                    raise NoResponse(why)
                if answer.status == 500:
                    self.memory.complain(f"{what} {method} {path}: {answer.body.decode()}")
            time.sleep(pause_s * self.chance.uniform(0.5, 1.5))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        raise NeverAnswered(f"{what} {method} {path}: no answer in {tries} tries")


def _why_again(answer: ApiResponse) -> str | None:
    """Why a request should be sent again as it is; None where that is its answer."""
    if answer.status < 400:
        return None
    error = answer.document["error"]
    is_asked_for = (
        answer.status >= 500
        or answer.status == 429
        or error["code"] == "idempotency_in_progress"
        or (answer.status == 424 and error["details"]["retryable"])
    )
    return f"{answer.status} {error['code']}" if is_asked_for else None
