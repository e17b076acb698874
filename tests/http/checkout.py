"""A merchant, a payer with funds, and the calls of a Vault checkout, over WSGI."""

from __future__ import annotations

from typing import Any

from payments_core.chains.port import NetworkKind
from payments_core.clock import FixedClock
from payments_core.sandbox.clock import SandboxClock
from payments_core.storage.port import Storage
from tests.http.api_harness import ApiHarness, Seen

BASE = 8453


class Checkout:
    """The partner's backend and the payer's browser, on one storage."""

    def __init__(self, storage: Storage, *, funds: str = "100", **ports: Any) -> None:
        self.system = FixedClock()
        self.clock = SandboxClock(storage, self.system)
        self.api = ApiHarness(self.clock, threads=64, storage=storage, **ports)
        self.payer = self.account("payer")
        self.merchant = self.account("merchant", username="merchant")
        self.fund(self.payer, funds)
        self.access = self.access_token("payer")

    def declare_network(self, kind: NetworkKind) -> Checkout:
        """Have the pages treat the simulated chain as a network of this kind, scanned once."""
        chain: Any = self.api.service.chains[BASE]
        chain.network_kind = kind
        self.run()
        return self

    # The backend.

    def account(self, name: str, **more: Any) -> str:
        body = {"externalUserId": name, "subjectType": "individual", **more}
        seen = self.api.call("POST", "/v2/accounts", body)
        assert seen.status == 201, seen.body
        return str(seen.json["id"])

    def fund(self, account_id: str, amount: str) -> Seen:
        body = {"chainId": BASE, "assetSymbol": "USDC", "amount": amount}
        return self.api.call("POST", f"/v2/sandbox/accounts/{account_id}/fund", body)

    def create(self, amount: str = "25.00", *, key: str = "create", **more: Any) -> Seen:
        body = {
            "intent": "receive",
            "amount": amount,
            "destination": {"type": "account", "accountId": self.merchant},
            **more,
        }
        return self.api.call("POST", "/v2/payments", body, key=key)

    def read(self, payment_id: str) -> Any:
        return self.api.call("GET", f"/v2/payments/{payment_id}").json

    def available(self, account_id: str) -> tuple[str, str]:
        """What is available and reserved of USDC on Base."""
        balances = self.api.call("GET", f"/v2/accounts/{account_id}/balances").json["balances"]
        [row] = [row for row in balances if row["chainId"] == BASE]
        return row["available"], row["reservedAtomic"]

    def transfer(self, to: str, amount: str, **more: Any) -> Seen:
        """A stranger's transfer of USDC on Base, final and looked at when it answers."""
        body = {"chainId": BASE, "assetSymbol": "USDC", "to": to, "amount": amount, **more}
        seen = self.api.call("POST", "/v2/sandbox/transfers", body)
        assert seen.status == 200, seen.body
        self.advance(20)
        return seen

    def run(self) -> Seen:
        return self.api.call("POST", "/v2/sandbox/run")

    def advance(self, seconds: int) -> Seen:
        return self.api.call("POST", "/v2/sandbox/clock", {"advanceSeconds": seconds})

    # The browser.

    def access_token(self, name: str, *permissions: str) -> str:
        wanted = permissions or ("payments:read", "vault_payments:write")
        return self.api.access_token(
            externalUserId=name, permissions=list(wanted), expiresInSeconds=86_400
        )

    def pay(
        self,
        payment: Any,
        path: str = "",
        body: Any = None,
        *,
        method: str = "POST",
        key: str | None = None,
        access: str | None = None,
        secret: str | None = None,
    ) -> Seen:
        """A call of the payer's under the Payment's options."""
        return self.api.call(
            method,
            f"/v2/client/me/payments/{payment['id']}/options{path}",
            body,
            auth=f"Bearer {access or self.access}",
            key=key,
            headers={"X-Service-Payment-Secret": secret or payment["clientSecret"]},
        )

    def option(self, payment: Any) -> Any:
        seen = self.pay(payment)
        assert seen.status == 201, seen.body
        return seen.json["option"]

    def authorize(
        self, payment: Any, option: Any, *, key: str = "authorize", **changes: Any
    ) -> Seen:
        body = {
            "actionId": option["execution"]["actionId"],
            "proof": {"type": "managed_authorization", "authorization": "approved"},
            **changes,
        }
        return self.pay(payment, f"/{option['id']}/authorize", body, key=key)
