"""What a partner does with a sandbox, request by request, for `scenario.py`.

It goes over HTTP wherever there is a route: names in Python change from release to release, and
the wire does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.http.seen import Seen
from tests.upgrades.shop import Shop

BASE = 8453
WALLET = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
ORIGIN = "https://shop.example"


class Partner:
    """The partner's backend and a payer's browser; it keeps its requests with their answers."""

    app_id: str
    environment_id: str
    bearer: str
    """The Authorization header of routes that want the key alone."""
    access: str
    """The Authorization header of the payer's browser."""
    payer: str
    merchant: str
    mandate: str

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.auth = ""
        self.requests: list[dict[str, Any]] = []
        self.reads: list[dict[str, Any]] = []
        self.in_flight: dict[str, dict[str, str]] = {}
        self.secrets: dict[str, list[str]] = {}
        self._keys = 0

    def call(self, method: str, target: str, body: Any = None, **more: Any) -> Any:
        """A request that must succeed; the document that it is answered with."""
        more.setdefault("auth", self.auth)
        seen = self.shop.call(method, target, more.pop("auth"), body, **more)
        assert 200 <= seen.status < 300, (method, target, body, seen.status, seen.body)
        return seen.json if seen.body else None

    def post(self, target: str, body: Any = None, **more: Any) -> Any:
        """A POST under a key of its own, kept with its answer to be repeated by a later release."""
        self._keys += 1
        request = {
            "method": "POST",
            "target": target,
            "auth": more.pop("auth", self.auth),
            "body": body,
            "key": f"key-{self._keys}",
            **more,
        }
        seen: Seen = self.shop.call(**request)
        assert 200 <= seen.status < 300, (request, seen.status, seen.body)
        self.requests.append({**request, "status": seen.status, "answer": seen.body.decode()})
        return seen.json if seen.body else None

    def can_be_read(self, target: str, auth: str | None = None) -> Any:
        """Something that later releases must be able to read."""
        self.reads.append({"target": target, "auth": self.auth if auth is None else auth})

    def under_way(self, what: str, target: str, status: str, end: str) -> None:
        """Work in flight: where its status is read, what it is now and what it must become."""
        self.in_flight[what] = {"target": target, "status": status, "end": end}

    # The sandbox.

    def fund(self, account_id: str, amount: str, chain_id: int = BASE) -> None:
        body = {"chainId": chain_id, "assetSymbol": "USDC", "amount": amount}
        self.post(f"/v2/sandbox/accounts/{account_id}/fund", body)

    def transfer(self, to: str, amount: str, chain_id: int = BASE) -> Any:
        body = {"chainId": chain_id, "assetSymbol": "USDC", "to": to, "amount": amount}
        return self.post("/v2/sandbox/transfers", body)

    def fail(self, operation: str, chain_id: int, times: int = 1) -> None:
        body = {"dependency": "chain", "operation": operation, "times": times, "chainId": chain_id}
        self.post("/v2/sandbox/failures", body)

    def run(self) -> None:
        self.call("POST", "/v2/sandbox/run")

    def advance(self, seconds: int) -> None:
        self.call("POST", "/v2/sandbox/clock", {"advanceSeconds": seconds})

    def run_until(self, reached: Callable[[], bool]) -> None:
        """Run one job after another, at the instant when each is due, until something is so."""
        worker = self.shop.service.worker("sandbox")
        for _ in range(2_000):
            if reached():
                return
            if not worker.run_due(1):
                due = worker.next_due()
                assert due is not None
                self.shop.clock.advance_to(due)
        raise AssertionError("it was never so")

    def status(self, target: str) -> str:
        """The status of what is read there; the newest one's in a list."""
        return status_of(self.call("GET", target))

    # Payments.

    def receive(self, amount: str = "25.00", **more: Any) -> Any:
        to = {"type": "account", "accountId": self.merchant}
        return self.post(
            "/v2/payments", {"intent": "receive", "amount": amount, "destination": to, **more}
        )

    def option(self, payment: Any) -> Any:
        path = f"/v2/client/me/payments/{payment['id']}/options"
        headers = {"X-Service-Payment-Secret": payment["clientSecret"]}
        return self.post(path, {}, auth=self.access, headers=headers)["option"]

    def authorize(self, payment: Any, option: Any) -> None:
        body = {
            "actionId": option["execution"]["actionId"],
            "proof": {"type": "managed_authorization", "authorization": "approved"},
        }
        path = f"/v2/client/me/payments/{payment['id']}/options/{option['id']}/authorize"
        headers = {"X-Service-Payment-Secret": payment["clientSecret"]}
        self.post(path, body, auth=self.access, headers=headers)

    def authorized(self, amount: str = "25.00", **more: Any) -> Any:
        """A Payment that the payer's vault is to pay, and nothing is sent yet."""
        payment = self.receive(amount, **more)
        self.authorize(payment, self.option(payment))
        return payment

    def send(self, amount: str, **more: Any) -> Any:
        body = {
            "intent": "send",
            "amount": amount,
            "source": {"type": "vault", "accountId": self.payer},
            "destination": {"type": "wallet", "address": WALLET},
            **more,
        }
        return self.post("/v2/payments", body)

    def collect(self, amount: str) -> Any:
        to = {"type": "account", "accountId": self.merchant}
        body = {"intent": "collect", "amount": amount, "mandateId": self.mandate}
        return self.post("/v2/payments", {**body, "destination": to})

    def refund(self, payment: Any, amount: str) -> Any:
        return self.post(f"/v2/payments/{payment['id']}/refunds", {"amount": amount})

    def link_wallet(self, signer: Any) -> Any:
        path = f"/v2/accounts/{self.payer}/wallets"
        asked = self.post(
            f"{path}/challenge", {"address": signer.address, "chainType": signer.chain_type}
        )
        body = {
            "challengeId": asked["challengeId"],
            "signature": signer.sign(asked["message"], asked["nonce"]),
            "label": signer.chain_type,
        }
        if signer.public_key is not None:
            body["publicKey"] = signer.public_key
        return self.post(path, body)

    def sell_in_public(self, amount: str) -> Any:
        """A Payment that a browser makes without a credential."""
        body = {"amount": amount, "destination": {"type": "wallet", "address": WALLET}}
        path = f"/v2/public/apps/{self.app_id}/payments"
        return self.post(path, body, auth="", headers={"Origin": ORIGIN})

    def pay_in_a_browser(self, payment: Any, amount: str) -> None:
        path = f"/v2/public/payments/{payment['id']}"
        auth = f"Bearer {payment['clientSecret']}"
        option = self.post(f"{path}/options", {"providerCode": "direct"}, auth=auth)["option"]
        self.post(f"{path}/options/{option['id']}/select", auth=auth)
        sent = self.transfer(option["execution"]["to"], amount)
        named = {"transactionHash": sent["transactionHash"], "chainId": BASE}
        self.post(f"{path}/options/{option['id']}/submissions", named, auth=auth)

    def deposit_address(self, chain_id: int) -> str:
        path = f"/v2/accounts/{self.payer}/deposit-addresses"
        return str(self.post(path, {"chainId": chain_id})["address"])

    # What is read.

    def of(self, target: str, id: str) -> Any:
        """One item of a list."""
        [found] = [one for one in self.call("GET", target)["data"] if one["id"] == id]
        return found

    def operation(self, target: str) -> str:
        """The status of a Payment's only funding operation."""
        [entry] = self.call("GET", target)["options"]
        return str(entry["fundingOperation"]["status"])

    def forget_requests_without_stored_answer(self) -> None:
        """The answers to browsers are kept for an hour only."""
        self.requests = [request for request in self.requests if self._is_stored(request)]
        assert {"", self.auth, self.access} <= {request["auth"] for request in self.requests}

    def _is_stored(self, request: dict[str, Any]) -> bool:
        given = {name: request[name] for name in request if name not in ("status", "answer")}
        return "idempotent-replayed" in self.shop.call(**given).headers

    def read_all(self, name: str, keep: Callable[[Any], Any]) -> None:
        """Read what can be read, and note of it what is to be kept."""
        for read in self.reads:
            read[name] = keep(self.call("GET", read["target"], auth=read["auth"]))


def status_of(document: Any) -> str:
    """The status of a resource, or of the first in a list."""
    for items in ("data", "deliveries"):
        if items in document:
            return str(document[items][0]["status"])
    return str(document["status"])
