"""Your own bank adapter, which passes the suites of both ports of banks.

`service.py` is the bank; yours is on the Internet. `docs/how-to/write-a-bank-adapter.md` explains
this file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

import attrs
import msgspec

from payments_core.banks import incoming as funding
from payments_core.banks import port
from payments_core.banks.incoming import IncomingTransfer, VirtualAccount
from payments_core.banks.payouts import BankPayout
from payments_core.banks.reviews import BankReview
from payments_core.notices.port import NoticeRefused, ProviderNotice

T = TypeVar("T")
TIMEOUT_S = 5.0
MAX_ANSWER_BYTES = 1_000_000
MAX_AGE_S = 300

NAMES: Mapping[type, Mapping[str, str]] = {
    BankReview: {"id": "reference", "url": "hosted_url", "why": "reason"},
    BankPayout: {"id": "reference", "cents": "amount_cents", "code": "return_code",
                 "sentAt": "submitted_at_ms", "settlesOn": "settles_on",
                 "settledAt": "settled_at_ms", "returnedAt": "returned_at_ms"},
    port.BankNotice: {"about": "payout_key", "at": "occurred_at_ms"},
    funding.IncomingNotice: {"about": "incoming_id", "account": "account_key",
                             "at": "occurred_at_ms"},
    VirtualAccount: {"number": "account_number", "routing": "routing_number", "memo": "reference",
                     "bank": "bank_name", "bankAddress": "bank_address",
                     "holder": "beneficiary_name", "holderAddress": "beneficiary_address"},
    IncomingTransfer: {"account": "account_key", "cents": "amount_cents", "memo": "reference",
                       "expectedAt": "expected_at_ms", "receivedAt": "received_at_ms",
                       "why": "reason"},
    funding.Delivery: {"hash": "transaction_hash"},
}  # fmt: skip
"""By what an answer becomes: the bank's names of its fields, where they are not the port's."""
STATES = {"open": "pending", "approved": "active", "declined": "rejected", "sent": "submitted"}
"""The bank's states, where they are not the port's. Any other state is no answer."""


def open_url(url: str) -> ExampleBank:
    """The bank of example+https://API_KEY:WEBHOOK_SECRET@HOST: what an entry point names."""
    parts = urlsplit(url)
    scheme = parts.scheme.partition("+")[2]
    if scheme not in ("http", "https") or not all((parts.hostname, parts.username, parts.password)):
        raise ValueError("the URL must be example+https://API_KEY:WEBHOOK_SECRET@HOST")
    base = f"{scheme}://{parts.netloc.rpartition('@')[2]}"
    return ExampleBank(base, unquote(parts.username or ""), unquote(parts.password or "").encode())


class ExampleBank:
    """The adapter. Threads share it: it keeps no connection and no payout."""

    name = "example"  # of its door: /providers/bank/example
    max_notice_pause_ms = 3_600_000

    def __init__(self, base_url: str, api_key: str, webhook_secret: bytes) -> None:
        self._base, self._key, self._secret = urlsplit(base_url), api_key, webhook_secret

    def request_capability(self, request: port.CapabilityRequest) -> BankReview:
        return self._put(BankReview, "capabilities", request.key, attrs.asdict(request))

    def find_capability(self, key: str) -> BankReview | None:
        return self._find(BankReview, "capabilities", key)

    def register_account(self, registration: port.AccountRegistration) -> BankReview:
        account, address = _account(registration.account), attrs.asdict(registration.address)
        body = {"account": account, "address": address, "bank": registration.bank_name}
        return self._put(BankReview, "recipients", registration.key, body)

    def find_account(self, key: str) -> BankReview | None:
        return self._find(BankReview, "recipients", key)

    def submit(self, order: port.PayoutOrder) -> BankPayout:
        body = {"rail": order.rail, "cents": order.amount_cents, "to": _account(order.recipient),
                "text": order.statement_text, "sameDay": order.same_day}  # fmt: skip
        return self._put(BankPayout, "payouts", order.key, body)

    def find_payout(self, key: str) -> BankPayout | None:
        return self._find(BankPayout, "payouts", key)

    def list_notices(self, limit: int = port.MAX_NOTICES) -> Sequence[port.BankNotice]:
        return self._list(port.BankNotice, f"of=payouts&limit={limit}")[0]

    def acknowledge(self, notice_ids: Sequence[str]) -> None:
        self._ask("POST", "/events/acknowledge", {"ids": list(notice_ids)})

    def open_virtual_account(self, request: funding.VirtualAccountRequest) -> VirtualAccount:
        return self._put(VirtualAccount, "numbers", request.key, attrs.asdict(request))

    def find_incoming(self, incoming_id: str) -> IncomingTransfer | None:
        return self._find(IncomingTransfer, "transfers", incoming_id)

    def return_incoming(self, incoming_id: str, reason: str) -> IncomingTransfer:
        path = f"/transfers/{quote(incoming_id, safe='')}/return"
        return _read(IncomingTransfer, self._ask("PUT", path, {"why": reason}))

    def deliver(self, order: funding.DeliveryOrder) -> funding.Delivery:
        body = attrs.asdict(order) | {"transfer": order.incoming_id}
        return self._put(funding.Delivery, "deliveries", order.key, body)

    def list_incoming_notices(
        self, limit: int = port.MAX_NOTICES, after: str | None = None
    ) -> funding.NoticePage:
        query = f"of=transfers&limit={limit}&after={quote(after or '0', safe='')}"
        notices, following = self._list(funding.IncomingNotice, query)
        return funding.NoticePage(notices=notices, next=following)

    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        stamp, given = headers.get("example-time", ""), headers.get("example-signature", "")
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12 and given.isascii()):
            raise NoticeRefused("the time or the signature is missing")
        signed = hmac.digest(self._secret, stamp.encode() + b"." + body, hashlib.sha256).hex()
        if not hmac.compare_digest(given, signed):
            raise NoticeRefused("the signature is wrong")
        if abs(time.time() - int(stamp)) > MAX_AGE_S:
            raise NoticeRefused("the signature is old")
        try:  # from here on it is the bank's
            return [msgspec.convert({"id": said["id"], "reference": said["about"]}, ProviderNotice)
                    for said in [json.loads(body)]]  # fmt: skip
        except (ValueError, LookupError, TypeError):
            raise NoticeRefused("the notice cannot be read") from None

    def _put(self, kind: type[T], path: str, key: str, body: object) -> T:
        return _read(kind, self._ask("PUT", f"/{path}/{quote(key, safe='')}", body))

    def _find(self, kind: type[T], path: str, key: str) -> T | None:
        found = self._ask("GET", f"/{path}/{quote(key, safe='')}")
        return None if found is None else _read(kind, found)

    def _list(self, kind: type[T], query: str) -> tuple[Sequence[T], str | None]:
        page = self._ask("GET", f"/events?{query}") or {}
        return [_read(kind, event) for event in page.get("events", ())], page.get("next")

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        """The bank's answer, None if it knows no such thing. No error has its text or the body."""
        connect = HTTPSConnection if self._base.scheme == "https" else HTTPConnection
        connection = connect(str(self._base.hostname), self._base.port, timeout=TIMEOUT_S)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:  # it follows no redirect with the key
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            said = json.loads(answer.read(MAX_ANSWER_BYTES))
            if answer.status == 422:
                raise port.BankRefused(said["reason"], said["message"])
        except (OSError, HTTPException, ValueError, LookupError, TypeError) as error:
            raise port.BankUnavailable(f"no answer: {type(error).__name__}") from None
        finally:
            connection.close()
        if answer.status == 409:
            raise port.KeyReused("the key came with another request")
        if answer.status == 404 and said == {"error": "unknown"}:  # not a proxy's 404
            return None
        if answer.status != 200 or not isinstance(said, dict):
            raise port.BankUnavailable(f"the bank answered {answer.status}")
        return said


def _account(details: port.BankAccountDetails) -> dict[str, str]:
    return {"holder": details.holder_name, "holderType": details.holder_type,
            "number": details.account_number, "routing": details.routing_number,
            "type": details.account_type}  # fmt: skip


def _read(kind: type[T], said: Any) -> T:
    try:
        fields = {NAMES[kind].get(name, name): value for name, value in said.items()}
        fields |= {"status": STATES.get(said["state"], said["state"])} if "state" in said else {}
        return msgspec.convert(fields, kind)
    except (ValueError, AttributeError, TypeError):
        raise port.BankUnavailable("the answer cannot be read") from None
