"""What the steps of a rehearsal share: the service, the wallet, the file, and how to wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import attrs

from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.port import AddressSpec, ChainUnavailable
from payments_core.clock import MINUTE, SECOND
from payments_core.errors import DependencyFailed, InsufficientBalance
from payments_core.networks import Asset, Network
from payments_core.resources import Resources
from payments_core.service import PaymentsService
from payments_core_http.cli.rehearse import saved
from payments_core_http.cli.rehearse.payer import Payer, WalletCall
from payments_core_http.cli.rehearse.saved import Rehearsal

LOOK_S = 0.5
"""How often the storage is looked at while the worker works."""

SEND_AGAIN_S = 10.0
"""How often a transaction that is in no block is sent again."""

MIN_PATIENCE_MS = 15 * MINUTE
PATIENCE = 3
"""A step may take so many times as long as the network's own estimate says."""

T = TypeVar("T")


class StepFailed(Exception):
    """Why a step could not end; nothing is lost, and the next run tries it again."""


@attrs.frozen(kw_only=True)
class Stage:
    """Where the steps are played."""

    service: PaymentsService
    environment_id: str
    payer: Payer
    network: Network
    asset: Asset
    amount_atomic: int
    deployment: Deployment
    rehearsal: Rehearsal
    path: Path
    check_interrupts: Callable[[], None]

    @cached_property
    def shop(self) -> Resources:
        """What a partner can do in the environment."""
        return self.service.environment(self.environment_id)

    @property
    def operator(self) -> str:
        """The address that sends the transactions of the environment."""
        spec = AddressSpec(self.environment_id, "operator", "operator")
        return self.payer.chain.derive(spec)

    def save(self) -> None:
        """Write what is known to the file."""
        saved.save(self.path, self.rehearsal)

    def key(self, name: str) -> str:
        """The idempotency key of a request of this rehearsal."""
        return f"{self.rehearsal.run}-{name}"

    def send(self, name: str, call: WalletCall) -> str:
        """Have the wallet make a call, once, and wait for its block; its hash.

        It is saved before it is sent. Raises StepFailed, CallRefused, ChainUnavailable.
        """
        signed = self.rehearsal.signed.get(name)
        if signed is None:
            signed = self.rehearsal.signed[name] = self.payer.sign(call)
            self.save()
        chain, sent_at = self.payer.chain, 0.0

        def look() -> str | None:
            nonlocal sent_at
            view = chain.transaction(signed.hash)
            if view is not None and view.block is not None:
                if view.succeeded:
                    return signed.hash
                raise StepFailed(f"the wallet's transaction {signed.hash} failed in its block")
            if view is None and self.payer.is_replaced(signed):
                del self.rehearsal.signed[name]
                self.save()
                raise StepFailed(
                    f"another transaction of the wallet has taken nonce {signed.nonce}, and this "
                    "one will never be in a block: nothing was moved"
                )
            if time.monotonic() - sent_at > SEND_AGAIN_S or not sent_at:
                self.payer.send(signed)
                sent_at = time.monotonic()
            return None

        return self.wait(f"the wallet's transaction {signed.hash} to be in a block", look)

    def wait(self, what: str, look: Callable[[], T | None]) -> T:
        """Look again and again until there is an answer. A chain that does not answer is waited
        for. Raises StepFailed."""
        usual_ms = self.network.estimate_ms(self.network.acceptance[-1], 0) or 0
        until = time.monotonic() + max(MIN_PATIENCE_MS, PATIENCE * usual_ms) / SECOND
        why = ""
        while time.monotonic() < until:
            try:
                found = look()
            except ChainUnavailable as error:
                why = f": {error}"
            else:
                why = ""
                if found is not None:
                    return found
            time.sleep(LOOK_S)
            self.check_interrupts()
        raise StepFailed(f"it takes too long for {what}{why}")

    def wait_for_funds(self, request: Callable[[], T]) -> T:
        """Repeat a request that a vault pays for until the vault's funds are final."""

        def look() -> T | None:
            try:
                return request()
            except (InsufficientBalance, DependencyFailed):
                return None

        return self.wait("the vault's tokens to be final", look)
