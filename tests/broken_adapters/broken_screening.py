"""Screening providers that each break one promise of the port, made out of a sound one."""

from __future__ import annotations

import hashlib
import threading

from payments_core.clock import DAY, HOUR, SystemClock
from payments_core.evolve import evolve
from payments_core.screening.port import (
    Outcome,
    ScreeningRequest,
    ScreeningUnavailable,
    Subject,
    Verdict,
)
from tests.service.notices.office import new_id


class Plain:
    """Sound: a list of judgements, and a case for each key in review."""

    def __init__(self) -> None:
        self.judgements: dict[tuple[object, ...], Outcome] = {}
        self.cases: dict[str, str] = {}
        self.decisions: dict[str, Outcome] = {}
        self.is_down = self.loses_next_answer = self.answers_nonsense = False
        self.is_answering = threading.Event()
        self.is_answering.set()
        self.hang_limit_s = 0.05

    def screen(self, request: ScreeningRequest) -> Verdict:
        self.require_up(request)
        self.wait(request)
        if self.answers_nonsense:
            return self.take_nonsense(request)
        outcome = self.find_outcome(request)
        case = self.find_case(request) if outcome == "review" else None
        if case is not None:
            outcome = self.find_decision(case)
        if self.loses_next_answer:
            self.loses_next_answer = False
            raise ScreeningUnavailable("the answer was lost")
        until = self.find_validity_ms(outcome)
        return Verdict(outcome=outcome, case=case, valid_until_ms=until, reason="as listed")

    def wait(self, request: ScreeningRequest) -> None:
        if not self.is_answering.wait(self.hang_limit_s):
            raise ScreeningUnavailable("no answer in time")

    def take_nonsense(self, request: ScreeningRequest) -> Verdict:
        raise ScreeningUnavailable("the answer is not understood")

    def require_up(self, request: ScreeningRequest) -> None:
        if self.is_down:
            raise ScreeningUnavailable("no answer")

    def judge(self, subject: Subject, outcome: Outcome) -> None:
        self.judgements[self.name_subject(subject)] = outcome

    def name_subject(self, subject: Subject) -> tuple[object, ...]:
        return subject.kind, subject.reference.lower(), subject.chain_id

    def find_outcome(self, request: ScreeningRequest) -> Outcome:
        return self.judgements.get(self.name_subject(request.subject), "clear")

    def find_case(self, request: ScreeningRequest) -> str:
        return self.cases.setdefault(request.key, f"case-{request.key}")

    def find_decision(self, case: str) -> Outcome:
        return self.decisions.get(case, "review")

    def find_validity_ms(self, outcome: Outcome) -> int:
        return SystemClock().now() + (HOUR if outcome == "clear" else 0)


class SuspectsEverybody(Plain):
    def find_outcome(self, request: ScreeningRequest) -> Outcome:
        found = super().find_outcome(request)
        return "review" if found == "clear" else found


class BlocksNobody(Plain):
    def find_outcome(self, request: ScreeningRequest) -> Outcome:
        found = super().find_outcome(request)
        return "clear" if found == "blocked" else found


class ClearsWhatIsInReview(Plain):
    def find_outcome(self, request: ScreeningRequest) -> Outcome:
        found = super().find_outcome(request)
        return "clear" if found == "review" else found


class ScreensAddressesAlone(Plain):
    def find_outcome(self, request: ScreeningRequest) -> Outcome:
        return super().find_outcome(request) if request.subject.kind == "address" else "clear"


class ScreensWhatGoesOutAlone(Plain):
    def find_outcome(self, request: ScreeningRequest) -> Outcome:
        return super().find_outcome(request) if request.direction == "out" else "clear"


class NeedsASmallAmount(Plain):
    def find_outcome(self, request: ScreeningRequest) -> Outcome:
        if request.amount_atomic is None or request.amount_atomic >= 2**63:
            raise ScreeningUnavailable("the amount is not understood")
        return super().find_outcome(request)


class TellsLettersApart(Plain):
    def name_subject(self, subject: Subject) -> tuple[object, ...]:
        return subject.kind, subject.reference, subject.chain_id


class JudgesAKindAsAWhole(Plain):
    def name_subject(self, subject: Subject) -> tuple[object, ...]:
        return (subject.kind,)


class MixesKinds(Plain):
    def name_subject(self, subject: Subject) -> tuple[object, ...]:
        return subject.reference.lower(), subject.chain_id


class TakesAnotherChainsVerdict(Plain):
    def name_subject(self, subject: Subject) -> tuple[object, ...]:
        return subject.kind, subject.reference.lower()


class HasLongReasons(Plain):
    def screen(self, request: ScreeningRequest) -> Verdict:
        return evolve(super().screen(request), reason="one line\nand " * 100)


class HasAnEmptyCase(Plain):
    def screen(self, request: ScreeningRequest) -> Verdict:
        verdict = super().screen(request)
        return evolve(verdict, case=verdict.case or "")


class IsValidInThePast(Plain):
    def find_validity_ms(self, outcome: Outcome) -> int:
        return super().find_validity_ms(outcome) - DAY


class CountsSeconds(Plain):
    def find_validity_ms(self, outcome: Outcome) -> int:
        return super().find_validity_ms(outcome) // 1_000


class CountsMicroseconds(Plain):
    def find_validity_ms(self, outcome: Outcome) -> int:
        return super().find_validity_ms(outcome) * 1_000


class KeepsReviews(Plain):
    def find_validity_ms(self, outcome: Outcome) -> int:
        return super().find_validity_ms("clear")


class ChangesTheVerdictOfAKey(Plain):
    def find_outcome(self, request: ScreeningRequest) -> Outcome:
        return "clear" if request.key in self.cases else super().find_outcome(request)


class OpensACaseForEachCall(Plain):
    def find_case(self, request: ScreeningRequest) -> str:
        self.cases[new_id()] = case = new_id()
        return case


class RacesItself(Plain):
    def find_case(self, request: ScreeningRequest) -> str:
        known = self.cases.get(request.key)
        if known is None:
            hashlib.pbkdf2_hmac("sha256", b"another thread runs", b"", 40_000)
            self.cases[request.key] = known = new_id()
        return known


class NamesNoCaseOfAReview(Plain):
    def screen(self, request: ScreeningRequest) -> Verdict:
        return evolve(super().screen(request), case=None)


class NeverFindsADecision(Plain):
    def find_decision(self, case: str) -> Outcome:
        return "review"


class ClearsWhatWasDecided(Plain):
    def find_decision(self, case: str) -> Outcome:
        return "clear" if case in self.decisions else "review"


class LooksAtTheNewestDecision(Plain):
    def find_decision(self, case: str) -> Outcome:
        return [*self.decisions.values(), "review"][-2] if self.decisions else "review"


class KeepsItsVerdicts(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.known: dict[tuple[object, ...], Verdict] = {}

    def screen(self, request: ScreeningRequest) -> Verdict:
        """Answers with what it found earlier, however long that is ago."""
        named = self.name_subject(request.subject)
        if named not in self.known:
            self.known[named] = super().screen(request)
        return self.known[named]


class ClearsWhenItIsDown(Plain):
    def screen(self, request: ScreeningRequest) -> Verdict:
        if self.is_down:
            return Verdict(outcome="clear", valid_until_ms=SystemClock().now())
        return super().screen(request)


class RaisesTimeouts(Plain):
    def require_up(self, request: ScreeningRequest) -> None:
        if self.is_down:
            raise TimeoutError


class NamesTheSubject(Plain):
    def require_up(self, request: ScreeningRequest) -> None:
        if self.is_down:
            raise ScreeningUnavailable(f"no answer about {request.subject.reference}")


class ForgetsAfterALostAnswer(Plain):
    def find_case(self, request: ScreeningRequest) -> str:
        if self.loses_next_answer:
            self.cases[new_id()] = case = new_id()
            return case
        return super().find_case(request)


class ClearsWithALostAnswer(Plain):
    def screen(self, request: ScreeningRequest) -> Verdict:
        if self.loses_next_answer:
            self.loses_next_answer = False
            return Verdict(outcome="clear", valid_until_ms=SystemClock().now())
        return super().screen(request)


class WaitsForever(Plain):
    def wait(self, request: ScreeningRequest) -> None:
        self.is_answering.wait()


class ClearsWithoutAnAnswer(Plain):
    def wait(self, request: ScreeningRequest) -> None:
        self.is_answering.wait(self.hang_limit_s)


class TakesNonsenseForClear(Plain):
    def take_nonsense(self, request: ScreeningRequest) -> Verdict:
        return Verdict(outcome="clear", valid_until_ms=SystemClock().now())


class RaisesKeyErrors(Plain):
    def take_nonsense(self, request: ScreeningRequest) -> Verdict:
        raise KeyError("outcome")
