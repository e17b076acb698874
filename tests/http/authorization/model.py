"""Who may call what, written down from the documents and apart from the implementation.

The contract's sections 2, 3, 5, 6, 8 and 11, and the interface's "Authentication". Nothing here
looks at a `Requirement`: a row that let in more than the documents say would differ from this.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

import attrs

from payments_core.contracts.versions import Versions
from payments_core_http.reference.error_advice import ADVICE

Caller = Literal[
    "key", "bearer key", "session token", "client", "payer", "shop", "app id", "sdk key",
    "operator", "nobody",
]  # fmt: skip
Second = Literal["none", "needed", "may be"]
"""Whether the Payment's secret goes beside a client's token."""

PRODUCT_OF_SCOPE = {
    "v2:accounts": "accounts",
    "v2:payments": "payments",
    "v2:deposit_addresses": "deposit_addresses",
    "v2:kyc": "kyc",
    "v2:vaults": "vaults",
    "v2:webhooks": "webhooks",
    "v2:console": "webhooks",
}
PRODUCTS_OF_PERMISSION = {
    "account:read": {"accounts"},
    "payments:read": {"payments"},
    "payments:write": {"payments"},
    "deposits:read": {"deposit_addresses"},
    "deposits:write": {"deposit_addresses"},
    "vault_payments:write": {"payments", "vaults"},
}
CHECKOUT = frozenset({"payments", "public_checkout"})
"""A stranger's Payment is a Payment, and public checkout is a product of its own."""


@attrs.frozen(kw_only=True)
class Row:
    """A route as the documents have it.

    `ok` is what the right credential's request is answered with, and `code` the error's, where
    there is nothing that could succeed. `sandbox` rows are for deployments of a single app.
    `outside` rows act on the chain or the clock, which no transaction spans. `names` is for those
    whose body or query names an object, and `grants` is the permission that the body gives away.
    `legacy` has the products of v1, which has no scopes. `of` are products that no scope stands
    for. An open row that `leads_on` sends who has an operator's session to its page. A row that is
    `entered` leaves an entry in the audit trail where it refuses the right credential's request.
    """

    method: str
    path: str
    caller: Caller
    scopes: frozenset[str] = frozenset()
    permissions: frozenset[str] = frozenset()
    standard: bool = False
    second: Second = "none"
    sandbox: bool = False
    outside: bool = False
    names: bool = False
    legacy: frozenset[str] = frozenset()
    ok: int = 200
    code: str | None = None
    grants: str | None = None
    of: frozenset[str] = frozenset()
    leads_on: bool = False
    entered: bool = False

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_absent(self) -> bool:
        """Nothing is there yet that an id could be looked for in."""
        return self.code == "capability_not_active"

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def is_open(self) -> bool:
        """Whether it asks for no credential."""
        return self.caller in ("shop", "nobody")

    @property
    def products(self) -> frozenset[str]:
        """What must be enabled for every caller."""
        if self.caller in ("payer", "shop"):
            return CHECKOUT
        if self.path.startswith(("/v2/public/payment-links/", "/pay/{code}")):
            return CHECKOUT
        granted = {PRODUCT_OF_SCOPE[scope] for scope in self.scopes} | self.legacy
        permissions = [*self.permissions, *([self.grants] if self.grants else [])]
        return self.of | frozenset(
            granted.union(*(PRODUCTS_OF_PERMISSION[name] for name in permissions))
        )

    @property
    def challenge(self) -> str | None:
        """The scheme that a 401 asks for: never Basic where browsers call."""
        return None if self.is_open else "Basic" if self.caller == "key" else "Bearer"


def _keyed(method: str, path: str, scopes: str, ok: int = 200, **more: object) -> Row:
    facts = {"caller": "key", "scopes": frozenset(scopes.split()), **more}
    return Row(method=method, path=path, ok=ok, **facts)  # type: ignore[arg-type]


def _standard(method: str, path: str, ok: int = 200, **more: object) -> Row:
    return _keyed(method, path, "", ok, standard=True, **more)


def _sandbox(method: str, path: str, outside: bool = False, **more: object) -> Row:
    return _standard(method, f"/v2/sandbox{path}", sandbox=True, outside=outside, **more)


def _legacy(method: str, path: str, products: str = "accounts", **more: object) -> Row:
    """With a secret: a standard key's by default."""
    whole = frozenset({"legacy_sdk", *products.split()})
    facts = {"caller": "key", "standard": True, "legacy": whole, "names": True, **more}
    return Row(method=method, path=f"/sdk/v1/{path}", **facts)  # type: ignore[arg-type]


def _anybody(method: str, path: str, products: str = "accounts", **more: object) -> Row:
    return _legacy(method, path, products, **{"caller": "app id", "standard": False, **more})


def _client(method: str, path: str, permission: str, ok: int = 200, second: Second = "none") -> Row:
    return Row(
        method=method, path=f"/v2/client/me{path}", caller="client", ok=ok, second=second,
        permissions=frozenset({permission}),
    )  # fmt: skip


def _operator(
    method: str,
    path: str,
    scopes: str = "",
    ok: int | None = None,
    outside: bool = False,
    code: str | None = None,
    entered: bool = False,
) -> Row:
    """A page, and a form that leads to one."""
    return Row(
        method=method, path=f"/dashboard{path}", caller="operator",
        ok=ok or (200 if method == "GET" else 303), scopes=frozenset(scopes.split()),
        outside=outside, code=code, entered=entered,
    )  # fmt: skip


def _payer(method: str, path: str, ok: int = 200) -> Row:
    whole = f"/v2/public/payments/{{paymentId}}{path}"
    return Row(method=method, path=whole, caller="payer", ok=ok)


_ACCOUNTS, _PAYMENTS, _VAULTS = "v2:accounts", "v2:payments", "v2:vaults"
_DEPOSITS, _KYC, _CONSOLE = "v2:deposit_addresses", "v2:kyc", "v2:webhooks v2:console"
_PAYOUTS = frozenset({"bank_payouts"})
_FUNDING = frozenset({"bank_funding"})
_ACCOUNT = "/v2/accounts/{accountId}"
_ONRAMP = f"{_ACCOUNT}/onramp-bank-accounts/{{onrampBankAccountId}}"
_PAYMENT = "/v2/payments/{paymentId}"
_HOOK = "/v2/console/webhooks/{webhookId}"
_STORY, _ENDPOINT = "/payments/{paymentId}", "/webhooks/{webhookId}"
_OPTIONS = "/payments/{paymentId}/options"

_TABLE: tuple[Row, ...] = (
    Row(method="GET", path="/healthz", caller="nobody"),
    Row(method="GET", path="/readyz", caller="nobody"),
    Row(method="GET", path="/openapi.json", caller="nobody"),
    *(
        Row(method="GET", path=f"/openapi-{date}.json", caller="nobody")
        for date in Versions().supported
    ),
    Row(method="GET", path="/", caller="nobody"),
    Row(method="GET", path="/docs", caller="nobody"),
    Row(method="GET", path="/docs/reference.css", caller="nobody"),
    Row(method="GET", path="/docs/reference.js", caller="nobody"),
    Row(method="GET", path="/docs/errors", caller="nobody"),
    *(Row(method="GET", path=f"/docs/errors/{code}", caller="nobody") for code in ADVICE),
    Row(method="GET", path="/pay/{code}", caller="nobody"),
    Row(method="POST", path="/pay/{code}", caller="nobody", ok=303),
    Row(method="POST", path="/pay/{code}/pairing-code", caller="nobody"),
    Row(method="GET", path="/pay/assets/walletconnect.js", caller="nobody"),
    Row(method="GET", path="/pay/assets/pairing.js", caller="nobody"),
    Row(method="GET", path="/pay/assets/accent.css", caller="nobody"),
    Row(method="GET", path="/checkout/element.js", caller="nobody"),
    Row(method="GET", path="/assets/style.css", caller="nobody"),
    Row(method="GET", path="/assets/copy.js", caller="nobody"),
    Row(method="GET", path="/pay/assets/checkout.js", caller="nobody"),
    Row(method="GET", path="/pay/assets/wallet.js", caller="nobody"),
    # The operator. A log-in without the token of its form is refused to everybody.
    Row(method="GET", path="/dashboard/login", caller="nobody", leads_on=True),
    Row(method="POST", path="/dashboard/login", caller="nobody", ok=403, code="form_refused"),
    _operator("GET", "", ok=303),
    _operator("POST", "/logout", outside=True),
    _operator("GET", "/inbox"),
    _operator("GET", "/search"),
    _operator("GET", "/settings"),
    _operator("POST", "/settings"),
    _operator("GET", "/keys"),
    _operator("GET", "/keys/new"),
    _operator("POST", "/keys/new", ok=200),
    _operator("GET", "/keys/{keyId}/revoke"),
    _operator("POST", "/keys/{keyId}/revoke"),
    _operator("GET", "/links", _PAYMENTS),
    _operator("GET", "/links/new", _PAYMENTS),
    _operator("POST", "/links/new", _PAYMENTS),
    _operator("GET", "/links/{paymentId}", _PAYMENTS),
    _operator("GET", "/audit"),
    _operator("GET", "/security"),
    # A wrong password, and no second factor.
    _operator(
        "POST", "/security/begin", ok=400, code="validation_error", outside=True, entered=True
    ),
    *(
        _operator("POST", f"/security/{what}", ok=409, code="invalid_state", outside=True)
        for what in ("confirm", "recovery-codes", "turn-off")
    ),
    _operator("GET", "/payments", _PAYMENTS),
    _operator("GET", "/payments/export", _PAYMENTS),
    _operator("GET", "/links/export", _PAYMENTS),
    _operator("GET", "/accounts", _ACCOUNTS),
    _operator("GET", "/accounts/export", _ACCOUNTS),
    _operator("GET", "/accounts/{accountId}", _ACCOUNTS),
    _operator("GET", "/accounts/{accountId}/deposits", f"{_ACCOUNTS} {_DEPOSITS}"),
    _operator("GET", "/accounts/{accountId}/deposits/export", f"{_ACCOUNTS} {_DEPOSITS}"),
    _operator("GET", "/payouts", _PAYMENTS),
    _operator("GET", "/payouts/export", _PAYMENTS),
    _operator("GET", "/payouts/{paymentId}", _PAYMENTS, ok=303),  # it has none
    _operator("GET", "/onramps", _ACCOUNTS),
    _operator("GET", "/onramps/export", _ACCOUNTS),
    _operator("GET", "/onramps/{bankTransactionId}", _ACCOUNTS),
    _operator("GET", "/activity", _PAYMENTS),
    _operator("GET", _STORY, _PAYMENTS),
    _operator("GET", f"{_STORY}/refund", _PAYMENTS),
    _operator("POST", f"{_STORY}/refund", _PAYMENTS),
    _operator("GET", f"{_STORY}/reconcile", _PAYMENTS),
    _operator("POST", f"{_STORY}/reconcile", _PAYMENTS),
    _operator("GET", f"{_STORY}/cancel", _PAYMENTS),
    _operator("POST", f"{_STORY}/cancel", _PAYMENTS),
    _operator("GET", "/verifications", _KYC),
    _operator("GET", "/verifications/{verificationId}", _KYC),
    _operator("POST", "/verifications/{verificationId}", _KYC),
    _operator("GET", "/screening", _PAYMENTS),
    _operator("GET", "/screening/{heldTransferId}", _PAYMENTS),
    _operator("POST", "/screening/{heldTransferId}", _PAYMENTS),
    _operator("GET", "/webhooks", _CONSOLE),
    _operator("GET", "/webhooks/new", _CONSOLE),
    _operator("POST", "/webhooks/new", _CONSOLE, ok=200),
    _operator("GET", f"{_ENDPOINT}/change", _CONSOLE),
    _operator("POST", f"{_ENDPOINT}/change", _CONSOLE),
    _operator("GET", f"{_ENDPOINT}/status", _CONSOLE),
    _operator("POST", f"{_ENDPOINT}/status", _CONSOLE),
    _operator("GET", _ENDPOINT, _CONSOLE),
    _operator("GET", f"{_ENDPOINT}/export", _CONSOLE),
    _operator("GET", f"{_ENDPOINT}/health", _CONSOLE),
    _operator("POST", f"{_ENDPOINT}/test", _CONSOLE),
    _operator("GET", f"{_ENDPOINT}/rotate", _CONSOLE),
    _operator("POST", f"{_ENDPOINT}/rotate", _CONSOLE, ok=200),
    _operator("GET", f"{_ENDPOINT}/recover", _CONSOLE),
    _operator("POST", f"{_ENDPOINT}/recover", _CONSOLE),
    _operator("GET", f"{_ENDPOINT}/deliveries/{{deliveryId}}", _CONSOLE),
    _operator("POST", f"{_ENDPOINT}/deliveries/{{deliveryId}}/retry", _CONSOLE),
    _operator("GET", "/events", _CONSOLE),
    _operator("GET", "/events/export", _CONSOLE),
    _operator("GET", "/events/{eventId}", _CONSOLE),
    _operator("POST", "/events/{eventId}/resend", _CONSOLE),
    _operator("GET", "/requests"),
    _operator("GET", "/requests/export"),
    _operator("GET", "/requests/{requestId}"),
    # The partner.
    _keyed("GET", "/v2/partners/config", ""),
    _standard("GET", "/v2/partners/payment-settings"),
    _standard("PUT", "/v2/partners/payment-settings"),
    _standard("POST", "/v2/client-sessions", 201, names=True, grants="account:read"),
    _standard("DELETE", "/v2/client-sessions/{clientSessionId}"),
    # Accounts.
    _keyed("POST", "/v2/accounts", _ACCOUNTS, 201),
    _keyed("GET", "/v2/accounts", _ACCOUNTS),
    _keyed("GET", _ACCOUNT, _ACCOUNTS),
    _keyed("PATCH", _ACCOUNT, _ACCOUNTS),
    _keyed("PUT", f"{_ACCOUNT}/settlement-preferences", _ACCOUNTS),
    _keyed("PUT", f"{_ACCOUNT}/handle", _ACCOUNTS),
    _keyed("GET", f"{_ACCOUNT}/capabilities", _ACCOUNTS),
    _keyed("GET", f"{_ACCOUNT}/balances", _ACCOUNTS),
    _keyed("POST", f"{_ACCOUNT}/wallets/challenge", _ACCOUNTS, 201),
    _keyed("POST", f"{_ACCOUNT}/wallets", _ACCOUNTS, 201, names=True),
    _keyed("GET", f"{_ACCOUNT}/wallets", _ACCOUNTS),
    _keyed("DELETE", f"{_ACCOUNT}/wallets/{{walletId}}", _ACCOUNTS),
    _keyed("POST", f"{_ACCOUNT}/verifications", _KYC, 201),
    _keyed("GET", f"{_ACCOUNT}/verifications", _KYC),
    # Bank accounts.
    _keyed("POST", f"{_ACCOUNT}/capability-activations", _ACCOUNTS, 202, of=_PAYOUTS),
    _keyed("GET", f"{_ACCOUNT}/bank-account-requirements", _ACCOUNTS),
    _keyed("POST", f"{_ACCOUNT}/bank-accounts", _ACCOUNTS, 201, of=_PAYOUTS),
    _keyed("GET", f"{_ACCOUNT}/bank-accounts", _ACCOUNTS),
    # On-ramps.
    _keyed("GET", f"{_ACCOUNT}/onramp-bank-account-requirements", _ACCOUNTS),
    _keyed("POST", f"{_ACCOUNT}/onramp-bank-accounts", _ACCOUNTS, 201, of=_FUNDING),
    _keyed("GET", f"{_ACCOUNT}/onramp-bank-accounts", _ACCOUNTS),
    _keyed("GET", f"{_ONRAMP}/deposit-instructions", _ACCOUNTS),
    _keyed("GET", f"{_ONRAMP}/transactions", _ACCOUNTS),
    # Vaults.
    _keyed("GET", f"{_ACCOUNT}/vaults", _VAULTS),
    _keyed("POST", f"{_ACCOUNT}/vaults", _VAULTS),  # it has one already: 200
    _keyed("GET", f"{_ACCOUNT}/vaults/{{vaultId}}/policy", _VAULTS),
    _keyed("PUT", f"{_ACCOUNT}/vaults/{{vaultId}}/policy", _VAULTS),
    _keyed("GET", f"{_ACCOUNT}/vaults/{{vaultId}}/yield-settings", _VAULTS),
    _keyed("PUT", f"{_ACCOUNT}/vaults/{{vaultId}}/yield-settings", _VAULTS),
    _keyed("GET", f"{_ACCOUNT}/mandates", _VAULTS),
    _keyed("POST", f"{_ACCOUNT}/mandates", _VAULTS, 201, names=True),
    _keyed("DELETE", f"{_ACCOUNT}/mandates/{{mandateId}}", _VAULTS),
    # Deposits.
    _keyed("POST", f"{_ACCOUNT}/deposit-addresses", _DEPOSITS, 201),
    _keyed("GET", f"{_ACCOUNT}/deposit-addresses", _DEPOSITS),
    _keyed("POST", f"{_ACCOUNT}/deposit-addresses/check", _DEPOSITS),
    _keyed("POST", f"{_ACCOUNT}/deposits/{{depositId}}/return", _DEPOSITS),
    _keyed("GET", f"{_ACCOUNT}/deposits", _DEPOSITS),
    # Payments.
    _keyed("POST", "/v2/payments", _PAYMENTS, 201, names=True),
    _keyed("GET", "/v2/payments", _PAYMENTS),
    _keyed("GET", _PAYMENT, _PAYMENTS),
    _keyed("POST", f"{_PAYMENT}/cancel", _PAYMENTS),
    _keyed("POST", f"{_PAYMENT}/refunds", _PAYMENTS, 201),
    _keyed("GET", f"{_PAYMENT}/refunds", _PAYMENTS),
    _keyed("POST", f"{_PAYMENT}/reconcile", _PAYMENTS),
    _keyed("GET", f"{_PAYMENT}/receipts", _PAYMENTS),
    _keyed("GET", "/v2/reports/balance", _PAYMENTS),
    _keyed("GET", "/v2/reports/transactions", _PAYMENTS),
    _keyed("GET", "/v2/reports/payouts", _PAYMENTS),
    _keyed("GET", "/v2/sessions/{sessionId}", _PAYMENTS),
    _keyed("POST", "/v2/sessions/{sessionId}/dispute", _PAYMENTS, caller="bearer key"),
    _keyed("POST", "/v2/sessions/{sessionId}/dispute/resolve", _PAYMENTS),
    # The account's own browser.
    Row(method="POST", path="/v2/client/auth/exchange", caller="session token"),
    _client("GET", "", "account:read"),
    _client("GET", "/payments", "payments:read"),
    _client("POST", "/payments", "payments:write", 201),
    _client("GET", "/payments/{paymentId}", "payments:read", second="may be"),
    _client("POST", _OPTIONS, "vault_payments:write", 201, "needed"),
    _client("GET", _OPTIONS, "payments:read", second="needed"),
    _client("GET", f"{_OPTIONS}/{{optionId}}", "payments:read", second="needed"),
    _client("POST", f"{_OPTIONS}/{{optionId}}/refresh", "vault_payments:write", second="needed"),
    _client("POST", f"{_OPTIONS}/{{optionId}}/authorize", "vault_payments:write", second="needed"),
    _client("POST", "/deposit-addresses", "deposits:write", 201),
    _client("GET", "/deposit-addresses", "deposits:read"),
    # Public checkout.
    Row(method="POST", path="/v2/public/apps/{appId}/payments", caller="shop", ok=201),
    Row(method="POST", path="/v2/public/payment-links/{code}/exchange", caller="nobody"),
    _payer("GET", ""),
    _payer("GET", "/state"),
    _payer("GET", "/methods"),
    _payer("POST", "/options", 201),
    _payer("GET", "/options/{optionId}"),
    _payer("POST", "/options/{optionId}/select"),
    _payer("POST", "/options/{optionId}/refresh"),
    _payer("POST", "/options/{optionId}/submissions", 202),
    # The webhook console.
    _keyed(
        "POST", "/v2/console/apps/{appId}/environments/{environmentId}/webhooks", _CONSOLE, 201
    ),
    _keyed("GET", "/v2/console/webhooks", _CONSOLE),
    _keyed("GET", _HOOK, _CONSOLE),
    _keyed("PATCH", _HOOK, _CONSOLE),
    _keyed("POST", f"{_HOOK}/rotate-secret", _CONSOLE),
    _keyed("GET", f"{_HOOK}/deliveries", _CONSOLE),
    _keyed("POST", f"{_HOOK}/deliveries/{{deliveryId}}/retry", _CONSOLE),
    _keyed("POST", f"{_HOOK}/test", _CONSOLE, 201),
    _keyed("POST", f"{_HOOK}/recover", _CONSOLE, 202),
    _keyed("GET", "/v2/console/events", _CONSOLE),
    _keyed("GET", "/v2/console/events/{eventId}", _CONSOLE),
    _keyed("POST", "/v2/console/events/{eventId}/resend", _CONSOLE),
    _keyed("GET", "/v2/console/requests", _CONSOLE),
    _keyed("GET", "/v2/console/audit", _CONSOLE),
    # The sandbox.
    _sandbox("GET", ""),
    _sandbox("POST", "/accounts/{accountId}/fund", outside=True),
    _sandbox("POST", "/accounts/{accountId}/kyc"),
    _sandbox("POST", "/blocks", outside=True),
    _sandbox("POST", "/clock", outside=True),
    _sandbox("POST", "/events"),
    _sandbox("POST", "/failures", outside=True),
    _sandbox("POST", "/reorgs", outside=True),
    _sandbox("POST", "/run", outside=True),
    _sandbox("POST", "/transfers", outside=True),
    _sandbox("POST", "/bank-deposits", outside=True),
    _sandbox("POST", "/payouts/{paymentId}", outside=True, ok=409, code="invalid_state"),
    _sandbox("POST", "/onramp-orders/{optionId}", outside=True, ok=409, code="invalid_state"),
)  # fmt: skip

_LEGACY: tuple[Row, ...] = (
    _legacy("POST", "register", names=False),
    _anybody("GET", "check-username", names=False),
    _legacy("POST", "update-username"),
    _legacy("POST", "add-address"),
    _legacy("POST", "update-preferences"),
    _anybody("POST", "generate", "deposit_addresses"),
    _legacy("GET", "get-user"),
    _legacy("GET", "get-user-byaddress"),
    _anybody("GET", "resolve"),
    _anybody("GET", "is-kyc-done"),
    _legacy("POST", "get-balance", outside=True),
    _anybody("GET", "get-balances", names=False),
    _anybody("POST", "quote", "payments"),
    _anybody("POST", "get-deposit-address", "payments", caller="sdk key"),
    _anybody("POST", "verify-transfer", "payments", outside=True),
    _anybody("GET", "verify-transfer", "payments"),
    _anybody("POST", "settle", "payments vaults"),
    Row(method="GET", path="/sdk/v1/supported-chains", caller="nobody"),
    _legacy("GET", "get-transaction", "accounts payments"),
    _legacy("GET", "get-transactions", "accounts payments"),
    _legacy("POST", "deploy-role-module", "accounts vaults"),
)  # fmt: skip

HAS_LEGACY = find_spec("payments_core_http.v1") is not None
"""The legacy interface can be removed, with its folder and its import."""

TABLE = (*_TABLE, *_LEGACY) if HAS_LEGACY else _TABLE


@attrs.frozen(kw_only=True)
class Facts:
    """What a credential is, and in what state. `kind` is what was really made.

    `second` is the Payment's secret beside a client's token, where the row takes one; the one
    of the Payment in the path unless told otherwise. `leak` is where a secret stands that
    belongs into no URL and no body. `tenant` and `account` are whose it is.
    """

    kind: Literal[
        "none", "app id", "key", "publishable", "session token", "access token", "payment secret",
        "operator's session",
    ]  # fmt: skip
    presented: Literal["as told", "otherwise"] = "as told"
    genuine: bool = True
    restricted: bool = False
    scopes: frozenset[str] = frozenset()
    permissions: frozenset[str] = frozenset()
    tenant: Literal["own", "stranger"] = "own"
    account: Literal["own", "neighbour"] = "own"
    mode: str = "sandbox"
    state: Literal["live", "revoked", "expired", "used"] = "live"
    issuer: Literal["live", "revoked", "expired"] = "live"
    second: Literal["right", "none", "forged", "another Payment's", "elsewhere"] = "right"
    origin: Literal["allowed", "none", "another"] = "allowed"
    leak: Literal["", "query", "body"] = ""


@attrs.frozen(kw_only=True)
class Place:
    """Where the call goes: a process of one mode, and whether its deployment has one app."""

    mode: str = "sandbox"
    alone: bool = False


@attrs.frozen
class Expected:
    """A status and the error's code; `status` 0 is whatever is past all these checks."""

    status: int
    code: str | None = None

    @property
    def is_refused(self) -> bool:
        return self.status in (400, 401, 403, 404)


UNAUTHORIZED = Expected(401, "unauthorized")
EXPIRED = Expected(401, "client_token_expired")
NOT_PERMITTED = Expected(403, "insufficient_permissions")
NOT_ENTITLED = Expected(403, "entitlement_required")
MISMATCH = Expected(403, "credential_mismatch")
WRONG_ORIGIN = Expected(403, "origin_not_allowed")
LEAKED = Expected(400, "validation_error")
MISSING = Expected(404, "not_found")
PAST = Expected(0)

_KIND = {
    "key": "key",
    "bearer key": "key",
    "session token": "session token",
    "client": "access token",
    "payer": "payment secret",
    "app id": "app id",
    "sdk key": "publishable",
    "operator": "operator's session",
}


def expected(row: Row, facts: Facts, place: Place, off: frozenset[str] = frozenset()) -> Expected:
    """The answer to this credential on the row, with ids of our own app's sandbox in the path,
    while the products `off` are not enabled; the first check that fails answers."""
    refusal = _credential(row, facts, place) or _permission(row, facts)
    if refusal is not None:
        return refusal
    if row.caller == "nobody":  # which Payment a link is of, and so whose, comes after the headers
        refusal = _leak(row, facts) or _product(row, off)
    else:
        refusal = _product(row, off) or _origin(row, facts) or _leak(row, facts)
    if refusal is not None:
        return refusal
    if row.sandbox and (place.mode != "sandbox" or not place.alone):
        return MISSING
    if row.caller == "shop":  # whose app id names its environment in either mode
        return Expected(row.ok)
    is_elsewhere = facts.tenant == "stranger" or place.mode != "sandbox"
    if row.caller == "nobody":
        if row.leads_on and _credential(attrs.evolve(row, caller="operator"), facts, place) is None:
            return Expected(303)
        is_there = place.mode == "sandbox" or "{" not in row.path
        return Expected(row.ok, row.code) if is_there else MISSING
    if is_elsewhere:
        return MISSING if "{" in row.path or row.names else PAST
    if facts.account == "neighbour" and "{optionId}" in row.path:
        return MISSING  # each payer has options of its own
    return Expected(row.ok, row.code)


def _credential(row: Row, facts: Facts, place: Place) -> Expected | None:
    if row.is_open:
        return None
    if row.caller == "app id":  # which names an environment in either mode
        return None if facts.kind == "app id" and facts.genuine else UNAUTHORIZED
    is_right = facts.kind == _KIND[row.caller] and facts.presented == "as told" and facts.genuine
    if not is_right or facts.mode != place.mode:
        return UNAUTHORIZED
    if facts.state in ("revoked", "used") or facts.issuer == "revoked":
        return UNAUTHORIZED
    if facts.state == "expired":
        return EXPIRED if facts.kind in ("session token", "access token") else UNAUTHORIZED
    if row.caller == "payer" and facts.second != "right":
        return UNAUTHORIZED
    if row.second == "none" or (row.second == "may be" and facts.second == "none"):
        return None
    if facts.second == "elsewhere" or (facts.tenant == "stranger" and facts.second == "right"):
        return MISMATCH
    return None if facts.second == "right" else UNAUTHORIZED


def _permission(row: Row, facts: Facts) -> Expected | None:
    if row.caller in ("key", "bearer key"):
        lacks = facts.restricted and (row.standard or not row.scopes <= facts.scopes)
        return NOT_PERMITTED if lacks else None
    if row.caller == "client" and not row.permissions <= facts.permissions:
        return NOT_PERMITTED
    return None


def _product(row: Row, off: frozenset[str]) -> Expected | None:
    return NOT_ENTITLED if row.products & off else None


def _origin(row: Row, facts: Facts) -> Expected | None:
    return WRONG_ORIGIN if row.caller == "shop" and facts.origin != "allowed" else None


def _leak(row: Row, facts: Facts) -> Expected | None:
    """What a GET has in its body is read by nobody."""
    leaks = facts.leak == "query" or (facts.leak == "body" and row.writes)
    return LEAKED if leaks else None


def permitted(permissions: frozenset[str], off: frozenset[str]) -> frozenset[str]:
    """What of a session's permissions counts while the products `off` are not enabled."""
    return frozenset(p for p in permissions if not PRODUCTS_OF_PERMISSION[p] & off)
