"""A service in this process, and the clients of a shop, its payer and anybody."""

from __future__ import annotations

from typing import Any

from payments_core import KeyRing, PaymentsService
from payments_core.clock import FixedClock
from payments_core.public_url import LOCAL_URL
from payments_core.sandbox.clock import SandboxClock
from payments_core.settings import Settings
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http import create_app
from payments_core_http.client import AccountDestination, AsyncClient, Client, PublicClient

BASE = 8453
PAYER_PERMISSIONS = ["account:read", "payments:read", "vault_payments:write"]


class Shop:
    """An app with a standard key, a merchant and a payer with 100 USDC."""

    def __init__(self) -> None:
        storage = MemoryStorage()
        self.service = PaymentsService(
            storage,
            KeyRing.parse(KeyRing.generate()),
            clock=SandboxClock(storage, FixedClock()),
            settings=Settings(public_url=LOCAL_URL),
        )
        self.row = self.service.tenants.create_app("Shop", "shop")
        self.environment_id = self.row.environments["sandbox"]
        _, self.secret = self.service.tenants.create_key(self.environment_id, "standard", "main")
        self.app = create_app(self.service, mode="sandbox")
        self.client = Client.in_process(self.app, self.row.id, self.secret)
        self.public = PublicClient.in_process(self.app)
        self.merchant = self.client.accounts.create(
            external_user_id="merchant", subject_type="business"
        )
        self.payer = self.client.accounts.create(
            external_user_id="payer", subject_type="individual"
        )
        self.client.sandbox.fund(
            self.payer.account_id, chain_id=BASE, asset_symbol="USDC", amount="100.00"
        )

    def asynchronous(self, **options: Any) -> AsyncClient:
        return AsyncClient.in_process(self.app, self.row.id, self.secret, **options)

    def receive(self, amount: str = "25.00", **more: Any) -> Any:
        destination = AccountDestination(account_id=self.merchant.account_id)
        return self.client.payments.receive(amount=amount, destination=destination, **more)

    def settle(self) -> None:
        """Let all that is under way come to its end."""
        for _ in range(4):
            self.client.sandbox.advance_clock(advance_seconds=5)
