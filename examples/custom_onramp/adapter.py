"""Your own on-ramp adapter, which passes the suite of the port.

`service.py` is the provider; yours is on the Internet. `docs/how-to/write-an-onramp-adapter.md`
explains this file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from payments_core.hosted_onramps.port import (
    OnrampOffer,
    OnrampOrder,
    OnrampProgress,
    OnrampRefused,
    OnrampState,
    OnrampUnavailable,
)
from payments_core.notices.port import NoticeRefused, ProviderNotice

TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 100_000
MAX_AGE_S = 300

STATES: Mapping[str, OnrampState] = {
    "open": "waiting",
    "paid": "paid",
    "sent": "delivered",
    "cancelled": "failed",
    "refunded": "returned",
}
"""The states of a purchase there. Any other is no answer: the order is looked at again."""


def open_url(url: str) -> ExampleOnramp:
    """The provider of example+https://API_KEY:WEBHOOK_SECRET@HOST: what an entry point names."""
    parts = urlsplit(url)
    scheme = parts.scheme.partition("+")[2]
    if scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the URL must be example+https://API_KEY:WEBHOOK_SECRET@HOST")
    if not parts.username or not parts.password:
        raise ValueError("the URL needs the API key and the secret of webhooks")
    base = f"{scheme}://{parts.netloc.rpartition('@')[2]}"
    return ExampleOnramp(base, unquote(parts.username), unquote(parts.password).encode())


class ExampleOnramp:
    """The adapter. Threads share it: it keeps no connection and no order."""

    name = "example"  # of its door: /providers/onramp/example

    def __init__(self, base_url: str, api_key: str, webhook_secret: bytes) -> None:
        self._base, self._key, self._secret = urlsplit(base_url), api_key, webhook_secret

    def offer(self, order: OnrampOrder) -> OnrampOffer:
        amount = Decimal(order.amount_atomic).scaleb(-order.asset.decimals)
        purchase = self._ask(
            "POST",
            "/purchases",
            {
                "key": order.key,  # the provider opens one purchase for a key
                "chain": order.asset.chain_id,
                "symbol": order.asset.symbol,
                "amount": f"{amount:f}",
                "to": order.recipient,
                "currency": order.currency,
                "returnUrl": order.return_url,
            },
        )
        return OnrampOffer(
            reference=_text(purchase, "id"),
            url=_text(purchase, "url", "https?://.+"),
            price=_text(purchase, "price", r"\d+(\.\d+)?"),
            currency=_text(purchase, "currency", "[A-Z]{3}"),
            expires_at_ms=int(_text(purchase, "until", r"\d{1,12}")) * 1_000,
        )

    def look(self, reference: str) -> OnrampProgress:
        purchase = self._ask("GET", f"/purchases/{quote(reference, safe='')}")
        state = STATES.get(_text(purchase, "state"))
        if state is None:
            raise OnrampUnavailable("the purchase is in a state that is not known here")
        match purchase.get("sent"):
            case [*_, str(transaction_hash)]:
                return OnrampProgress(state=state, transaction_hash=transaction_hash)
        return OnrampProgress(state=state)

    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        stamp, given = headers.get("example-time", ""), headers.get("example-signature", "")
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12 and given.isascii()):
            raise NoticeRefused("the time or the signature is missing")
        signed = hmac.digest(self._secret, stamp.encode() + b"." + body, hashlib.sha256).hex()
        if not hmac.compare_digest(given, signed):
            raise NoticeRefused("the signature is wrong")
        if abs(time.time() - int(stamp)) > MAX_AGE_S:
            raise NoticeRefused("the signature is old")
        try:  # from here on it is the provider's
            notice = json.loads(body)
            return [ProviderNotice(id=_text(notice, "id"), reference=_text(notice, "purchase"))]
        except (ValueError, OnrampUnavailable):
            raise NoticeRefused("the notice cannot be read") from None

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        """The provider's answer. Its text is in no error: whoever has a URL of it may pay there."""
        connect = HTTPSConnection if self._base.scheme == "https" else HTTPConnection
        host, port = str(self._base.hostname), self._base.port
        connection = connect(host, port, timeout=TIMEOUT_S)  # follows no redirect with the key
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read(MAX_ANSWER_BYTES)
            if answer.status in (409, 422):
                raise OnrampRefused(f"the provider answered {answer.status}")
            if answer.status not in (200, 201):
                raise OnrampUnavailable(f"the provider answered {answer.status}")
            return json.loads(text)
        except (OSError, HTTPException, ValueError) as error:
            raise OnrampUnavailable(f"no answer: {type(error).__name__}") from None
        finally:
            connection.close()


def _text(document: Any, name: str, pattern: str = ".+") -> str:
    found = document.get(name) if isinstance(document, dict) else None
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise OnrampUnavailable(f"the answer has no {name!r}")
    if not re.fullmatch(pattern, str(found)):
        raise OnrampUnavailable(f"{name!r} of the answer has another form")
    return str(found)
