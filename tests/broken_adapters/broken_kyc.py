"""KYC providers that each break one promise of the port, made out of a sound one."""

from __future__ import annotations

import hashlib

from payments_core.accounts.verification.port import KycCase, KycFinding, KycRequest
from payments_core.evolve import evolve
from tests.service.notices.office import Office, new_id


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
