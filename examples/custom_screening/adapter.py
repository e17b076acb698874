"""Your own screening adapter, which passes the suite of the port.

`service.py` is the provider; yours is on the Internet.
`docs/how-to/write-a-screening-adapter.md` explains this file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import unquote, urlsplit

from payments_core.notices.port import NoticeRefused, ProviderNotice
from payments_core.screening.port import Outcome, ScreeningRequest, ScreeningUnavailable, Verdict

TIMEOUT_S = 3.0
MAX_ANSWER_BYTES = 100_000
MAX_AGE_S = 300
MAX_VALID_S = 86_400

OUTCOMES: Mapping[str, Outcome] = {
    "no_match": "clear",
    "released": "clear",  # a person there has ended the case
    "possible_match": "review",
    "match": "blocked",
    "confirmed": "blocked",
}
"""The results there. Any other is no verdict: the transfer is held, and screened again."""


def open_url(url: str) -> ExampleScreening:
    """The provider of example+https://API_KEY:WEBHOOK_SECRET@HOST: what an entry point names."""
    parts = urlsplit(url)
    scheme = parts.scheme.partition("+")[2]
    if scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the URL must be example+https://API_KEY:WEBHOOK_SECRET@HOST")
    if not parts.username or not parts.password:
        raise ValueError("the URL needs the API key and the secret of webhooks")
    return ExampleScreening(
        f"{scheme}://{parts.netloc.rpartition('@')[2]}",
        unquote(parts.username),
        unquote(parts.password).encode(),
    )


class ExampleScreening:
    """The adapter. Threads share it: it keeps no connection and no verdict."""

    name = "example"  # of its door: /providers/screening/example

    def __init__(
        self,
        base_url: str,
        api_key: str,
        webhook_secret: bytes,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._base, self._key, self._secret = urlsplit(base_url), api_key, webhook_secret
        self._now_s = now_s

    def screen(self, request: ScreeningRequest) -> Verdict:
        subject, asked_ms = request.subject, int(self._now_s() * 1_000)
        amount, asset = request.amount_atomic, request.asset
        found = self._ask(
            "/screenings",
            {
                "key": request.key,  # the provider opens one case for a key, however often it comes
                "type": subject.kind,
                "reference": subject.reference,
                "chain": subject.chain_id,
                "direction": request.direction,
                "amount": None if amount is None else str(amount),  # a number would lose digits
                "token": None if asset is None else asset.address,
            },
        )
        outcome, valid_s = OUTCOMES.get(_text(found, "result")), found.get("validS")
        if outcome is None or type(valid_s) is not int or valid_s < 0:
            raise ScreeningUnavailable("the result is not one that is known here")
        kept_s = 0 if outcome == "review" else min(valid_s, MAX_VALID_S)
        return Verdict(
            outcome=outcome,
            case=None if found.get("case") is None else _text(found, "case"),
            valid_until_ms=asked_ms + kept_s * 1_000,
            reason=None if found.get("reason") is None else _text(found, "reason"),
        )

    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        stamp, given = headers.get("example-time", ""), headers.get("example-signature", "")
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12 and given.isascii()):
            raise NoticeRefused("the time or the signature is missing")
        signed = hmac.digest(self._secret, stamp.encode() + b"." + body, hashlib.sha256).hex()
        if not hmac.compare_digest(given, signed):
            raise NoticeRefused("the signature is wrong")
        if abs(self._now_s() - int(stamp)) > MAX_AGE_S:
            raise NoticeRefused("the signature is old")
        try:  # from here on it is the provider's
            notice = json.loads(body)
            return [ProviderNotice(id=_text(notice, "id"), reference=_text(notice, "case"))]
        except (ValueError, ScreeningUnavailable):
            raise NoticeRefused("the notice cannot be read") from None

    def _ask(self, path: str, body: object) -> Any:
        """The provider's answer. Its text is in no error: it may have personal data."""
        connect = HTTPSConnection if self._base.scheme == "https" else HTTPConnection
        host, port = str(self._base.hostname), self._base.port
        connection = connect(host, port, timeout=TIMEOUT_S)  # follows no redirect with the key
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read(MAX_ANSWER_BYTES)
            if answer.status != 200:
                raise ScreeningUnavailable(f"the provider answered {answer.status}")
            return json.loads(text)
        except (OSError, HTTPException, ValueError) as error:
            raise ScreeningUnavailable(f"no answer: {type(error).__name__}") from None
        finally:
            connection.close()


def _text(document: Any, name: str) -> str:
    found = document.get(name) if isinstance(document, dict) else None
    if not isinstance(found, str):
        raise ScreeningUnavailable(f"the answer has no text {name!r}")
    return found[:500]
