"""KYC providers that each break one promise of the port, made out of a sound one."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence

from payments_core.accounts.verification.port import KycCase, KycFinding, KycRequest
from payments_core.evolve import evolve
from payments_core.notices.port import NoticeRefused, ProviderNotice
from tests.service.notices.office import SECRET, Office, new_id, sign


class Plain(Office):
    """Sound: what `Office` shares between all who open it is in the office itself."""


class HasNoUrl(Plain):
    def start(self, request: KycRequest) -> KycCase:
        return evolve(super().start(request), hosted_url="")


class OpensACaseForEachCall(Plain):
    def find_case(self, request: KycRequest) -> str:
        return new_id()


class OpensACaseForEachReturnUrl(Plain):
    def find_case(self, request: KycRequest) -> str:
        return f"case-{request.key}{request.return_url}"


class KnowsPeopleInsteadOfKeys(Plain):
    def find_case(self, request: KycRequest) -> str:
        return f"case-{request.email}"


class RacesItself(Plain):
    def find_case(self, request: KycRequest) -> str:
        known = self.cases.get(request.key)
        if known is None:
            hashlib.pbkdf2_hmac("sha256", b"another thread runs", b"", 40_000)
            self.cases[request.key] = known = new_id()
        return known


class ForgetsAfterALostAnswer(Plain):
    def start(self, request: KycRequest) -> KycCase:
        if self.loses_next_answer:
            self.cases[request.key] = new_id()
            try:
                return super().start(request)
            finally:
                del self.cases[request.key]
        return super().start(request)


class ApprovesAtOnce(Plain):
    def look(self, reference: str) -> KycFinding:
        found = super().look(reference)
        return "approved" if found == "pending" else found


class NeverFindsAnApproval(Plain):
    def look(self, reference: str) -> KycFinding:
        found = super().look(reference)
        return "pending" if found == "approved" else found


class TakesARejectionForApproval(Plain):
    def look(self, reference: str) -> KycFinding:
        found = super().look(reference)
        return "approved" if found == "rejected" else found


class LooksAtTheNewestDecision(Plain):
    def look(self, reference: str) -> KycFinding:
        super().look(reference)
        decided = [one for one in self.findings.values() if one != "pending"]
        return decided[-1] if decided else "pending"


class StartsAgainAfterADecision(Plain):
    def start(self, request: KycRequest) -> KycCase:
        case = super().start(request)
        self.findings[case.reference] = "pending"
        return case


class RejectsTheUnknown(Plain):
    def look(self, reference: str) -> KycFinding:
        self.require_up()
        return self.findings.get(reference, "rejected")


class RaisesTimeouts(Plain):
    def require_up(self) -> None:
        if self.is_down:
            raise TimeoutError


class HasAPathForAName(Plain):
    name = "office/2"


class NamesNoCase(Plain):
    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        return [evolve(one, reference="a case") for one in super().read_notices(headers, body)]


class CountsItsNotices(Plain):
    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        return [evolve(one, id=new_id()) for one in super().read_notices(headers, body)]


class NamesNoticesByTheirCase(Plain):
    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        return [evolve(one, id=one.reference) for one in super().read_notices(headers, body)]


class SignsTheTimeAlone(Plain):
    def require_signed(self, headers: Mapping[str, str], body: bytes) -> None:
        stamp = headers.get("office-time", "")
        known = {sign(stamp, body), headers.get("office-signature", "")}
        if not stamp or not all(known):
            raise NoticeRefused("not signed")
        try:
            json.loads(body)[0]["case"]
        except (ValueError, LookupError, TypeError) as error:
            raise NoticeRefused("not read") from error


class TrustsWhatIsUnsigned(Plain):
    def require_signed(self, headers: Mapping[str, str], body: bytes) -> None:
        if headers.get("office-signature"):
            super().require_signed(headers, body)


class RepeatsTheBody(Plain):
    def require_signed(self, headers: Mapping[str, str], body: bytes) -> None:
        try:
            super().require_signed(headers, body)
        except NoticeRefused as error:
            raise NoticeRefused(f"{error}: {body!r}") from error


class ReadsBeforeItVerifies(Plain):
    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        read = json.loads(body)
        self.require_signed(headers, body)
        return [ProviderNotice(id=one["id"], reference=one["case"]) for one in read]


class AcceptsYesterday(Plain):
    def require_signed(self, headers: Mapping[str, str], body: bytes) -> None:
        stamp = headers.get("office-time", "")
        expected = hmac.digest(SECRET, stamp.encode() + b"." + body, hashlib.sha256).hex()
        given = headers.get("office-signature", "")
        if not given.isascii() or not hmac.compare_digest(given, expected):
            raise NoticeRefused("the signature is wrong")
