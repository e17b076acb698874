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
        ("The body is empty, cut off, or not UTF-8.", "A key occurs twice, or a number is `NaN`.",
         "The body nests deeper than 32 levels."),
        ("Let a JSON library write the body; `details.reason` says what was found.",),
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
        ("The request is not HTTP/1.1, or its length is stated twice.",
         "The header `Host` names a host that a sandbox does not serve."),
        ("Use an HTTP library, and look for a proxy that rewrites requests.",),
    ),
    "method_not_allowed": Advice(
        ("The path exists, but not with this method.",),
        ("Use a method of the header `Allow`, which `details.allowed` repeats.",),
    ),
    "request_timeout": Advice(
        ("The request arrived too slowly, or was incomplete.",),
        ("Send it again; nothing of it was done.",), retry=True,
    ),
    "payload_too_large": Advice(
        ("The body has more than `details.limitBytes` bytes.",),
        ("Send less; keep large data on your side and its id in `metadata`.",),
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
        ("The header `Authorization` is missing, or of the wrong scheme for the route.",
         "The secret is of the other mode, was revoked, or has expired.",
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
        ("The client token and the Payment secret are of two environments.",),
        ("Take both from the same environment.",),
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
        ("The id is wrong, or of the other mode.",
         "The resource is another tenant's, which looks the same."),
        ("Compare the id and the environment of your key.",),
    ),
    "route_not_found": Advice(
        ("The path is misspelt, or has a slash too many.",),
        ("Look the path up in the reference; many unknown paths block an address for an hour.",),
    ),
    # Conflicts
    "idempotency_conflict": Advice(
        ("The `Idempotency-Key` was used for another path or body.",),
        ("Use a new key for a new request; send a retry exactly as it was.",),
    ),
    "idempotency_in_progress": Advice(
        ("The first request with this key is still being worked on.",),
        ("Send it again after `details.retryAfterSeconds`, with the same key.",), retry=True,
    ),
    "conflict": Advice(
        ("Something with the same unique value exists, such as an account's `externalUserId`.",
         "The `version` of a change is not the current one.",
         "A delivery cannot be retried in its state."),
        ("`details.reason` says what it conflicts with: read that, and decide again.",),
    ),
    "invalid_state": Advice(
        ("The resource has moved on, such as a Payment that was paid before you cancelled it.",
         "A refund after the funds went to a wallet outside: only Payments to accounts are"
         " refunded after success."),
        ("Read the resource; the page about state machines lists what each state allows.",),
    ),
    "action_already_used": Advice(
        ("The one-time action or challenge was used, perhaps by a request whose answer was lost.",),
        ("Send a retry with the same `Idempotency-Key`; else refresh the option, or ask for a new"
         " challenge.",),
    ),
    "option_superseded": Advice(
        ("The payer has selected another option since.",),
        ("Read the Payment, and continue with its `selectedOptionId`.",),
    ),
    "option_locked": Advice(
        ("Funds of the selected option are in transit.",),
        ("Wait until they arrive or fail; the Payment's events say so.",), retry=True,
    ),
    "webhook_url_in_use": Advice(
        ("Another active endpoint of the environment has this URL.",),
        ("Use that endpoint, or disable it first.",),
    ),
    "webhook_limit_reached": Advice(
        ("The environment has `details.limit` active endpoints, which is the maximum.",),
        ("Archive or disable one; or let one endpoint receive the events of several.",),
    ),
    "username_taken": Advice(
        ("Another account has this username, or it is reserved.",),
        ("Let the user choose another name.",),
    ),
    # Operations that cannot be done
    "insufficient_balance": Advice(
        ("The vault holds less than `details.requiredAtomic`.",
         "Authorizations that are not final yet reserve the rest."),
        ("Fund the vault, or wait for what is reserved; the account's balances show both.",),
    ),
    "policy_denied": Advice(
        ("The vault's policy or the mandate forbids this amount, chain, asset or recipient.",),
        ("`details.rule` names the limit: change the policy, ask for less, or wait for the next"
         " day or period.",),
    ),
    "policy_inactive": Advice(
        ("The vault's policy is paused.",),
        ("Set its `status` to `active` when the vault may pay again.",),
    ),
    "payment_expired": Advice(
        ("The Payment has expired.",),
        ("Create a new Payment; funds that still arrive are watched for, and reported.",),
    ),
    "option_expired": Advice(
        ("The option's terms are no longer offered.",),
        ("Refresh the option if it is `refreshable`, or create a new one.",),
    ),
    "action_expired": Advice(
        ("The action or challenge was not used in time: an action lives for 300 s.",),
        ("Refresh the option, or ask for a new challenge.",),
    ),
    "action_invalid": Advice(
        ("The option was refreshed since, or the action is another option's.",),
        ("Read the option, and use the `actionId` of its `execution`.",),
    ),
    "amount_out_of_range": Advice(
        ("The amount is zero, too large, or beyond what the settings or the refund allow.",),
        ("`details.reason` says which limit it is.",),
    ),
    "unsupported_chain": Advice(
        ("The deployment does not serve the chain, or the resource is bound to another.",),
        ("Use a chain on which the account has a vault.",),
    ),
    "unsupported_asset": Advice(
        ("The asset does not exist on the chain here.",),
        ("Use another asset; `GET /sdk/v1/supported-chains` lists the tokens.",),
    ),
    "destination_not_allowed": Advice(
        ("The recipient has no vault on the chain, or is an address of the service itself.",
         "The payment settings do not list the wallet."),
        ("`details.reason` says why: choose another destination, or allow this one.",),
    ),
    "reconciliation_action_not_allowed": Advice(
        ("No funds are held, no transfer failed, or a refund is in progress.",),
        ("Read the Payment's `reconciliation` and `receipts`, and choose another action.",),
    ),
    "capability_not_active": Advice(
        ("The account has not been approved for it yet.", "The deployment has no adapter for it."),
        ("Activate the capability of `details.capability`, or ask the operator.",),
    ),
    "webhook_url_not_allowed": Advice(
        ("The URL is not https, has credentials, or leads to a private address.",),
        ("Use a public https URL; to receive on your own machine, use `payments listen`.",),
    ),
    # Other services
    "dependency_failed": Advice(
        ("The chain, bank, router or KYC provider of `details.dependency` did not answer.",),
        ("Nothing was changed. If `details.retryable` is true, send it again with the same"
         " `Idempotency-Key` after some seconds.",), retry=True,
    ),
    "rate_limited": Advice(
        ("More requests than the policy of `details.rule` allows; without a rule, the limit of one"
         " address.", "Many requests for unknown paths have blocked the address.",
         "The limiter cannot answer."),
        ("Wait for `Retry-After` seconds, and spread requests out.",
         "Webhooks spare you most reads; the page about limits lists every policy."), retry=True,
    ),
    "payment_option_limit_reached": Advice(
        ("Too many options were created for one Payment.",),
        ("Refresh an option, or create a new Payment.",),
    ),
    "internal_error": Advice(
        ("An error of the service itself.",),
        ("Send it again with the same `Idempotency-Key`; if it stays, report"
         " `details.requestId`.",), retry=True,
    ),
    "unavailable": Advice(
        ("The storage is unavailable or too busy, often only for a moment.",),
        ("Send it again after `Retry-After` seconds with the same `Idempotency-Key`.",),
        retry=True,
    ),
}  # fmt: skip
"""By the error's code."""
