"""The hooks of an adapter's suite class, and the shared parts of the checks."""

from __future__ import annotations

import unittest
from itertools import count

from payments_core.accounts.verification.port import (
    KycCase,
    KycFinding,
    KycProvider,
    KycRequest,
    KycUnavailable,
)
from payments_core.conformance.remote_harness import RemoteHarness
from payments_core.entropy import system_entropy

_numbers = count()


class Harness(RemoteHarness):
    """Override the hooks, and declare what the adapter can do, as in `RemoteHarness` too."""

    can_decide: bool = False
    """`decide` works."""

    can_count_cases: bool = False
    """`count_cases` works."""

    def open(self) -> KycProvider:
        """A handle to the provider, as another process would have it."""
        raise NotImplementedError  # the adapter's own test class says how

    def decide(self, reference: str, finding: KycFinding) -> None:
        """Let the provider decide a case: `approved` or `rejected`."""
        raise NotImplementedError  # the adapter's own test class says how

    def count_cases(self) -> int:
        """The number of cases that the provider has."""
        raise NotImplementedError  # the adapter's own test class says how

    def new_request(self) -> KycRequest:
        """A request for a person whom the provider does not know yet."""
        key = f"verification_{system_entropy(8).hex()}{next(_numbers)}"
        return KycRequest(
            key=key,
            account_id=f"acct_{key}",
            external_user_id=f"user {key}",
            subject_type="individual",
            email=f"{key}@example.com",
            return_url="https://shop.example/done?a=1&b=2",
        )

    def open_case(self) -> KycCase:
        """A new case."""
        return self.open().start(self.new_request())

    def require_capability(self, capability: str) -> None:
        """Skip the check unless the adapter declares the capability."""
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")


def require_unavailable(call: object, what: str) -> None:
    """Require a call to raise KycUnavailable."""
    try:
        answer = call()  # type: ignore[operator]
    except KycUnavailable:
        return
    except Exception as error:
        raise AssertionError(
            f"{what} must raise KycUnavailable, not {type(error).__name__}"
        ) from error
    raise AssertionError(f"{what} must raise KycUnavailable, but returned {answer!r}")
