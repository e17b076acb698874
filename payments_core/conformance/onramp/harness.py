"""The hooks of an adapter's suite class, and the shared parts of the checks."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Sequence
from itertools import count

from payments_core.chains.port import TransferLog
from payments_core.clock import Instant, SystemClock
from payments_core.conformance.remote_harness import RemoteHarness
from payments_core.entropy import system_entropy
from payments_core.hosted_onramps.port import (
    HostedOnramp,
    OnrampOffer,
    OnrampOrder,
    OnrampRefused,
    OnrampState,
    OnrampUnavailable,
)
from payments_core.networks import Asset, shipped_networks

RECIPIENT = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"

_numbers = count()


class Harness(RemoteHarness):
    """Override the hooks, and declare what the adapter can do, as in `RemoteHarness` too."""

    asset: Asset = shipped_networks().find_asset(8453, "USDC")
    """An asset that the provider sells."""

    unsold_asset: Asset | None = None
    """An asset that it does not sell."""

    amount_atomic: int = 25_000_000
    """An amount of `asset` that it sells."""

    can_pay: bool = False
    """`pay` works."""

    can_deliver: bool = False
    """`deliver` works."""

    can_read_chain: bool = False
    """`read_transfers` works."""

    can_reject: bool = False
    """`reject` works."""

    can_return: bool = False
    """`give_back` works."""

    can_count_orders: bool = False
    """`count_orders` works."""

    can_answer_nonsense: bool = False
    """`answer_nonsense` works."""

    def open(self) -> HostedOnramp:
        """A handle to the provider, as another process would have it."""
        raise NotImplementedError  # the adapter's own test class says how

    def pay(self, reference: str) -> None:
        """Let the payer pay an order, as on the provider's page."""
        raise NotImplementedError  # the adapter's own test class says how

    def deliver(self, reference: str) -> None:
        """Let the provider deliver an order that was paid."""
        raise NotImplementedError  # the adapter's own test class says how

    def read_transfers(self, chain_id: int, hash: str) -> Sequence[TransferLog]:
        """The transfers of a transaction, as the chain reports them; none if it is unknown."""
        raise NotImplementedError  # the adapter's own test class says how

    def reject(self, reference: str) -> None:
        """Let the provider refuse the payer of an order, or the payer give up."""
        raise NotImplementedError  # the adapter's own test class says how

    def give_back(self, reference: str) -> None:
        """Let the payer pay an order, and the provider give the money back."""
        raise NotImplementedError  # the adapter's own test class says how

    def count_orders(self) -> int:
        """The number of orders that the provider has."""
        raise NotImplementedError  # the adapter's own test class says how

    def answer_nonsense(self) -> None:
        """Let the provider answer what its reference does not have, until `restore`."""
        raise NotImplementedError  # the adapter's own test class says how

    def now(self) -> Instant:
        """The time by which an offer's validity is judged."""
        return SystemClock().now()

    # Shared by the checks.

    def new_order(self, **changes: object) -> OnrampOrder:
        """An order under a key that was never used."""
        terms = {
            "key": f"offer_{system_entropy(8).hex()}{next(_numbers)}",
            "asset": self.asset,
            "amount_atomic": self.amount_atomic,
            "recipient": RECIPIENT,
            "return_url": "https://shop.example/done?a=1&b=2",
        }
        return OnrampOrder(**{**terms, **changes})  # type: ignore[arg-type]

    def open_case(self) -> OnrampOffer:
        """A new order."""
        return self.open().offer(self.new_order())

    def require_state(self, reference: str, *states: OnrampState, why: str) -> None:
        """Require an order to be in one of these states, for every handle and each time."""
        opened = self.open()
        for handle in (opened, opened, self.open()):
            state = handle.look(reference).state
            assert state in states, f"{why}, but it is {state!r}"

    def require_capability(self, capability: str) -> None:
        """Skip the check unless the adapter declares the capability."""
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")


def require_unavailable(call: Callable[[], object], what: str) -> None:
    """Require a call to raise OnrampUnavailable."""
    _require_raises(OnrampUnavailable, call, what)


def require_refused(call: Callable[[], object], what: str) -> None:
    """Require a call to raise OnrampRefused."""
    _require_raises(OnrampRefused, call, what)


def _require_raises(kind: type[Exception], call: Callable[[], object], what: str) -> None:
    try:
        answer = call()
    except kind:
        return
    except Exception as error:
        raise AssertionError(
            f"{what} must raise {kind.__name__}, not {type(error).__name__}"
        ) from error
    raise AssertionError(f"{what} must raise {kind.__name__}, but returned {answer!r}")
