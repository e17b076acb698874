"""A KYC provider in the process: it hosts cases, decides them, and signs what it reports."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence

from payments_core.accounts.verification.port import (
    KycCase,
    KycFinding,
    KycRequest,
    KycUnavailable,
)
from payments_core.notices.port import NoticeRefused, ProviderNotice

SECRET = b"between the provider and us"


class Office:
    """Reports by webhook. `next_reference` names the next case."""

    name = "office"

    def __init__(self) -> None:
        self.findings: dict[str, KycFinding] = {}
        self.looks: list[str] = []
        self.is_down = False
        self.next_reference: str | None = None

    def start(self, request: KycRequest) -> KycCase:
        reference, self.next_reference = self.next_reference or f"case-{request.key}", None
        self.findings.setdefault(reference, "pending")
        return KycCase(reference=reference, hosted_url=f"https://office.invalid/{reference}")

    def look(self, reference: str) -> KycFinding:
        self.looks.append(reference)
        if self.is_down or reference not in self.findings:
            raise KycUnavailable("no answer")
        return self.findings[reference]

    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        if not hmac.compare_digest(headers.get("office-signature", ""), sign(body)):
            raise NoticeRefused("the signature is wrong")
        return [ProviderNotice(id=one["id"], reference=one["case"]) for one in json.loads(body)]


def sign(body: bytes) -> str:
    return hmac.digest(SECRET, body, hashlib.sha256).hex()


def notice(*pairs: tuple[str, str]) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a request with notices, each an id and a case."""
    body = json.dumps([{"id": id, "case": case} for id, case in pairs]).encode()
    return {"office-signature": sign(body)}, body
