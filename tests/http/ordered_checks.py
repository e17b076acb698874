"""Good requests of several kinds, each in a world of its own, for the order of checks."""

from __future__ import annotations

from copy import copy
from decimal import Decimal
from typing import Any

from payments_core.clock import FixedClock
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.policies import RateLimits
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.app import create_app
from payments_core_http.routes import ROUTES
from payments_core_http.throttling import Throttle
from tests.http.api_harness import ROWS, Seen
from tests.http.checkout import BASE, Checkout
from tests.service.world import WALLET

PER_MINUTE = 100
NO_PAYMENT, NO_OPTION = "payment_" + "A" * 24, "pay_option_" + "A" * 24
SHOP = "https://shop.example"


class Case:
    """A request that would succeed, of one kind, in a world of its own."""

    method = "POST"

    def __init__(self) -> None:
        self.checkout = Checkout(MemoryStorage())
        self.api = self.checkout.api
        self.partition = self.api.partition
        self.key: str | None = "key"
        self.headers: dict[str, str] = {}
        self.environ: dict[str, Any] = {"REMOTE_ADDR": "203.0.113.7"}
        self.body: Any = None
        self.raw: bytes | None = None
        self.auth: str | None = None
        self.server_key = self.api.key
        self.target = ""
        self.set_up()

    def set_up(self) -> None:
        """Make what the request is about, and the request."""
        raise NotImplementedError  # each kind of request says how

    def again(self) -> Case:
        """The same request in the same world, with nothing counted yet."""
        case = copy(self)
        case.headers, case.environ = dict(self.headers), dict(self.environ)
        # What prepares calls the harness's other application, which has no limits.
        throttle = Throttle(
            MemoryLimiter(), RateLimits({"ip_minute": PER_MINUTE}), clock=FixedClock()
        )
        case.api.app = create_app(
            case.api.service,  # type: ignore[arg-type]
            mode="sandbox",
            throttle=throttle,
            routes=(*ROUTES, *ROWS),
        )
        return case

    def send(self, **changes: Any) -> Seen:
        """The request as it is now."""
        facts = {
            "auth": self.auth, "key": self.key, "headers": self.headers, "raw": self.raw,
            "environ": self.environ, "valid": False, **changes,
        }  # fmt: skip
        method, target = facts.pop("method", self.method), facts.pop("target", self.target)
        return self.api.call(method, target, self.body, **facts)

    def ask(self, method: str, target: str, body: Any = None, **more: Any) -> Any:
        """A call of the partner's that must succeed."""
        seen = self.api.call(method, target, body, **more)
        assert seen.status < 300, (method, target, seen.body)
        return seen.json if seen.body else None

    def count(self, times: int) -> None:
        """Send so many requests that count, and do nothing."""
        for _ in range(times):
            assert self.send(target=self.target + "?no=1").status >= 400

    def pause(self) -> None:
        """Pause the policy of the payer's vault."""
        vaults = f"/v2/accounts/{self.checkout.payer}/vaults"
        listed = self.ask("GET", vaults)["data"]
        vault = next(vault["id"] for vault in listed if vault["chainId"] == BASE)
        self.ask("PUT", f"{vaults}/{vault}/policy", {"status": "paused"})

    def use_key(self) -> None:
        """Use the request's key for something else."""
        self.ask("POST", "/v2/things", {"name": "a"}, key=self.key)

    def drain(self) -> None:
        """Leave less in the payer's vault than the request needs."""
        left, _ = self.checkout.available(self.checkout.payer)
        body = sent_to_wallet(self.checkout, str(Decimal(left) - 10))
        self.ask("POST", "/v2/payments", body, key="drain")

    def lack_scope(self) -> None:
        """Call with a key that is good for other things."""
        self.server_key, secret = self.api.service.tenants.create_key(
            self.partition, "restricted", "other", scopes=["v2:kyc"]
        )
        self.auth = self.api.basic(secret)

    def cancel(self) -> None:
        self.ask("POST", f"/v2/payments/{self.payment['id']}/cancel")

    def pay(self) -> None:
        self.payment = self.checkout.create().json


def sent_to_wallet(checkout: Checkout, amount: str) -> dict[str, Any]:
    """The body of a Payment out of the payer's vault."""
    return {
        "intent": "send",
        "amount": amount,
        "source": {"type": "vault", "accountId": checkout.payer},
        "destination": {"type": "wallet", "address": WALLET, "chainId": BASE},
    }


# Requests


class Create(Case):
    """`POST /v2/payments`: a server key, a required idempotency key, a body; money leaves."""

    def set_up(self) -> None:
        self.target, self.auth = "/v2/payments", self.api.basic()
        self.body = sent_to_wallet(self.checkout, "25")


class Refund(Case):
    """`POST /v2/payments/{paymentId}/refunds` of what came for a Payment that expired."""

    def set_up(self) -> None:
        self.pay()
        self.checkout.transfer(self.payment["escrow"]["address"], "10")
        self.checkout.advance(3_600)
        self.target = f"/v2/payments/{self.payment['id']}/refunds"
        self.auth, self.body = self.api.basic(), {"amount": "4"}

    def give_back(self) -> None:
        self.ask("POST", self.target, {}, key="all")
        self.checkout.advance(300)


class Authorize(Case):
    """`POST .../options/{optionId}/authorize`: a client token and the Payment's secret."""

    def set_up(self) -> None:
        self.pay()
        self.narrow = self.checkout.access_token("payer", "payments:read")
        option = self.checkout.option(self.payment)
        self.options = f"/v2/client/me/payments/{self.payment['id']}/options"
        self.target = f"{self.options}/{option['id']}/authorize"
        self.auth = f"Bearer {self.checkout.access}"
        self.headers = {"X-Service-Payment-Secret": self.payment["clientSecret"]}
        self.body = {
            "actionId": option["execution"]["actionId"],
            "proof": {"type": "managed_authorization", "authorization": "approved"},
        }

    def use_key(self) -> None:
        other = self.checkout.create(key="other").json
        assert self.checkout.pay(other, key=self.key).status == 201

    def lack_scope(self) -> None:
        self.auth = f"Bearer {self.narrow}"

    def supersede(self) -> None:
        self.checkout.option(self.payment)


class Submit(Case):
    """`POST .../options/{optionId}/submissions`: the Payment's secret alone, a key if one likes."""

    def set_up(self) -> None:
        self.pay()
        self.auth = f"Bearer {self.payment['clientSecret']}"
        self.options = f"/v2/public/payments/{self.payment['id']}/options"
        option = self.offer("no-key")
        self.target = f"{self.options}/{option['id']}/submissions"
        self.body = {"transactionHash": "0x" + "ab" * 32, "chainId": BASE}

    def offer(self, key: str) -> Any:
        body = {"providerCode": "direct"}
        return self.ask("POST", self.options, body, auth=self.auth, key=key)["option"]

    def use_key(self) -> None:
        assert self.key is not None
        self.offer(self.key)

    def fill(self) -> None:
        option = self.target.rpartition("/")[0]
        named = self.ask("GET", option, auth=self.auth)["option"]["transactionSubmissions"]
        for digit in "12345"[len(named) :]:
            body = {"transactionHash": "0x" + digit * 64, "chainId": BASE}
            self.ask("POST", self.target, body, auth=self.auth)


class State(Case):
    """`GET .../state`: the Payment's secret, a policy of its own, neither body nor key."""

    method = "GET"

    def set_up(self) -> None:
        self.pay()
        self.key = None
        self.auth = f"Bearer {self.payment['clientSecret']}"
        self.target = f"/v2/public/payments/{self.payment['id']}/state"

    def forget(self) -> None:
        """Ask for a Payment that there is not, with the secret that it would have."""
        self.auth = f"Bearer {self.api.payment_secret(NO_PAYMENT)}"
        self.target = self.target.replace(self.payment["id"], NO_PAYMENT)


class Creation(Case):
    """`POST /v2/public/apps/{appId}/payments`: no credential at all, and the browser's origin."""

    def set_up(self) -> None:
        allowed = [{"type": "wallet", "chainId": BASE, "address": WALLET}]
        settings = {"enabled": True, "allowedOrigins": [SHOP], "allowedDestinations": allowed}
        self.ask("PUT", "/v2/partners/payment-settings", {**settings, "maxAmount": "100"})
        self.target = f"/v2/public/apps/{self.api.app_row.id}/payments"
        self.headers = {"Origin": SHOP}
        self.body = {"amount": "25", "destination": {"type": "wallet", "address": WALLET}}

    def use_key(self) -> None:
        body = {**self.body, "amount": "26"}
        self.ask("POST", self.target, body, auth=None, key=self.key, headers=self.headers)
