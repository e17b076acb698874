"""A KYC provider that opens cases that nobody reviews; the sandbox decides them."""

from __future__ import annotations

from collections.abc import Callable

from payments_core.accounts.verification.port import (
    KycCase,
    KycFinding,
    KycRequest,
    KycUnavailable,
)


class SimulatedKyc:
    """Answers at once, always the same for one key, and keeps nothing.

    `fails` is called before each start; if it is true, the provider does not answer. The
    hosted URL leads nowhere: `.invalid` is never a site (RFC 2606). A verification is decided
    by `POST /v2/sandbox/accounts/{accountId}/kyc`.
    """

    def __init__(self, fails: Callable[[], bool] = lambda: False) -> None:
        self._fails = fails

    def start(self, request: KycRequest) -> KycCase:
        if self._fails():
            raise KycUnavailable("the sandbox makes this call fail")
        reference = f"simulated_{request.key}"
        return KycCase(reference=reference, hosted_url=f"https://kyc.invalid/{reference}")

    def look(self, reference: str) -> KycFinding:
        """Nothing is ever decided here: the sandbox decides."""
        return "pending"
