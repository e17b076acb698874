"""The world of the matrix: our app's sandbox, its production, and a stranger's sandbox; the ids
that its paths name and the bodies that its routes take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from payments_core.accounts.verification.simulated import SimulatedKyc
from payments_core.chains.port import AddressSpec
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import FixedClock, format_iso
from payments_core.credentials.keyring import KeyRing
from payments_core.public_url import LOCAL_URL
from payments_core.sandbox.clock import SandboxClock
from payments_core.service import PaymentsService
from payments_core.settings import Settings, WalletConnect
from payments_core.tenants.authorization import Authority, Requirement
from payments_core.tenants.operators import HashCost
from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from payments_core_http.browser_sessions import make_form_token
from tests.http.authorization.model import HAS_LEGACY, Row
from tests.http.authorization.populated_environment import (
    BASE,
    HOOK,
    OPTIMISM,
    ORIGIN,
    OWNER,
    PAYEE,
    USDC,
    PopulatedEnvironment,
)
from tests.http.authorization.rewinding import RewindableStorage
from tests.http.authorization.wire import Wire
from tests.http.payment_bodies import BANK_ACCOUNT
from tests.quote_payer import ask_to_settle
from tests.shipped import CHAINS
from tests.signers import EvmWallet
from tests.vault_owner import ask_for_module

Owner = Literal["neighbour", "production", "stranger", "nobody", "no shape"]
OWNERS: tuple[Owner, ...] = ("neighbour", "production", "stranger", "nobody", "no shape")

PREFIXES = {
    "accountId": "acct_", "appId": "app_", "clientSessionId": "client_session_",
    "deliveryId": "delivery_", "depositId": "deposit_", "environmentId": "env_", "eventId": "evt_",
    "mandateId": "mandate_", "optionId": "pay_option_", "paymentId": "payment_",
    "onrampBankAccountId": "onramp_account_", "requestId": "req_",
    "sessionId": "ses_", "vaultId": "vault_", "walletId": "wallet_", "webhookId": "webhook_",
    "code": "A" * 24, "quoteId": "quote_", "verificationId": "verification_",
    "heldTransferId": "job_", "keyId": "key_", "bankTransactionId": "bank_txn_",
}  # fmt: skip
"""What ids that never were begin with."""

_ROLES = {
    "POST /v2/payments/{paymentId}/cancel": "in",
    "POST /v2/payments/{paymentId}/refunds": "settled",
    "POST /v2/payments/{paymentId}/reconcile": "late",
    "POST /v2/sessions/{sessionId}/dispute": "settled",
    "POST /v2/sessions/{sessionId}/dispute/resolve": "flagged",
    "GET /v2/client/me/payments/{paymentId}": "in",
    "GET /dashboard/payments/{paymentId}/refund": "settled",
    "POST /dashboard/payments/{paymentId}/refund": "settled",
    "POST /dashboard/payments/{paymentId}/reconcile": "late",
    "POST /dashboard/payments/{paymentId}/cancel": "in",
}
"""Which of our Payments a row is about; the others are about the one that the buyer pays."""


SIGNER = EvmWallet(99)
"""Whose wallet the legacy interface links."""


CHEAP = HashCost(passes=1, memory_bytes=8_192)
"""Tests hash passwords as cheaply as the library allows."""


SETTINGS = Settings(
    public_url=LOCAL_URL,
    walletconnect=WalletConnect(
        "c0ffee", b"", "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    ),
)
"""With what has routes only where an operator has set it up; the script is empty."""


class Refusing:
    """The partner's side, which never takes a webhook, and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[WebhookRequest] = []

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        self.sent.append(request)
        return TransportResult(400, b"no")

    def close(self) -> None:
        """Nothing is open."""


class World:
    """Everything that the cells are about, in one storage that goes back after each."""

    def __init__(self) -> None:
        self.storage = RewindableStorage()
        self.system = FixedClock()
        self.clock = SandboxClock(self.storage, self.system)
        self.receiver = Refusing()
        ring = KeyRing.parse(KeyRing.generate())
        ports: dict[str, Any] = {"clock": self.clock, "transport": self.receiver}
        service = PaymentsService(self.storage, ring, settings=SETTINGS, **ports)
        chains = {id: SimulatedChain(id, service.parts.ports) for id in CHAINS}
        live = PaymentsService(
            self.storage,
            ring,
            chains=chains,
            kyc=SimulatedKyc(),
            settings=SETTINGS,
            **ports,
        )
        self.service = service
        self.wires = {"sandbox": Wire(service, "sandbox"), "production": Wire(live, "production")}
        self._chain = chains[BASE]
        app = service.tenants.create_app("Own", "own")
        self.own = self._populate(app, "sandbox", "own").furnish(ORIGIN)
        self.production = self._populate(app, "production", "live").furnish(ORIGIN)
        self.own.go_through(self.system.advance)
        self._passwords: dict[str, str] = {}
        self.session = ""
        self.own.let_pay_out()

    def add_stranger(self) -> None:
        """Another app comes to the deployment."""
        app = self.service.tenants.create_app("Stranger", "stranger")
        self.stranger = self._populate(app, "sandbox", "strange").furnish("https://strange.example")

    def _populate(self, app: Any, mode: str, name: str) -> PopulatedEnvironment:
        return PopulatedEnvironment(
            self.wires[mode], self._chain, app.id, app.environments[mode], name
        )

    def log_in(self, populated: PopulatedEnvironment) -> str:
        """The token of a new session of an environment's operator."""
        operators, id = self.service.operators, populated.environment_id
        self.service.parts.operators._cost = CHEAP
        if id not in self._passwords:
            self._passwords[id] = operators.create(id, populated.name).password
        mode = populated.wire.mode
        return self.service.operator_sessions.begin(
            populated.name, self._passwords[id], mode=mode
        ).token

    def operator_authority(self, token: str) -> Authority:
        """In whose name a session's writes run."""
        environment, session = self.service.operator_sessions.authenticate(token, mode="sandbox")
        return Authority(
            requirement=Requirement("operator"), environment=environment, operator=session,
            api_version=environment.api_version,
        )  # fmt: skip

    def end_session(self) -> None:
        """Our operator logs out."""
        self.service.operator_sessions.end(self.operator_authority(self.session))

    def fill_form(self, path: str, cookie: str, fields: Mapping[str, str]) -> dict[str, str]:
        """The form of a page as its browser sends it; nobody else can make its token."""
        token = make_form_token(self.service.parts.ports.key_ring, cookie, path)
        return {"formToken": token, "idempotencyKey": "cell", **fields}

    def payment(self, row: Row) -> Any:
        """Our Payment that the row is about."""
        return self.own.payments[_ROLES.get(row.name.replace("HEAD ", "GET "), "out")]

    def ids(self, row: Row) -> dict[str, str]:
        """Our ids for a row's path."""
        payment, ids = self.payment(row), dict(self.own.ids)
        ids["paymentId"] = payment["id"]
        ids["sessionId"] = payment.get("sessionId") or ids["sessionId"]
        if row.caller == "payer":
            ids["optionId"] = self.own.direct["out"]
        return ids

    def others(self, row: Row, owner: Owner) -> dict[str, str]:
        """Ids for a row's path that are somebody else's, or nobody's; some have no neighbour."""
        if owner == "nobody":
            return {name: prefix + "A" * 24 for name, prefix in PREFIXES.items()}
        if owner == "no shape":
            return dict.fromkeys(PREFIXES, "1")
        if owner == "neighbour":
            ids = dict(self.own.neighbours)
            if row.caller == "payer":
                ids["optionId"] = self.own.direct["in"]
            if row.name in _ROLES:
                ids["paymentId"] = self.own.payments["out"]["id"]
            return ids
        populated = self.production if owner == "production" else self.stranger
        ids = dict(populated.ids)
        if row.caller == "payer":
            ids["optionId"] = populated.direct["out"]
        if owner == "production":
            del ids["appId"]  # it is our own
        return ids

    def query(self, row: Row) -> str:
        """What the row's right request has behind its path."""
        make = None if row.writes and row.method != "HEAD" else QUERIES.get(f"GET {row.path}")
        return make(self) if make else ""

    def body(self, row: Row) -> Any:
        """What the row's right request brings."""
        make = BODIES.get(row.name)
        return make(self) if make else None


def filled(path: str, ids: Mapping[str, str]) -> str:
    """The path with ids for its names."""
    for name, id in ids.items():
        path = path.replace(f"{{{name}}}", id)
    return path


def _settings(world: World) -> Any:
    return {
        "enabled": True, "allowedOrigins": [ORIGIN], "version": 1,
        "allowedDestinations": [{"type": "wallet", "chainId": BASE, "address": PAYEE}],
    }  # fmt: skip


def _authorization(world: World) -> Any:
    return {
        "actionId": world.own.selected["execution"]["actionId"],
        "proof": {"type": "managed_authorization", "authorization": "approved"},
    }


def _to_seller(world: World) -> Any:
    destination = {"type": "account", "accountId": world.own.neighbours["accountId"]}
    return {"intent": "receive", "amount": "1.00", "destination": destination}


_CREDIT = {"chainId": BASE, "assetSymbol": "USDC", "amount": "1.00"}
_ACCOUNT = "/v2/accounts/{accountId}"
_HOOKS = "/v2/console/apps/{appId}/environments/{environmentId}/webhooks"


def module_request(world: World, account_id: str) -> Any:
    """What the owner of our buyer's vault signs, for any account."""
    own = world.own
    vault = world.service.chains[BASE].derive(
        AddressSpec(own.environment_id, "vault", own.ids["accountId"])
    )
    asked = ask_for_module(
        world.service.chains[BASE], own.environment_id, vault, (USDC.address,), OWNER
    )
    del asked["module"]
    return {"userId": account_id, **asked}


def settlement(world: World, quote_id: str) -> Any:
    """What our buyer signs for a quote, from its own vault."""
    own = world.own
    vault = world.service.chains[BASE].derive(
        AddressSpec(own.environment_id, "vault", own.ids["accountId"])
    )
    return ask_to_settle(OWNER, vault, quote_id, deadline=4_000_000_000)


_LEGACY_BODIES: Mapping[str, Callable[[World], Any]] = {
    "POST /sdk/v1/register": lambda w: {"username": "newcomer"},
    "POST /sdk/v1/update-username": lambda w: {
        "userId": w.own.ids["accountId"], "username": "buyer",
    },
    "POST /sdk/v1/add-address": lambda w: {
        "userId": w.own.ids["accountId"], "address": SIGNER.address, "chainType": "evm",
        "message": "Link my wallet.", "signature": SIGNER.sign("Link my wallet."),
    },
    "POST /sdk/v1/update-preferences": lambda w: {
        "userId": w.own.ids["accountId"], "preferredSettlementChain": OPTIMISM,
    },
    "POST /sdk/v1/generate": lambda w: {
        "userId": w.own.ids["accountId"], "chainId": OPTIMISM,
    },
    "POST /sdk/v1/get-balance": lambda w: {"userId": w.own.ids["accountId"]},
    "POST /sdk/v1/deploy-role-module": lambda w: module_request(w, w.own.ids["accountId"]),
    "POST /sdk/v1/quote": lambda w: {
        "amount": 1, "userId": w.own.ids["accountId"],
        "destinationUserId": w.own.neighbours["accountId"],
    },
    "POST /sdk/v1/get-deposit-address": lambda w: {
        "paymentAddress": w.own.neighbours["paymentAddress"], "rawAmount": "1000000",
        "sourceAddress": PAYEE, "sourceChainId": BASE, "sourceChainToken": "USDC",
    },
    "POST /sdk/v1/settle": lambda w: settlement(w, w.own.ids["quoteId"]),
    "POST /sdk/v1/verify-transfer": lambda w: {"quoteId": w.own.ids["quoteId"]},
}  # fmt: skip

BODIES: Mapping[str, Callable[[World], Any]] = {
    **(_LEGACY_BODIES if HAS_LEGACY else {}),
    "PUT /v2/partners/payment-settings": _settings,
    "POST /v2/client-sessions": lambda w: {"accountId": w.own.ids["accountId"]},
    "POST /v2/accounts": lambda w: {"externalUserId": "new", "subjectType": "individual"},
    f"PATCH {_ACCOUNT}": lambda w: {"email": "buyer@shop.example"},
    f"PUT {_ACCOUNT}/settlement-preferences": lambda w: {"chainId": BASE, "assetSymbol": "USDC"},
    f"PUT {_ACCOUNT}/handle": lambda w: {"username": "buyer"},
    f"POST {_ACCOUNT}/wallets/challenge": lambda w: {"address": PAYEE, "chainType": "evm"},
    f"POST {_ACCOUNT}/wallets": lambda w: {
        "challengeId": w.own.ids["challengeId"], "signature": w.own.signature,
    },
    f"POST {_ACCOUNT}/capability-activations": lambda w: {"capability": "us_bank_payout"},
    f"POST {_ACCOUNT}/bank-accounts": lambda w: BANK_ACCOUNT,
    f"POST {_ACCOUNT}/onramp-bank-accounts": lambda w: {
        "currency": "usd",
        "destination": {"type": "vault", "chainId": BASE, "assetSymbol": "USDC"},
    },
    f"POST {_ACCOUNT}/vaults": lambda w: {"chainId": BASE},
    f"PUT {_ACCOUNT}/vaults/{{vaultId}}/policy": lambda w: {"status": "active"},
    f"PUT {_ACCOUNT}/vaults/{{vaultId}}/yield-settings": lambda w: {"enabled": False},
    f"POST {_ACCOUNT}/mandates": lambda w: {
        "vaultId": w.own.ids["vaultId"], "amountPerPeriod": "1.00", "period": "day",
    },
    f"POST {_ACCOUNT}/deposit-addresses": lambda w: {"chainId": OPTIMISM},
    "POST /v2/payments": _to_seller,
    "POST /v2/payments/{paymentId}/refunds": lambda w: {"amount": "1.00"},
    "POST /v2/payments/{paymentId}/reconcile": lambda w: {"action": "accept"},
    "POST /v2/sessions/{sessionId}/dispute": lambda w: {"reason": "not delivered"},
    "POST /v2/sessions/{sessionId}/dispute/resolve": lambda w: {"resolution": "won"},
    "POST /v2/client/me/payments": lambda w: {"amount": "1.00"},
    "POST /v2/client/me/payments/{paymentId}/options/{optionId}/authorize": _authorization,
    "POST /v2/client/me/deposit-addresses": lambda w: {"chainId": OPTIMISM},
    "POST /v2/public/apps/{appId}/payments": lambda w: {
        "amount": "1.00", "destination": {"type": "wallet", "address": PAYEE},
    },
    "POST /v2/public/payments/{paymentId}/options": lambda w: {"providerCode": "direct"},
    "POST /pay/{code}/pairing-code": lambda w: {"uri": f"wc:{'ab' * 32}@2?relay-protocol=irn"},
    "POST /v2/public/payments/{paymentId}/options/{optionId}/submissions": lambda w: {
        "transactionHash": "0x" + "ab" * 32, "chainId": BASE,
    },
    f"POST {_HOOKS}": lambda w: {"url": f"{HOOK}/new"},
    "PATCH /v2/console/webhooks/{webhookId}": lambda w: {"description": "ours"},
    "POST /v2/console/webhooks/{webhookId}/recover": lambda w: {"since": format_iso(w.clock.now())},
    "POST /dashboard/payments/{paymentId}/refund": lambda w: {"amount": "1.00"},
    "POST /dashboard/payments/{paymentId}/reconcile": lambda w: {"action": "accept"},
    "POST /dashboard/verifications/{verificationId}": lambda w: {"status": "approved"},
    "POST /dashboard/screening/{heldTransferId}": lambda w: {"outcome": "clear"},
    "POST /dashboard/settings": lambda w: {"allowedMethods:direct": "on"},
    "POST /dashboard/keys/new": lambda w: {"name": "reports", "scopes:v2:kyc": "on"},
    "POST /dashboard/links/new": lambda w: {
        "amount": "1.00", "destination": PAYEE, "destination:by": "address",
    },
    "POST /dashboard/webhooks/new": lambda w: {"url": f"{HOOK}/new"},
    "POST /dashboard/webhooks/{webhookId}/change": lambda w: {"description": "ours"},
    "POST /dashboard/webhooks/{webhookId}/status": lambda w: {"status": "disabled"},
    "POST /dashboard/webhooks/{webhookId}/rotate": lambda w: {"overlap": "0"},
    "POST /dashboard/webhooks/{webhookId}/recover": lambda w: {
        "since": format_iso(w.clock.now()).removesuffix("Z")
    },
    "POST /v2/sandbox/accounts/{accountId}/fund": lambda w: _CREDIT,
    "POST /v2/sandbox/accounts/{accountId}/kyc": lambda w: {"status": "approved"},
    "POST /v2/sandbox/blocks": lambda w: {"chainId": BASE},
    "POST /v2/sandbox/clock": lambda w: {"advanceSeconds": 1},
    "POST /v2/sandbox/events": lambda w: {"name": "account.created"},
    "POST /v2/sandbox/failures": lambda w: {"dependency": "kyc"},
    "POST /v2/sandbox/reorgs": lambda w: {"chainId": BASE, "depth": 1},
    "POST /v2/sandbox/transfers": lambda w: {**_CREDIT, "to": PAYEE},
    "POST /v2/sandbox/bank-deposits": lambda w: {
        "onrampBankAccountId": w.own.ids["onrampBankAccountId"], "amount": "1.00", "rail": "wire",
    },
    "POST /v2/sandbox/payouts/{paymentId}": lambda w: {"outcome": "settle"},
    "POST /v2/sandbox/onramp-orders/{optionId}": lambda w: {"outcome": "pay"},
}  # fmt: skip
"""A body that succeeds for every row that takes one."""


def _user(world: World) -> str:
    return f"userId={world.own.ids['accountId']}"


def transaction_id(payments: Mapping[str, Any]) -> str:
    """The transaction that one of a tenant's Payments is."""
    return str(payments["out"]["id"]).replace("payment_", "tx_")


QUERIES: Mapping[str, Callable[[World], str]] = {
    "GET /sdk/v1/check-username": lambda w: "username=newcomer",
    "GET /sdk/v1/get-user": _user,
    "GET /sdk/v1/get-user-byaddress": lambda w: f"address={w.own.listed}",
    "GET /sdk/v1/resolve": lambda w: f"paymentAddress={w.own.neighbours['paymentAddress']}",
    "GET /sdk/v1/is-kyc-done": _user,
    "GET /sdk/v1/get-transaction": lambda w: f"transactionId={transaction_id(w.own.payments)}",
    "GET /sdk/v1/get-transactions": _user,
    "GET /sdk/v1/get-balances": lambda w: f"userAddress={PAYEE}",
    "GET /sdk/v1/verify-transfer": lambda w: f"quoteId={w.own.ids['quoteId']}",
    "GET /dashboard/payments/{paymentId}/reconcile": lambda w: "action=accept",
    "GET /dashboard/webhooks/{webhookId}/status": lambda w: "status=disabled",
    **dict.fromkeys(
        (f"GET /v2/reports/{name}" for name in ("balance", "transactions", "payouts")),
        lambda w: "from=2026-01-01&to=2026-02-01",
    ),
}
"""A query that succeeds for every row that needs one."""
