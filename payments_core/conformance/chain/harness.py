"""The hooks of an adapter's suite class, and the shared parts of the checks."""

from __future__ import annotations

import time
import unittest
from collections.abc import Callable
from typing import Protocol

from payments_core.acceptance import Acceptance
from payments_core.chains.port import (
    AddressSpec,
    Block,
    Chain,
    ChainUnavailable,
    Contract,
    SignedTransaction,
    TransactionView,
    TransferIntent,
)
from payments_core.entropy import system_entropy

AMOUNT = 12_345_678


class ContractWallet(Protocol):
    """A contract wallet of the test (ERC-1271)."""

    @property
    def address(self) -> str:
        """The contract's address, in its canonical text; known before it is deployed."""

    def sign(self, digest: bytes) -> bytes:
        """The signature of 32 bytes that its contract accepts."""

    def wrap(self, signature: bytes) -> bytes:
        """The signature with the call that deploys the contract (ERC-6492)."""

    def deploy(self) -> None:
        """Deploy its contract; the newest block has it when this returns."""


class Harness:
    """Override the hooks, and declare what the adapter can do.

    A check of something undeclared is skipped, and the skip is reported.
    """

    token: str
    """A token's address, in its canonical text."""

    other_token: str | None = None
    """Another token, if there is one; `send_external_transfer` can send both."""

    finality_blocks: int = 3
    """The number of further blocks after which a transaction is final."""

    can_send: bool = True
    """`derive` and the write side work."""

    can_hold_contracts: bool = False
    """`new_contract_wallet` works."""

    can_reorg: bool = False
    """`reorg` works."""

    can_fail: bool = False
    """`fail` and `restore` work."""

    can_choose_policy: bool = False
    """`open_with` works: the adapter gets its network when it is opened."""

    recovers_within_s: float = 5.0
    """How soon after `restore` a call must succeed again, without help."""

    def open(self) -> Chain:
        """A handle to the chain, as another process would have it."""
        raise NotImplementedError  # the adapter's own test class says how

    def open_with(self, acceptance: tuple[Acceptance, ...]) -> Chain:
        """A handle whose network has this policy.

        Raises ValueError, as the adapter does, if the chain's nodes do not know a tag of it.
        """
        raise NotImplementedError  # the adapter's own test class says how

    def new_address(self) -> str:
        """An address that was never used."""
        raise NotImplementedError  # the adapter's own test class says how

    def send_external_transfer(self, token: str, recipient: str, amount_atomic: int) -> str:
        """A stranger's transfer, in a block when it returns; its hash."""
        raise NotImplementedError  # the adapter's own test class says how

    def send_failed_transaction(self, token: str, recipient: str) -> str:
        """A stranger's transaction that failed, in a block when it returns; its hash."""
        raise NotImplementedError  # the adapter's own test class says how

    def mine_blocks(self, count: int) -> None:
        """Add blocks."""
        raise NotImplementedError  # the adapter's own test class says how

    def new_contract_wallet(self) -> ContractWallet:
        """A contract wallet that is not deployed yet."""
        raise NotImplementedError  # the adapter's own test class says how

    def reorg(self, depth: int) -> None:
        """Replace the last blocks by others without their transactions; never lower."""
        raise NotImplementedError  # the adapter's own test class says how

    def fail(self) -> None:
        """Let the chain's nodes stop answering."""
        raise NotImplementedError  # the adapter's own test class says how

    def restore(self) -> None:
        """Undo `fail`."""
        raise NotImplementedError  # the adapter's own test class says how

    # What a test runner calls around each check.

    def setup_method(self) -> None:
        """Before each check."""

    def teardown_method(self) -> None:
        """After each check."""

    # Shared by the checks.

    def new_environment_id(self) -> str:
        """An environment that has sent nothing yet."""
        return f"env_{system_entropy(12).hex()}"

    def require_capability(self, capability: str) -> None:
        """Skip the check unless the adapter declares the capability."""
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")

    def require_in_block(self, chain: Chain, hash: str) -> tuple[TransactionView, Block]:
        """A transaction that must be in a block."""
        view = chain.transaction(hash)
        assert view is not None, "a transaction that is in a block must be known"
        assert view.block is not None, "a transaction that is in a block must have its block"
        return view, view.block

    def make_final(self) -> None:
        """Make all included transactions final."""
        self.mine_blocks(self.finality_blocks)

    def vault_contract(
        self, chain: Chain, environment_id: str, owner_id: str = "acct_a"
    ) -> Contract:
        """A vault of ours."""
        address = chain.derive(AddressSpec(environment_id, "vault", owner_id))
        return Contract("vault", owner_id, address)

    def funding_intent(
        self, chain: Chain, environment_id: str, amount_atomic: int, payment_id: str = "payment_a"
    ) -> TransferIntent:
        """A transfer of tokens from that vault to a Payment's escrow."""
        escrow = chain.derive(AddressSpec(environment_id, "escrow", payment_id))
        return TransferIntent(
            f"out_{payment_id}",
            environment_id,
            self.token,
            self.vault_contract(chain, environment_id),
            escrow,
            amount_atomic,
            escrow_of=payment_id,
        )

    def read_final_balance(self, chain: Chain, holder: str) -> int:
        """The balance of an address when all is final."""
        self.make_final()
        return chain.balances(self.token, [holder]).amounts[holder]

    def send_and_mine(self, chain: Chain, signed: SignedTransaction) -> None:
        """Broadcast, and give the chain a block to put it in."""
        chain.broadcast(signed)
        self.mine_blocks(1)


def require_available(call: Callable[[], object], within_s: float) -> None:
    """The call must soon succeed."""
    until = time.monotonic() + within_s
    while True:
        try:
            call()
        except ChainUnavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


def require_unavailable(call: Callable[[], object]) -> None:
    """The call must report that there is no answer."""
    try:
        call()
    except ChainUnavailable:
        return
    raise AssertionError("a chain that cannot be reached must not answer")
