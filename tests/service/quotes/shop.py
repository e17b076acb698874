"""A world with quotes: short ways to make one, to pay it and to look at it."""

from __future__ import annotations

from itertools import count
from typing import Any

from payments_core.accounts.record import Account
from payments_core.chains.port import AddressSpec
from payments_core.networks import Asset
from payments_core.payments.destinations import ToAccount
from payments_core.payments.details import PaymentDetails
from payments_core.payments.record import Payment
from payments_core.quotes.operations import QuoteDetails
from payments_core.quotes.request import NewQuote
from payments_core.storage.port import Storage
from tests.service.world import WALLET, World
from tests.shipped import asset_of

POLYGON = 137
POLYGON_USDC = asset_of(POLYGON, "USDC")
_names = count()


class QuoteShop:
    """One app whose merchant is paid by quotes."""

    def __init__(self, storage: Storage, partner_id: str = "acme") -> None:
        self.world = World(storage).open(partner_id)

    @property
    def service(self) -> Any:
        return self.world.service

    def quote(
        self, amount: str = "25.00", *, idempotency_key: str | None = None, **more: Any
    ) -> QuoteDetails:
        """A quote of a wallet's for the merchant, by default on Base alone."""
        more.setdefault("destination", ToAccount(account_id=self.world.merchant.id))
        if "user_id" not in more:
            more.setdefault("source_address", WALLET)
        if "raw_amount" not in more:
            more["amount"] = amount
        return self.service.acting_as(self.world.server).legacy.create_quote(  # type: ignore[no-any-return]
            NewQuote(**more), idempotency_key=idempotency_key
        )

    def routed(self, amount: str = "25.00", **more: Any) -> QuoteDetails:
        """A quote that goes in on Base, and comes out on Polygon."""
        return self.quote(amount, destination_chain_id=POLYGON, **more)

    def pay(self, quoted: QuoteDetails, amount: int | None = None) -> str:
        """A transfer from the wallet to the deposit address, not final yet."""
        source = quoted.quote.source
        chain = self.service.chains[source.chain_id]
        paid = quoted.quote.input_atomic if amount is None else amount
        name = f"payer-{next(_names)}"
        chain.transfer(source.address, None, WALLET, paid, f"{name}/faucet")
        hash: str = chain.transfer(source.address, WALLET, quoted.quote.deposit_address, paid, name)
        self.service.parts.scanner("sandbox").wake(source.chain_id)
        return hash

    def payment(self, quoted: QuoteDetails) -> Payment:
        return self.world.paid(quoted.quote.payment_id)

    def details(self, quoted: QuoteDetails) -> PaymentDetails:
        return PaymentDetails(self.payment(quoted))

    def is_done(self, quoted: QuoteDetails) -> bool:
        return bool(
            self.service.acting_as(self.world.server).legacy.read_quote(quoted.quote.id).is_done
        )

    def fail(self, operation: str, times: int = 1) -> None:
        """Let the next uses of the router fail."""
        self.world.resources.sandbox.fail_dependency("router", operation, times)

    def vault(self, asset: Asset, account: Account | None = None) -> int:
        """What an account's vault holds of an asset, at the newest block."""
        owner = (account or self.world.merchant).id
        chain = self.service.chains[asset.chain_id]
        address = chain.derive(AddressSpec(self.world.environment_id, "vault", owner))
        return self.held(asset, address)

    def held(self, asset: Asset, address: str) -> int:
        chain = self.service.chains[asset.chain_id]
        chain.mine(3)
        return int(chain.balances(asset.address, [address]).amounts[address])
