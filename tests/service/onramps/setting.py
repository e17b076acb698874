"""A payer with an on-ramp, and short ways to its bank. It is Monday, 9:34 in New York."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payments_core.banks.incoming import IncomingTransfer
from payments_core.banks.simulated.incoming import SimulatedFundingBank
from payments_core.onramps.fields import NewOnrampAccount, NewOnrampDestination
from payments_core.onramps.record import BankTransaction, FundingEntry, OnrampAccount
from tests.service.world import BASE, USDC, World


class OnrampSetting:
    """One on-ramp of the payer, by default to the vault."""

    def __init__(self, world: World, **destination: Any) -> None:
        self.world = world
        make_capable(world)
        self.onramp = self.add(**destination)

    def add(self, **destination: Any) -> OnrampAccount:
        """Another on-ramp, whose number the bank has made."""
        chosen = {"type": "vault", "chain_id": BASE, "asset_symbol": "USDC", **destination}
        new = NewOnrampAccount(currency="usd", destination=NewOnrampDestination(**chosen))
        world = self.world
        made = world.resources.onramps.add(world.payer.id, new)
        world.run()
        return self.reload(made)

    def reload(self, onramp: OnrampAccount) -> OnrampAccount:
        world = self.world
        found = world.storage.read(
            world.environment_id, lambda snapshot: snapshot.get(OnrampAccount, onramp.id)
        )
        assert found is not None
        return found

    @property
    def bank(self) -> SimulatedFundingBank:
        bank = self.world.service._funding_banks.simulated  # what the sandbox is given
        assert bank is not None
        return bank

    def deposit(self, amount: str = "100.00", rail: Any = "wire", **more: Any) -> IncomingTransfer:
        """A transfer to the on-ramp that somebody makes now."""
        sandbox = self.world.resources.sandbox
        return sandbox.deposit_at_bank(self.onramp.id, amount, rail, **more)

    def transactions(self) -> tuple[BankTransaction, ...]:
        """What arrived, newest first."""
        world = self.world
        page = world.resources.onramps.list_transactions(world.payer.id, self.onramp.id)
        return page.records

    @property
    def transaction(self) -> BankTransaction:
        (transaction,) = self.transactions()
        return transaction

    def reported_events(self) -> list[str]:
        """The events of bank transfers, in their order."""
        reported = [
            event for event in self.world.events() if event.name.startswith("bank_funding.")
        ]
        reported.sort(key=lambda event: (event.created_at_ms, event.payload["statusVersion"]))
        return [event.name for event in reported]

    def balance(self, address: str | None = None) -> int:
        """What the destination holds, finally."""
        address = address or self.onramp.destination.address
        return self.world.chain.balances(USDC.address, [address]).amounts[address]

    def postings(self, transaction: BankTransaction) -> list[tuple[str, Mapping[str, int]]]:
        """The journal of a transaction."""
        entries = self.world.storage.read(
            self.world.environment_id,
            lambda snapshot: (
                snapshot.find(FundingEntry, "by_transaction", (transaction.id,), limit=100).records
            ),
        )
        return [(entry.cause, dict(entry.postings)) for entry in entries]


def make_capable(world: World) -> None:
    """The payer verified, and its capability us_bank_funding active."""
    world.resources.sandbox.decide_kyc(world.payer.id, "approved")
    world.resources.bank_accounts.activate(world.payer.id, "us_bank_funding")
    world.run()

    def may_be_funded() -> bool:
        found = world.resources.accounts.read_capabilities(world.payer.id)
        return ("us_bank_funding", "active") in {(it.name, it.status) for it in found}

    world.advance_until(may_be_funded)
