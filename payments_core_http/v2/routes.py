"""The whole of v2: one row per route, by resource."""

from __future__ import annotations

from payments_core import errors
from payments_core.credentials.authorization import Requirement
from payments_core.errors import ClientTokenExpired, NotFound
from payments_core_http.query import PageQuery
from payments_core_http.routing import Route
from payments_core_http.v2 import (
    accounts,
    bodies,
    client_sessions,
    console,
    options,
    partners,
    payments,
    queries,
    sandbox,
)

ANY_KEY = Requirement("server")
STANDARD_KEY = Requirement("server", standard_only=True)
ACCOUNTS_KEY = Requirement("server", scopes=("v2:accounts",))
PAYMENTS_KEY = Requirement("server", scopes=("v2:payments",))
CONSOLE_KEY = Requirement("server", scopes=("v2:webhooks", "v2:console"))
PAYER_READS = Requirement("client", permissions=("payments:read",))
PAYER_PAYS = Requirement("client", permissions=("vault_payments:write",))

_NEW_PAYMENT = (
    NotFound, errors.AmountOutOfRange, errors.UnsupportedChain, errors.UnsupportedAsset,
    errors.DestinationNotAllowed,
)  # fmt: skip
_PAYER = (NotFound, errors.PaymentExpired, errors.InvalidState, errors.AccountSuspended)
_ACTION = (
    errors.OptionSuperseded, errors.OptionExpired, errors.ActionAlreadyUsed, errors.ActionInvalid,
    errors.ActionExpired,
)  # fmt: skip
_MONEY = (errors.PolicyInactive, errors.InsufficientBalance, errors.DependencyFailed)

PARTNERS = (
    Route(
        "GET", "/v2/partners/config", partners.config, needs=ANY_KEY,
        summary="What this credential is, and what it reaches.",
    ),
)  # fmt: skip

CLIENT_SESSIONS = (
    Route(
        "POST", "/v2/client-sessions", client_sessions.create, needs=STANDARD_KEY,
        body=bodies.CreateClientSession, success=201, errors=(NotFound,),
        summary="Give a browser or mobile app access to one account.",
    ),
    Route(
        "DELETE", "/v2/client-sessions/{clientSessionId}", client_sessions.revoke,
        needs=STANDARD_KEY, errors=(NotFound,),
        summary="End a client session and its tokens at once.",
    ),
    Route(
        "POST", "/v2/client/auth/exchange", client_sessions.exchange, needs=None,
        credential="session_token", errors=(ClientTokenExpired,),
        summary="Exchange a session token, once, for an access token.",
    ),
)  # fmt: skip

ACCOUNTS = (
    Route(
        "POST", "/v2/accounts", accounts.create, needs=ACCOUNTS_KEY,
        body=bodies.CreateAccount, success=201,
        errors=(
            errors.Conflicting, errors.UsernameTaken, errors.UnsupportedChain,
            errors.UnsupportedAsset,
        ),
        summary="Create an account, with a vault on every chain.",
    ),
    Route(
        "GET", "/v2/accounts", accounts.list_accounts, needs=ACCOUNTS_KEY,
        query=queries.Accounts,
        summary="List accounts, newest first.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}", accounts.read, needs=ACCOUNTS_KEY, errors=(NotFound,),
        summary="Read an account.",
    ),
    Route(
        "PATCH", "/v2/accounts/{accountId}", accounts.change, needs=ACCOUNTS_KEY,
        body=bodies.ChangeAccount, errors=(NotFound, errors.InvalidState),
        summary="Change an account's email, metadata or status.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/balances", accounts.balances, needs=ACCOUNTS_KEY,
        errors=(NotFound, errors.DependencyFailed),
        summary="What the account's vaults hold, at the newest final block.",
    ),
)  # fmt: skip

PAYMENTS = (
    Route(
        "POST", "/v2/payments", payments.create, needs=PAYMENTS_KEY,
        body=bodies.CreatePayment, success=201, idempotency="required", errors=_NEW_PAYMENT,
        summary="Create a receive Payment.",
    ),
    Route(
        "GET", "/v2/payments", payments.list_payments, needs=PAYMENTS_KEY,
        query=queries.Payments,
        summary="List Payments, newest first.",
    ),
    Route(
        "GET", "/v2/payments/{paymentId}", payments.read, needs=PAYMENTS_KEY, errors=(NotFound,),
        summary="Read a Payment.",
    ),
    Route(
        "POST", "/v2/payments/{paymentId}/cancel", payments.cancel, needs=PAYMENTS_KEY,
        errors=(NotFound, errors.InvalidState),
        summary="Cancel a Payment before funds move.",
    ),
)  # fmt: skip

PAYER = (
    Route(
        "POST", "/v2/client/me/payments/{paymentId}/options", options.create, needs=PAYER_PAYS,
        with_payment_secret=True, body=bodies.CreateOption, success=201,
        errors=(
            *_PAYER, errors.OptionLocked, errors.PaymentOptionLimitReached,
            errors.CapabilityNotActive, errors.UnsupportedChain, errors.UnsupportedAsset,
        ),
        summary="Offer the caller's vault as a way to pay, and select it.",
    ),
    Route(
        "GET", "/v2/client/me/payments/{paymentId}/options", options.list_options,
        needs=PAYER_READS, with_payment_secret=True, query=PageQuery, errors=(NotFound,),
        summary="List the caller's options of a Payment.",
    ),
    Route(
        "GET", "/v2/client/me/payments/{paymentId}/options/{optionId}", options.read,
        needs=PAYER_READS, with_payment_secret=True, errors=(NotFound,),
        summary="Read an option and its funding operation.",
    ),
    Route(
        "POST", "/v2/client/me/payments/{paymentId}/options/{optionId}/refresh", options.refresh,
        needs=PAYER_PAYS, with_payment_secret=True,
        errors=(*_PAYER, errors.OptionSuperseded, errors.OptionExpired),
        summary="Get a new one-time action for an option.",
    ),
    Route(
        "POST", "/v2/client/me/payments/{paymentId}/options/{optionId}/authorize",
        options.authorize, needs=PAYER_PAYS, with_payment_secret=True, body=bodies.Authorize,
        idempotency="required", errors=(*_PAYER, *_ACTION, *_MONEY),
        summary="Authorize exactly one transfer from the caller's vault to the escrow.",
    ),
)  # fmt: skip

CONSOLE = (
    Route(
        "POST", "/v2/console/apps/{appId}/environments/{environmentId}/webhooks", console.create,
        needs=CONSOLE_KEY, body=bodies.CreateWebhook, success=201,
        errors=(NotFound, errors.WebhookUrlNotAllowed, errors.WebhookUrlInUse),
        summary="Register a webhook endpoint; answers its signing secret.",
    ),
    Route(
        "GET", "/v2/console/webhooks", console.list_endpoints, needs=CONSOLE_KEY, query=PageQuery,
        summary="List the endpoints, with the event catalog and the delivery policy.",
    ),
    Route(
        "GET", "/v2/console/webhooks/{webhookId}", console.read, needs=CONSOLE_KEY,
        errors=(NotFound,),
        summary="Read an endpoint.",
    ),
    Route(
        "PATCH", "/v2/console/webhooks/{webhookId}", console.change, needs=CONSOLE_KEY,
        body=bodies.ChangeWebhook,
        errors=(NotFound, errors.InvalidState, errors.WebhookUrlInUse),
        summary="Change an endpoint's description, subscriptions or status.",
    ),
    Route(
        "POST", "/v2/console/webhooks/{webhookId}/rotate-secret", console.rotate_secret,
        needs=CONSOLE_KEY, errors=(NotFound, errors.InvalidState),
        summary="Replace the signing secret; the old one is invalid at once.",
    ),
    Route(
        "GET", "/v2/console/webhooks/{webhookId}/deliveries", console.deliveries,
        needs=CONSOLE_KEY, query=PageQuery, errors=(NotFound,),
        summary="List deliveries, most recently updated first.",
    ),
    Route(
        "POST", "/v2/console/webhooks/{webhookId}/deliveries/{deliveryId}/retry", console.retry,
        needs=CONSOLE_KEY, errors=(NotFound, errors.Conflicting),
        summary="Put a failed or abandoned delivery back.",
    ),
)  # fmt: skip

SANDBOX = (
    Route(
        "GET", "/v2/sandbox", sandbox.read, needs=STANDARD_KEY, errors=(NotFound,),
        summary="The sandbox's clock and chains.",
    ),
    Route(
        "POST", "/v2/sandbox/accounts/{accountId}/fund", sandbox.fund, needs=STANDARD_KEY,
        body=bodies.Fund,
        errors=(
            NotFound, errors.UnsupportedChain, errors.UnsupportedAsset, errors.AmountOutOfRange,
        ),
        summary="Credit an account's vault; final when it answers.",
    ),
    Route(
        "POST", "/v2/sandbox/blocks", sandbox.mine, needs=STANDARD_KEY, body=bodies.Mine,
        errors=(NotFound, errors.UnsupportedChain),
        summary="Add blocks to a chain.",
    ),
    Route(
        "POST", "/v2/sandbox/run", sandbox.run, needs=STANDARD_KEY,
        errors=(NotFound,),
        summary="Do all work that is due now, before answering.",
    ),
    Route(
        "POST", "/v2/sandbox/clock", sandbox.advance, needs=STANDARD_KEY, body=bodies.Advance,
        errors=(NotFound,),
        summary="Advance the clock, and do what falls due on the way.",
    ),
)  # fmt: skip

ROUTES: tuple[Route, ...] = (
    *PARTNERS, *CLIENT_SESSIONS, *ACCOUNTS, *PAYMENTS, *PAYER, *CONSOLE, *SANDBOX,
)  # fmt: skip
