"""Your own KYC adapter, which passes the suite of the port.

`service.py` is the provider; yours is on the Internet. `docs/how-to/write-a-kyc-adapter.md`
explains this file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from payments_core.accounts.verification.port import (
    KycCase,
    KycFinding,
    KycRequest,
    KycUnavailable,
)
from payments_core.notices.port import NoticeRefused, ProviderNotice

TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 100_000
MAX_AGE_S = 300

FINDINGS: Mapping[str, KycFinding] = {
    "created": "pending",
    "in_review": "pending",
    "passed": "approved",
    "failed": "rejected",
    "expired": "rejected",  # its user never came back: the account may start again
}
"""The states of a case there. Any other is no decision: the case is looked at again."""


def open_url(url: str) -> ExampleKyc:
    """The provider of example+https://API_KEY:WEBHOOK_SECRET@HOST: what an entry point names."""
    parts = urlsplit(url)
    scheme = parts.scheme.partition("+")[2]
    if scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the URL must be example+https://API_KEY:WEBHOOK_SECRET@HOST")
    if not parts.username or not parts.password:
        raise ValueError("the URL needs the API key and the secret of webhooks")
    return ExampleKyc(
        f"{scheme}://{parts.netloc.rpartition('@')[2]}",
        unquote(parts.username),
        unquote(parts.password).encode(),
    )


class ExampleKyc:
    """The adapter. Threads share it: it keeps no connection and no case."""

    name = "example"  # of its door: /providers/kyc/example

    def __init__(
        self,
        base_url: str,
        api_key: str,
        webhook_secret: bytes,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._base, self._key, self._secret = urlsplit(base_url), api_key, webhook_secret
        self._now_s = now_s

    def start(self, request: KycRequest) -> KycCase:
        case = self._ask(
            "POST",
            "/cases",
            {
                "key": request.key,  # the provider opens one case for a key, however often it comes
                "person": request.external_user_id,
                "type": request.subject_type,
                "email": request.email,
                "returnUrl": request.return_url,
            },
        )
        return KycCase(reference=_text(case, "id"), hosted_url=_text(case, "url"))

    def look(self, reference: str) -> KycFinding:
        state = _text(self._ask("GET", f"/cases/{quote(reference, safe='')}"), "state")
        if state not in FINDINGS:
            raise KycUnavailable("the case is in a state that is not known here")
        return FINDINGS[state]

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
        except (ValueError, KycUnavailable):
            raise NoticeRefused("the notice cannot be read") from None

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        """The provider's answer. Its text is in no error: it may have personal data."""
        connect = HTTPSConnection if self._base.scheme == "https" else HTTPConnection
        host, port = str(self._base.hostname), self._base.port
        connection = connect(host, port, timeout=TIMEOUT_S)  # follows no redirect with the key
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read(MAX_ANSWER_BYTES)
            if answer.status not in (200, 201):
                raise KycUnavailable(f"the provider answered {answer.status}")
            return json.loads(text)
        except (OSError, HTTPException, ValueError) as error:
            raise KycUnavailable(f"no answer: {type(error).__name__}") from None
        finally:
            connection.close()


def _text(document: Any, name: str) -> str:
    found = document.get(name) if isinstance(document, dict) else None
    if not isinstance(found, str):
        raise KycUnavailable(f"the answer has no text {name!r}")
    return found
