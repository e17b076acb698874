"""The hooks of an adapter's suite class, and the shared parts of the checks."""

from __future__ import annotations

import unittest
from collections.abc import Callable

from payments_core.chains.port import ChainUnavailable, SignerRefused
from payments_core.chains.rotated_signer import OperatorSigner
from payments_core.conformance.remote_harness import RemoteHarness
from payments_core.entropy import system_entropy


class Harness(RemoteHarness):
    """Override the hooks, and declare what the adapter can do, as in `RemoteHarness` too.

    `can_lose_answers` is not used: a signature that was made and lost is made again.
    """

    environment_ids: tuple[str, str] = ("env_a", "env_b")
    """Two environments that have keys."""

    unknown_id: str | None = "env_without_a_key"
    """An environment that has no key; None for a signer that derives a key for every one."""

    secrets: tuple[str, ...] = ()
    """Passwords, PINs and keys: no `repr` and no error may contain them."""

    def open(self) -> OperatorSigner:
        """A handle to the signer, as another process would have it."""
        raise NotImplementedError  # the adapter's own test class says how

    def new_digest(self) -> bytes:
        """A digest that was never signed."""
        return system_entropy(32)

    def require_capability(self, capability: str) -> None:
        """Skip the check unless the adapter declares the capability."""
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")


def require_refused(call: Callable[[], object], what: str) -> SignerRefused:
    """The SignerRefused that a call must raise."""
    try:
        answer = call()
    except SignerRefused as refusal:
        return refusal
    except Exception as error:
        raise AssertionError(
            f"{what} must raise SignerRefused, not {type(error).__name__}"
        ) from error
    raise AssertionError(f"{what} must raise SignerRefused, but returned {answer!r}")


def require_unavailable(call: Callable[[], object], what: str) -> ChainUnavailable:
    """The ChainUnavailable that a call must raise."""
    try:
        answer = call()
    except ChainUnavailable as error:
        return error
    except Exception as error:
        raise AssertionError(
            f"{what} must raise ChainUnavailable, not {type(error).__name__}"
        ) from error
    raise AssertionError(f"{what} must raise ChainUnavailable, but returned {answer!r}")
