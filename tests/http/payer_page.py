"""A payer's browser on one Payment: its client secret, its link, and nothing else."""

from __future__ import annotations

from typing import Any

from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout

INVENTED = "0x" + "ab" * 32


class Page:
    """The payer's page on one Payment."""

    def __init__(self, checkout: Checkout, **more: Any) -> None:
        self.checkout = checkout
        seen = checkout.create(key=f"create-{id(self)}", **more)
        assert seen.status == 201, seen.body
        self.payment = seen.json
        self.path = f"/v2/public/payments/{self.payment['id']}"
        self.secret = self.payment["clientSecret"]

    def call(self, method: str, path: str = "", body: Any = None, **more: Any) -> Seen:
        more.setdefault("auth", f"Bearer {self.secret}")
        return self.checkout.api.call(method, self.path + path, body, **more)

    def option(self, **body: Any) -> Any:
        seen = self.call("POST", "/options", {"providerCode": "direct", **body})
        assert seen.status == 201, seen.body
        return seen.json["option"]

    def now(self, option: Any) -> Any:
        return self.call("GET", f"/options/{option['id']}").json["option"]

    def submit(self, option: Any, hash: str = INVENTED, chain_id: int = BASE) -> Seen:
        body = {"transactionHash": hash, "chainId": chain_id}
        return self.call("POST", f"/options/{option['id']}/submissions", body)

    def state(self, tag: str | None = None) -> Seen:
        return self.call("GET", "/state", headers={"If-None-Match": tag} if tag else None)

    @property
    def code(self) -> str:
        return str(self.payment["paymentUrl"].rpartition("/")[2])

    def exchange(self, code: str | None = None, **more: Any) -> Seen:
        path = f"/v2/public/payment-links/{self.code if code is None else code}/exchange"
        return self.checkout.api.call("POST", path, auth=None, **more)
