"""The hooks of an adapter's suite class, and the shared parts of the checks."""

from __future__ import annotations

import unittest
from itertools import count

import attrs

from payments_core.addresses import encode_checksum_address
from payments_core.clock import Instant, SystemClock
from payments_core.conformance.remote_harness import RemoteHarness
from payments_core.entropy import system_entropy
from payments_core.networks import Asset, shipped_networks
from payments_core.screening.port import (
    Outcome,
    Screening,
    ScreeningRequest,
    ScreeningUnavailable,
    Subject,
    SubjectKind,
    Verdict,
)

_numbers = count()


@attrs.frozen(kw_only=True)
class Case:
    """A case at the provider, as the checks of notices name it."""

    reference: str


class Harness(RemoteHarness):
    """Override the hooks, and declare what the adapter can do, as in `RemoteHarness` too."""

    asset: Asset = shipped_networks().find_asset(8453, "USDC")
    """The asset of the screened transfers, on the chain of the screened addresses."""

    other_chain_id: int = 137
    """Another chain with the same form of addresses."""

    answer_limit_s: float = 30.0
    """How long a call may take, also if the provider never answers."""

    can_judge: bool = False
    """`judge` works."""

    can_judge_by_chain: bool = False
    """`judge` works for one chain alone: the provider may judge an address differently on each."""

    can_decide: bool = False
    """`decide` works."""

    can_count_cases: bool = False
    """`count_cases` works."""

    can_hang: bool = False
    """`hang` works."""

    can_answer_nonsense: bool = False
    """`answer_nonsense` works."""

    def open(self) -> Screening:
        """A handle to the provider, as another process would have it."""
        raise NotImplementedError  # the adapter's own test class says how

    def judge(self, subject: Subject, outcome: Outcome) -> None:
        """Let the provider judge a subject like this from now on, as by a list of its own."""
        raise NotImplementedError  # the adapter's own test class says how

    def decide(self, case: str, outcome: Outcome) -> None:
        """Let the provider end a case that is in review: `clear` or `blocked`."""
        raise NotImplementedError  # the adapter's own test class says how

    def count_cases(self) -> int:
        """The number of cases that the provider has."""
        raise NotImplementedError  # the adapter's own test class says how

    def hang(self) -> None:
        """Let the provider accept requests, and answer none, until `restore`."""
        raise NotImplementedError  # the adapter's own test class says how

    def answer_nonsense(self) -> None:
        """Let the provider answer what its reference does not have, until `restore`."""
        raise NotImplementedError  # the adapter's own test class says how

    def now(self) -> Instant:
        """The time by which a verdict's validity is judged."""
        return SystemClock().now()

    # Shared by the checks.

    def new_subject(self, kind: SubjectKind = "address") -> Subject:
        """A subject that the provider does not know yet."""
        if kind == "address":
            address = encode_checksum_address(system_entropy(20))
            return Subject(kind=kind, reference=address, chain_id=self.asset.chain_id)
        return Subject(kind=kind, reference=f"{kind}_{_new_name()}", chain_id=None)

    def new_request(self, subject: Subject | None = None) -> ScreeningRequest:
        """A request under a key that was never used."""
        return ScreeningRequest(
            key=f"screening_{_new_name()}",
            subject=subject or self.new_subject(),
            direction="out",
            amount_atomic=25_000_000,
            asset=self.asset,
        )

    def open_review(self) -> tuple[ScreeningRequest, str]:
        """A request whose subject is in review, and the provider's case of it."""
        self.require_capability("can_judge")
        request = self.new_request()
        self.judge(request.subject, "review")
        verdict = self.open().screen(request)
        assert verdict.outcome == "review", f"it must be in review, but is {verdict.outcome!r}"
        assert verdict.case is not None, "a review must name its case, which notices refer to"
        return request, verdict.case

    def open_case(self) -> Case:
        """A case for the checks of notices."""
        return Case(reference=self.open_review()[1])

    def require_outcome(self, request: ScreeningRequest, outcome: Outcome, why: str) -> Verdict:
        """Require the verdict of a request."""
        verdict = self.open().screen(request)
        assert verdict.outcome == outcome, f"{why}, but it is {verdict.outcome!r}"
        return verdict

    def require_capability(self, capability: str) -> None:
        """Skip the check unless the adapter declares the capability."""
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")


def require_unavailable(call: object, what: str) -> ScreeningUnavailable:
    """Require a call to raise ScreeningUnavailable."""
    try:
        answer = call()  # type: ignore[operator]
    except ScreeningUnavailable as error:
        return error
    except Exception as error:
        raise AssertionError(
            f"{what} must raise ScreeningUnavailable, not {type(error).__name__}"
        ) from error
    raise AssertionError(f"{what} must raise ScreeningUnavailable, but returned {answer!r}")


def _new_name() -> str:
    return f"{system_entropy(8).hex()}{next(_numbers)}"
