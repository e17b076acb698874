"""The hooks of an adapter's suite class, and the shared parts of the checks."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Sequence

from payments_core.chains.port import TransferLog
from payments_core.conformance.remote_harness import RemoteHarness
from payments_core.entropy import system_entropy
from payments_core.networks import Asset, shipped_networks
from payments_core.routers.port import (
    OfferOrder,
    RouteOrder,
    RouteProgress,
    Router,
    RouterUnavailable,
)

RECIPIENT = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
RETURN_TO = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"


class Harness(RemoteHarness):
    """Override the hooks, and declare what the adapter can do.

    A check of something undeclared is skipped, and the skip is reported.
    """

    source: Asset = shipped_networks().find_asset(8453, "USDC")
    """The asset that the router receives."""

    destination: Asset = shipped_networks().find_asset(137, "USDC")
    """The asset that it pays."""

    can_return: bool = False
    """`return_next` works."""

    def open_router(self) -> Router:
        """A handle to the router, as another process would have it."""
        raise NotImplementedError  # the adapter's own test class says how

    def pay(self, address: str, amount_atomic: int) -> str:
        """Pay an amount of the source asset to an address, with finality; return the hash."""
        raise NotImplementedError  # the adapter's own test class says how

    def wait(self) -> None:
        """Let enough time pass for the router to complete its orders."""
        raise NotImplementedError  # the adapter's own test class says how

    def read_transfers(self, chain_id: int, hash: str) -> Sequence[TransferLog]:
        """The transfers of a transaction, as the chain reports them; none if it is unknown."""
        raise NotImplementedError  # the adapter's own test class says how

    def count_received(self, order: RouteOrder | OfferOrder) -> int:
        """The recipient's balance of the destination asset, by the chain."""
        raise NotImplementedError  # the adapter's own test class says how

    def return_next(self) -> None:
        """Let the router return the next payment."""
        raise NotImplementedError  # the adapter's own test class says how

    # Shared by the checks.

    def new_order(self, **changes: object) -> RouteOrder:
        """An order under a key that was never used."""
        terms = {
            "key": f"quote_{system_entropy(12).hex()}",
            "source": self.source,
            "destination": self.destination,
            "amount_atomic": 25_000_000,
            "expected_atomic": 24_900_000,
            "minimum_atomic": 24_800_000,
            "recipient": RECIPIENT,
            "return_to": RETURN_TO,
        }
        return RouteOrder(**{**terms, **changes})  # type: ignore[arg-type]

    def finish(self, router: Router, order: RouteOrder, hash: str) -> RouteProgress:
        """The result of a payment, after enough time."""
        router.deliver(order.key, hash)
        self.wait()
        return router.deliver(order.key, hash)

    def require_delivery(self, order: RouteOrder, progress: RouteProgress) -> TransferLog:
        """The one transfer of a delivery on the chain."""
        assert progress.state == "delivered", f"it must be delivered, but is {progress.state}"
        return self.require_transfer(self.destination, order.recipient, progress)

    def require_transfer(self, asset: Asset, to: str, progress: RouteProgress) -> TransferLog:
        """The one transfer of an asset to an address in a transaction that the router names."""
        assert progress.transaction_hash is not None, "a final state must name its transaction"
        logs = [
            log
            for log in self.read_transfers(asset.chain_id, progress.transaction_hash)
            if (log.recipient, log.token_address) == (to, asset.address)
        ]
        assert len(logs) == 1, f"the transaction must have one transfer to {to}, but has {logs}"
        return logs[0]

    def require_capability(self, capability: str) -> None:
        """Skip the check unless the adapter declares the capability."""
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")

    def require_unavailable(self, call: Callable[[], object]) -> None:
        """The call must raise RouterUnavailable, and nothing else."""
        try:
            answer = call()
        except RouterUnavailable:
            return
        except Exception as error:
            raise AssertionError(
                f"the call must raise RouterUnavailable, not {type(error).__name__}"
            ) from error
        raise AssertionError(f"the call must raise RouterUnavailable, but returned {answer!r}")
