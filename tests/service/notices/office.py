"""A KYC provider in the process: it hosts cases, decides them, and signs what it reports."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from itertools import count

from payments_core.accounts.verification.port import (
    KycCase,
    KycFinding,
    KycRequest,
    KycUnavailable,
)
from payments_core.notices.port import NoticeRefused, ProviderNotice

SECRET = b"between the provider and us"
NOW_S = 1_800_000_000
MAX_AGE_S = 300

_numbers = count()


class Office:
    """Reports by webhook. `next_reference` names the next case."""

    name = "office"

    def __init__(self) -> None:
        self.findings: dict[str, KycFinding] = {}
        self.cases: dict[str, str] = {}
        self.looks: list[str] = []
        self.is_down = self.loses_next_answer = False
        self.next_reference: str | None = None

    def start(self, request: KycRequest) -> KycCase:
        self.require_up()
        reference = self.find_case(request)
        self.findings.setdefault(reference, "pending")
        if self.loses_next_answer:
            self.loses_next_answer = False
            raise KycUnavailable("the answer was lost")
        return KycCase(reference=reference, hosted_url=f"https://office.invalid/{reference}")

    def find_case(self, request: KycRequest) -> str:
        named, self.next_reference = self.next_reference or f"case-{request.key}", None
        return self.cases.setdefault(request.key, named)

    def look(self, reference: str) -> KycFinding:
        self.looks.append(reference)
        self.require_up()
        if reference not in self.findings:
            raise KycUnavailable("no such case")
        return self.findings[reference]

    def require_up(self) -> None:
        if self.is_down:
            raise KycUnavailable("no answer")

    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        self.require_signed(headers, body)
        return [ProviderNotice(id=one["id"], reference=one["case"]) for one in json.loads(body)]

    def require_signed(self, headers: Mapping[str, str], body: bytes) -> None:
        stamp, given = headers.get("office-time", ""), headers.get("office-signature", "")
        if not (stamp.isascii() and stamp.isdigit() and given.isascii()):
            raise NoticeRefused("the time or the signature is missing")
        if not hmac.compare_digest(given, sign(stamp, body)):
            raise NoticeRefused("the signature is wrong")
        if abs(NOW_S - int(stamp[:12])) > MAX_AGE_S:
            raise NoticeRefused("the signature is old")


def sign(stamp: str, body: bytes) -> str:
    return hmac.digest(SECRET, stamp.encode() + b"." + body, hashlib.sha256).hex()


def notice(*pairs: tuple[str, str], at_s: int = NOW_S) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a request with notices, each an id and a case."""
    body = json.dumps([{"id": id, "case": case} for id, case in pairs]).encode()
    return {"office-time": str(at_s), "office-signature": sign(str(at_s), body)}, body


def new_id() -> str:
    """The id of another notice."""
    return f"notice-{next(_numbers)}"
