"""The load: shoppers who go through whole flows of money, each a thread with accounts of its own.

Every flow is a row of `FLOWS`. What its writes should result in follows from what was
answered: `books.py` does that sum.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from payments_core_http.cli.api_client import NoResponse, bearer_authorization
from tests.outages.partner import Partner
from tests.shipped import CHAINS

SYMBOL = "USDC"
FUNDS = "1000000.00"
EXPIRES_S = 3_600
"""When a Payment expires that nobody pays; what a storm delays must not expire."""
SESSION_S = 86_400
LAST_ONES = 12
EVM_CHAINS = [number for number, chain in CHAINS.items() if chain.chain_type == "evm"]


class Shopper(threading.Thread):
    """A payer, a merchant, and what goes between them."""

    def __init__(
        self,
        name: str,
        partner: Partner,
        chance: random.Random,
        stopping: threading.Event,
        pause_s: float,
    ) -> None:
        """`pause_s` is how long it rests between two flows, on the average."""
        super().__init__(name=name, daemon=True)
        self._partner = partner
        self._chance = chance
        self._stopping = stopping
        self._pause_s = pause_s
        self._chains = sorted(chance.sample(EVM_CHAINS, 2))
        self._flows = 0
        self._steps = 0
        self._payments: list[str] = []
        self._refundable: list[Any] = []
        self.opened = threading.Event()

    def run(self) -> None:
        """Flows until it is stopped; a flow that began is finished."""
        try:
            self._open()
            self.opened.set()
            flows, weights = zip(*FLOWS, strict=True)
            while not self._stopping.wait(self._chance.expovariate(1 / self._pause_s)):
                self._flows += 1
                self._chance.choices(flows, weights)[0](self)
        except Exception as error:  # whatever it is, the run has failed by it
            self._partner.memory.complain(f"{self.name} ended: {type(error).__name__}: {error}")
        finally:
            self.opened.set()

    # Flows.

    def pay_from_vault(self) -> None:
        """Create, offer the vault, authorize: it goes to the escrow, and on to the merchant."""
        payment = self._create()
        id, secret = payment["id"], payment["clientSecret"]
        path = f"/v2/client/me/payments/{id}/options"
        as_payer = {"about": id, "whose": self.payer, "secret": secret}
        option = self._ask("option", "POST", path, {"providerCode": "vault"}, **as_payer)["option"]
        proof = {"type": "managed_authorization", "authorization": "approved"}
        body = {"actionId": option["execution"]["actionId"], "proof": proof}
        self._ask("authorize", "POST", f"{path}/{option['id']}/authorize", body, **as_payer)

    def pay_directly(self) -> None:
        """Create, select the direct option, and let a stranger transfer to the escrow."""
        payment = self._create()
        id, secret = payment["id"], payment["clientSecret"]
        path = f"/v2/public/payments/{id}/options"
        as_payer = {"about": id, "whose": "payer", "secret": secret}
        option = self._ask("direct", "POST", path, {"providerCode": "direct"}, **as_payer)["option"]
        self._ask("select", "POST", f"{path}/{option['id']}/select", None, **as_payer)
        self._transfer("pay", payment["chainId"], option["execution"]["to"], payment["amount"], id)

    def cancel(self) -> None:
        """Create, and think better of it."""
        id = self._create()["id"]
        self._ask("cancel", "POST", f"/v2/payments/{id}/cancel", None, about=id)

    def leave(self) -> None:
        """Create, and forget it: it expires."""
        self._create()

    def send(self) -> None:
        """Out of the payer's vault, to the merchant or to a wallet."""
        chain_id = self._chance.choice(self._chains)
        wallet = {"type": "wallet", "address": self._address(), "chainId": chain_id}
        to_merchant = {"type": "account", "accountId": self.merchant}
        body = {
            "intent": "send",
            "amount": self._amount(),
            "source": {
                "type": "vault",
                "accountId": self.payer,
                "chainId": chain_id,
                "assetSymbol": SYMBOL,
            },
            "destination": self._chance.choice([wallet, to_merchant]),
            "reference": self._key("send"),
        }
        self._payments.append(self._ask("send", "POST", "/v2/payments", body)["id"])

    def deposit(self) -> None:
        """A stranger's transfer to the payer's deposit address, which is swept to the vault."""
        chain_id = self._chance.choice(self._chains)
        self._transfer("deposit", chain_id, self._deposit_address, self._amount(), self.payer)

    def open_account(self) -> None:
        """One more account."""
        body = {"externalUserId": self._key("user"), "subjectType": "individual"}
        self._ask("account", "POST", "/v2/accounts", body)

    def look(self) -> None:
        """How one of the last Payments stands; one that succeeded may be refunded."""
        if not self._payments:
            return
        id = self._chance.choice(self._payments[-LAST_ONES:])
        seen = self._partner.ask("look", "GET", f"/v2/payments/{id}", about=id)
        if seen["status"] == "succeeded" and seen["intent"] == "receive" and not seen["refunds"]:
            self._refund(seen)

    def _refund(self, payment: Any) -> None:
        """Half of it, out of the merchant's vault."""
        half = int(payment["settledAmountAtomic"]) // 2
        body = {
            "amount": f"{half // 10**6}.{half % 10**6:06}",
            "destination": self._address(),
            "reason": "it did not fit",
        }
        id = payment["id"]
        self._ask("refund", "POST", f"/v2/payments/{id}/refunds", body, about=id)

    # Their parts.

    def _open(self) -> None:
        self.payer = self._account("payer")
        self.merchant = self._account("merchant")
        for chain_id in self._chains:
            body = {"chainId": chain_id, "assetSymbol": SYMBOL, "amount": FUNDS}
            path = f"/v2/sandbox/accounts/{self.payer}/fund"
            self._ask("fund", "POST", path, body, about=self.payer)
        path = f"/v2/accounts/{self.payer}/deposit-addresses"
        for chain_id in self._chains:
            issued = self._ask("address", "POST", path, {"chainId": chain_id}, about=self.payer)
            self._deposit_address = issued["address"]
        while not self._signed_in():
            pass

    def _signed_in(self) -> bool:
        """A token for the payer; where the exchange's answer is lost it takes a new session."""
        body = {
            "accountId": self.payer,
            "permissions": ["payments:read", "vault_payments:write"],
            "expiresInSeconds": SESSION_S,
        }
        session = self._ask("session", "POST", "/v2/client-sessions", body, about=self.payer)
        self._partner.credentials[self.payer] = bearer_authorization(session["clientSessionToken"])
        try:
            exchanged = self._partner.ask(
                "exchange", "POST", "/v2/client/auth/exchange", whose=self.payer, once=True
            )
        except NoResponse:
            return False
        self._partner.credentials[self.payer] = bearer_authorization(exchanged["accessToken"])
        return True

    def _account(self, name: str) -> str:
        body = {"externalUserId": f"{self.name}-{name}", "subjectType": "individual"}
        return str(self._ask("account", "POST", "/v2/accounts", body)["id"])

    def _create(self) -> Any:
        body = {
            "intent": "receive",
            "amount": self._amount(),
            "chainId": self._chance.choice(self._chains),
            "assetSymbol": SYMBOL,
            "destination": {"type": "account", "accountId": self.merchant},
            "reference": self._key("receive"),
            "expiresInSeconds": EXPIRES_S,
        }
        payment = self._ask("receive", "POST", "/v2/payments", body)
        self._payments.append(payment["id"])
        return payment

    def _transfer(self, what: str, chain_id: int, to: str, amount: str, about: str) -> None:
        body = {"chainId": chain_id, "assetSymbol": SYMBOL, "amount": amount, "to": to}
        self._ask(what, "POST", "/v2/sandbox/transfers", body, about=about)

    def _ask(self, what: str, method: str, path: str, body: Any, **more: Any) -> Any:
        """A write, under a key of its own."""
        self._steps += 1
        return self._partner.ask(what, method, path, body, key=self._key(what), **more)

    def _key(self, what: str) -> str:
        return f"{self.name}-{self._flows}-{self._steps}-{what}"

    def _amount(self) -> str:
        return f"{self._chance.randint(1, 50)}.{self._chance.randint(0, 99):02}"

    def _address(self) -> str:
        """A wallet outside that nobody else has."""
        return f"0x{self._chance.getrandbits(160):040x}"


FLOWS: tuple[tuple[Callable[[Shopper], None], int], ...] = (
    (Shopper.pay_from_vault, 5),
    (Shopper.pay_directly, 3),
    (Shopper.send, 2),
    (Shopper.deposit, 2),
    (Shopper.cancel, 1),
    (Shopper.leave, 1),
    (Shopper.open_account, 1),
    (Shopper.look, 6),
)
"""What a shopper does next, and how often of all."""


def wait_until_open(shoppers: list[Shopper], timeout_s: float) -> None:
    """Return when all of them have their accounts and funds."""
    until = time.monotonic() + timeout_s
    for shopper in shoppers:
        assert shopper.opened.wait(until - time.monotonic()), f"{shopper.name} is not open yet"
