"""The causes of each error, and what to do about it: the pages about errors are made from this.

What an error means is the docstring of its class, and its status is the table's in
`payments_core_http/errors.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class Advice:
    """The usual causes of an error, and the remedy, each in sentences."""

    causes: tuple[str, ...]
    remedy: tuple[str, ...]
    retry: bool = False
    """Whether the same request, sent again as it is, may succeed."""


ADVICE: Mapping[str, Advice] = {
    # The request
    "invalid_json": Advice(
        ("The body is empty, incomplete, or not UTF-8.",
         "A key occurs twice, or a number is `NaN`.",
         "The body nests deeper than 32 levels."),
        ("Write the body with a JSON library; `details.reason` says what is wrong.",),
    ),
    "validation_error": Advice(
        ("A field is missing, unknown, or has the wrong type.",
         "An amount was sent as a number: amounts are strings, such as `\"25.00\"`.",
         "A parameter of the query is unknown, or a `cursor` belongs to another list."),
        ("`details.fields` names every wrong field with its path: fix them all and send again.",),
    ),
    "idempotency_key_required": Advice(
        ("The request creates or moves money, and has no `Idempotency-Key`.",),
        ("Send your own key, such as the order's id, and the same key in every retry.",),
    ),
    "unsupported_version": Advice(
        ("`Service-Version` is not a date that this deployment supports.",),
        ("Send one of `details.supportedApiVersions`, or leave the header out.",),
    ),
    "version_mismatch": Advice(
        ("`Service-Version` differs from the environment's pin.",
         "A token or Payment secret was made before the pin changed."),
        ("Send `details.apiVersion`, or leave the header out.",),
    ),
    "malformed_request": Advice(
        ("The request is not HTTP/1.1, or states its length twice.",
         "The header `Host` names a host that a sandbox does not serve."),
        ("Use an HTTP library, and look for a proxy that rewrites requests.",),
    ),
    "method_not_allowed": Advice(
        ("The path exists, but not with this method.",),
        ("Use one of the methods in the header `Allow` and in `details.allowed`.",),
    ),
    "request_timeout": Advice(
        ("The request arrived too slowly, or was incomplete.",),
        ("Send it again; nothing was changed.",), retry=True,
    ),
    "length_required": Advice(
        ("The request has no `Content-Length`, and no body arrived: a server or proxy in between"
         " may have lost it.",
         "The client disconnected within a body without a length."),
        ("Send `Content-Length`, also with an empty body, where it is 0.",
         "Nothing was changed: send the request again with the same `Idempotency-Key`."),
    ),
    "payload_too_large": Advice(
        ("The body has more than `details.limitBytes` bytes.",),
        ("Send a smaller body; store large data in your own system, and its id in `metadata`.",),
    ),
    "unsupported_media_type": Advice(
        ("The body has no `Content-Type: application/json`, or is compressed.",),
        ("Send JSON with that header and without `Content-Encoding`.",),
    ),
    "headers_too_large": Advice(
        ("The request line and headers have more than `details.limitBytes` bytes.",),
        ("Send fewer cookies and a shorter query.",),
    ),
    "transfer_encoding_not_supported": Advice(
        ("The request has a `Transfer-Encoding` other than `chunked`.",),
        ("Send the body with `Content-Length`, or in chunks.",),
    ),
    # Authentication
    "unauthorized": Advice(
        ("The header `Authorization` is missing, or has the wrong scheme for the route.",
         "The secret belongs to the other mode, was revoked, or has expired.",
         "A client session's token was already used: it works once.",
         "The Payment secret belongs to another Payment."),
        ("On a backend, use HTTP Basic with the app id and secret; `GET /v2/partners/config`"
         " confirms them.", "In a browser, ask your backend for a new client session.",
         "Do not retry with the same credential."),
    ),
    "client_token_expired": Advice(
        ("The client token was valid, but has expired.",),
        ("Ask your backend for a new client session, and exchange its token.",),
    ),
    "provider_signature_invalid": Advice(
        ("The provider signs with another secret than the one in its URL in `[providers]`.",
         "A proxy changed the body or removed a header.",
         "The clock of this machine is wrong: a signature is valid for minutes.",
         "Somebody else sent the request."),
        ("Compare the secret with the provider's, and synchronize the clock.",
         "Have the provider send the notice again; until then its cases are polled."),
    ),
    "insufficient_permissions": Advice(
        ("A restricted key lacks the scope of the route, or only standard keys may call it.",
         "A client token lacks the permission."),
        ("Create a key with the scopes of `details.required`, or a session with that permission.",),
    ),
    "entitlement_required": Advice(
        ("The environment does not have the product `details.product`.",),
        ("Ask the operator to enable it: `payments admin products set`.",),
    ),
    "origin_not_allowed": Advice(
        ("The page's origin is not among `allowedOrigins`, which must match exactly.",
         "The request does not come from a browser, and has no `Origin`."),
        ("Add the origin with `PUT /v2/partners/payment-settings`: scheme, host and port.",),
    ),
    "credential_mismatch": Advice(
        ("The client token and the Payment secret belong to different environments.",),
        ("Use a client token and a Payment secret of the same environment.",),
    ),
    "account_suspended": Advice(
        ("The account is suspended or closed.",),
        ("Read the account; activate a suspended one with `PATCH /v2/accounts/{accountId}`.",),
    ),
    "form_refused": Advice(
        ("A form of the dashboard was open too long, or comes from another session.",),
        ("Open the page again and send the form once more.",),
    ),
    # Resources
    "not_found": Advice(
        ("The id is wrong, or belongs to the other mode.",
         "The resource belongs to another tenant: the error is the same."),
        ("Check the id, and that your key belongs to the environment of the resource.",),
    ),
    "route_not_found": Advice(
        ("The path is misspelled, or has an extra slash.",),
        ("Check the path in the reference; many unknown paths block an address for an hour.",),
    ),
    # Conflicts
    "idempotency_conflict": Advice(
        ("The `Idempotency-Key` was used for another path or body.",),
        ("Use a new key for a new request; send a retry exactly as it was.",),
    ),
    "idempotency_in_progress": Advice(
        ("The first request with this key is still in progress.",
         "The request waited two seconds for a lock in the database, held by another one."),
        ("Send it again after `details.retryAfterSeconds`, with the same key.",), retry=True,
    ),
    "conflict": Advice(
        ("Something with the same unique value exists, such as an account's `externalUserId`.",
         "The `version` of a change is not the current one.",
         "A delivery cannot be retried in its state."),
        ("`details.reason` names the conflict: read the resource, and decide again.",),
    ),
    "invalid_state": Advice(
        ("The resource has changed, such as a Payment that was paid before you cancelled it.",
         "The funds to refund went to an external wallet: after success, only Payments to accounts"
         " can be refunded."),
        ("Read the resource; the page about state machines lists what each state allows.",),
    ),
    "action_already_used": Advice(
        ("The one-time action or challenge was used, perhaps by a request whose answer was lost.",),
        ("Send a retry with the same `Idempotency-Key`; otherwise refresh the option, or request a"
         " new challenge.",),
    ),
    "option_superseded": Advice(
        ("The payer has selected another option.",),
        ("Read the Payment, and continue with its `selectedOptionId`.",),
    ),
    "option_locked": Advice(
        ("Funds of the selected option are in transit.",),
        ("Wait until the funds arrive or fail; the Payment's events report this.",), retry=True,
    ),
    "webhook_url_in_use": Advice(
        ("Another active endpoint of the environment has this URL.",),
        ("Use that endpoint, or disable it first.",),
    ),
    "webhook_limit_reached": Advice(
        ("The environment has `details.limit` active endpoints, which is the maximum.",),
        ("Archive or disable an endpoint, or combine several endpoints into one.",),
    ),
    "username_taken": Advice(
        ("Another account has this username, or it is reserved.",),
        ("Let the user choose another name.",),
    ),
    # Operations that cannot be done
    "insufficient_balance": Advice(
        ("The vault holds less than `details.requiredAtomic`.",
         "Authorizations that are not final yet reserve a part of its balance."),
        ("Read the vault's balances, and fund the vault.",),
    ),
    "policy_denied": Advice(
        ("The vault's policy or the mandate forbids this amount, chain, asset or recipient.",),
        ("`details.rule` names the limit: change the policy, request a smaller amount, or wait for"
         " the next day or period.",),
    ),
    "policy_inactive": Advice(
        ("The vault's policy is paused.",),
        ("Set its `status` to `active` when the vault may pay again.",),
    ),
    "payment_expired": Advice(
        ("The Payment has expired.",),
        ("Create a new Payment; the service still reports funds that arrive later.",),
    ),
    "option_expired": Advice(
        ("The option's terms are no longer offered.",),
        ("Refresh the option if it is `refreshable`, or create a new one.",),
    ),
    "action_expired": Advice(
        ("The action or challenge was not used in time: an action is valid for 300 s.",),
        ("Refresh the option, or request a new challenge.",),
    ),
    "action_invalid": Advice(
        ("The option was refreshed, or the action belongs to another option.",),
        ("Read the option, and use the `actionId` of its `execution`.",),
    ),
    "amount_out_of_range": Advice(
        ("The amount is zero, too large, or beyond what the settings or the refund allow.",),
        ("`details.reason` names the limit.",),
    ),
    "unsupported_chain": Advice(
        ("The deployment does not serve the chain, or the resource is bound to another chain.",),
        ("Use a chain on which the account has a vault.",),
    ),
    "unsupported_asset": Advice(
        ("The deployment does not support the asset on this chain.",),
        ("Use another asset; `GET /sdk/v1/supported-chains` lists the tokens.",),
    ),
    "destination_not_allowed": Advice(
        ("The recipient has no vault on the chain, or is an address of the service itself.",
         "The payment settings do not list the wallet."),
        ("`details.reason` says why: choose another destination, or allow this one.",),
    ),
    "screening_refused": Advice(
        ("The screening provider reviews or blocks the address; `details.reason` is the"
         " provider's, if it gave one.",),
        ("Nothing was stored. Use another address, or send it again when the review has ended.",
         "A refund to such an address is the decision of those who run the service."),
    ),
    "reconciliation_action_not_allowed": Advice(
        ("No funds are held, no transfer has failed, or a refund is in progress.",),
        ("Read the Payment's `reconciliation` and `receipts`, and choose another action.",),
    ),
    "capability_not_active": Advice(
        ("The account has not been approved for the capability yet.",
         "The deployment has no adapter for the capability."),
        ("Activate the capability of `details.capability`, or ask the operator.",),
    ),
    "webhook_url_not_allowed": Advice(
        ("The URL is not https, contains credentials, or resolves to a private address.",),
        ("Use a public https URL; to receive on your own machine, use `payments listen`.",),
    ),
    # Other services
    "dependency_failed": Advice(
        ("The chain, bank, router, KYC or screening provider of `details.dependency` did not"
         " answer.",
         "`details.reason` is `operator_out_of_gas`: the address from which the service sends has"
         " too few coins of the chain for this transaction."),
        ("Nothing was changed. If `details.retryable` is true, send it again with the same"
         " `Idempotency-Key` after some seconds.",
         "If the operator is out of gas, tell those who run the service, and send it again later."),
        retry=True,
    ),
    "rate_limited": Advice(
        ("You sent more requests than the rate policy `details.rule` allows; without `rule`, the"
         " limit of your address was reached.",
         "Many requests for unknown paths have blocked the address.",
         "The limiter cannot answer."),
        ("Wait for `Retry-After` seconds, and spread your requests over time.",
         "Webhooks replace most reads; the page about limits lists every policy."), retry=True,
    ),
    "payment_option_limit_reached": Advice(
        ("Too many options were created for one Payment.",),
        ("Refresh an option, or create a new Payment.",),
    ),
    "storage_limit_reached": Advice(
        ("The environment stored `details.storedBytes` bytes when they were last counted, at"
         " `details.countedAt`; that is its limit, `details.limitBytes`, or more.",),
        ("Ask the operator of the service to raise the limit.",
         "Payments, refunds, webhooks and reads go on. What expires is deleted, and the bytes are"
         " counted again every hour.",),
    ),
    "internal_error": Advice(
        ("The service itself has a fault.",),
        ("Send it again with the same `Idempotency-Key`; if it fails again, report"
         " `details.requestId`.",), retry=True,
    ),
    "configuration_error": Advice(
        ("The deployment lacks the setting `details.setting`, such as `public_url`, with which"
         " every payment link begins.",),
        ("Tell those who run the service. They set `public_url` in the configuration, or"
         " `Settings(public_url=...)` where the library is embedded.",
         "Nothing was changed: send the request again afterwards, with the same"
         " `Idempotency-Key`.",),
    ),
    "unavailable": Advice(
        ("The storage is unavailable or too busy, often only for a moment.",),
        ("Send it again after `Retry-After` seconds with the same `Idempotency-Key`.",),
        retry=True,
    ),
}  # fmt: skip
"""By the error's code."""
