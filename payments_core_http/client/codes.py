# Printed from the OpenAPI document by docs/client: run `make client`.
"""One class of error for each code that the service answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from payments_core_http.client.errors import (
    ApiError,
    Conflicting,
    DependencyError,
    Forbidden,
    InvalidRequest,
    LimitReached,
    Missing,
    ServiceError,
    Unauthenticated,
    Unprocessable,
)
from payments_core_http.client.structs import Known


class AccountSuspended(Forbidden):
    """The account may not act now."""

    code = "account_suspended"
    account_id: str | None
    status: str | None
    doc_url: str | None


class ActionAlreadyUsed(Conflicting):
    """A one-time action, or a wallet's challenge, was used before."""

    code = "action_already_used"
    action: str | None
    doc_url: str | None


class ActionExpired(Unprocessable):
    """The one-time action, or the wallet's challenge, was not used in time."""

    code = "action_expired"
    expired_at: str | None
    action: str | None
    doc_url: str | None


class ActionInvalid(Unprocessable):
    """The action is not the one that this option waits for."""

    code = "action_invalid"
    doc_url: str | None


class AmountOutOfRange(Unprocessable):
    """The amount is zero, or outside the limits."""

    code = "amount_out_of_range"
    reason: str | None
    doc_url: str | None


class CapabilityNotActive(Unprocessable):
    """A capability that is not active here, or not yet."""

    code = "capability_not_active"
    capability: str | None
    doc_url: str | None


class ClientTokenExpired(Unauthenticated):
    """A correctly signed client token that has expired."""

    code = "client_token_expired"
    doc_url: str | None


class Conflict(Conflicting):
    """The request conflicts with something that exists."""

    code = "conflict"
    reason: str | None
    doc_url: str | None


class CredentialMismatch(Forbidden):
    """Two valid credentials, of two environments."""

    code = "credential_mismatch"
    doc_url: str | None


class DependencyFailed(DependencyError):
    """A chain or another service did not answer; nothing was changed."""

    code = "dependency_failed"
    dependency: str | None
    retryable: bool | None
    doc_url: str | None


class DestinationNotAllowed(Unprocessable):
    """The recipient cannot be paid in this way."""

    code = "destination_not_allowed"
    reason: str | None
    doc_url: str | None


class EntitlementRequired(Forbidden):
    """The app's environment does not have this product."""

    code = "entitlement_required"
    product: str | None
    doc_url: str | None


class HeadersTooLarge(InvalidRequest):
    """The headers are larger than any call needs."""

    code = "headers_too_large"
    limit_bytes: int | None
    doc_url: str | None


class IdempotencyConflict(Conflicting):
    """The key was used for another request."""

    code = "idempotency_conflict"
    doc_url: str | None


class IdempotencyInProgress(Conflicting):
    """The first request with this key is still in progress."""

    code = "idempotency_in_progress"
    doc_url: str | None


class IdempotencyKeyRequired(InvalidRequest):
    """This call moves money and cannot be retried safely without a key."""

    code = "idempotency_key_required"
    doc_url: str | None


class InsufficientBalance(Unprocessable):
    """The vault does not cover the amount, after what is already reserved."""

    code = "insufficient_balance"
    available_atomic: str | None
    required_atomic: str | None
    doc_url: str | None


class InsufficientPermissions(Forbidden):
    """The credential lacks a scope or a permission, or is of the wrong kind."""

    code = "insufficient_permissions"
    required: list[str] | None
    doc_url: str | None


class InternalError(ServiceError):
    """An internal error; the caller gets only the request id."""

    code = "internal_error"
    doc_url: str | None


class InvalidJson(InvalidRequest):
    """The body is not JSON in the accepted form (RFC 8259, duplicate keys refused)."""

    code = "invalid_json"
    reason: str | None
    doc_url: str | None


class InvalidState(Conflicting):
    """The state machine has no such transition from this state."""

    code = "invalid_state"
    resource: str | None
    status: str | None
    action: str | None
    doc_url: str | None


class MalformedRequest(InvalidRequest):
    """Not HTTP as the server reads it; no route was looked up."""

    code = "malformed_request"
    doc_url: str | None


class NotFound(Missing):
    """No such resource for this caller; another tenant's resource gives the same error."""

    code = "not_found"
    resource: str | None
    doc_url: str | None


class OptionExpired(Unprocessable):
    """The option's terms are no longer offered."""

    code = "option_expired"
    doc_url: str | None


class OptionLocked(Conflicting):
    """The selected option has funds on their way."""

    code = "option_locked"
    option_id: str | None
    doc_url: str | None


class OptionSuperseded(Conflicting):
    """Another option has been selected since."""

    code = "option_superseded"
    option_id: str | None
    doc_url: str | None


class OriginNotAllowed(Forbidden):
    """The header `Origin` is missing, or the payment settings do not allow it."""

    code = "origin_not_allowed"
    doc_url: str | None


class PayloadTooLarge(InvalidRequest):
    """The body is larger than any call needs."""

    code = "payload_too_large"
    limit_bytes: int | None
    doc_url: str | None


class PaymentExpired(Unprocessable):
    """The Payment no longer takes new actions."""

    code = "payment_expired"
    expired_at: str | None
    doc_url: str | None


class PaymentOptionLimitReached(LimitReached):
    """A payer, or all payers together, have created as many options of a Payment as they
    may.
    """

    code = "payment_option_limit_reached"
    limit: int | None
    doc_url: str | None


class PolicyDenied(Unprocessable):
    """The vault's policy, or the mandate, does not allow this."""

    code = "policy_denied"
    rule: str | None
    doc_url: str | None


class PolicyInactive(Unprocessable):
    """The vault's policy is paused."""

    code = "policy_inactive"
    doc_url: str | None


class RateLimited(LimitReached):
    """More requests than a rate policy allows, or a limiter that cannot say."""

    code = "rate_limited"
    rule: str | None
    limit: int | None
    remaining: int | None
    reset_at: str | None
    reason: (
        Known[Literal["rate_limit_exceeded", "rate_limiter_unavailable", "abuse_blocked"]] | None
    )
    doc_url: str | None


class ReconciliationActionNotAllowed(Unprocessable):
    """The Payment waits for a decision, but cannot take this one now."""

    code = "reconciliation_action_not_allowed"
    action: str | None
    reason: str | None
    doc_url: str | None


class RequestTimeout(InvalidRequest):
    """The request was not complete in time; nothing of it was done."""

    code = "request_timeout"
    doc_url: str | None


class TransferEncodingNotSupported(InvalidRequest):
    """A Transfer-Encoding other than `chunked`."""

    code = "transfer_encoding_not_supported"
    doc_url: str | None


class Unauthorized(Unauthenticated):
    """Malformed, forged, revoked, replayed or consumed: the text does not say which."""

    code = "unauthorized"
    doc_url: str | None


class Unavailable(ServiceError):
    """The storage cannot be reached, or is too busy."""

    code = "unavailable"
    doc_url: str | None


class UnsupportedAsset(Unprocessable):
    """The chain does not have this asset here, or the request is bound to another asset."""

    code = "unsupported_asset"
    chain_id: int | None
    symbol: str | None
    reason: str | None
    doc_url: str | None


class UnsupportedChain(Unprocessable):
    """The deployment does not serve this chain, or the request is bound to another chain."""

    code = "unsupported_chain"
    chain_id: int | None
    reason: str | None
    doc_url: str | None


class UnsupportedMediaType(InvalidRequest):
    """Bodies are JSON and nothing else."""

    code = "unsupported_media_type"
    doc_url: str | None


class UnsupportedVersion(InvalidRequest):
    """The deployment serves no such API version."""

    code = "unsupported_version"
    supported_api_versions: list[str] | None
    doc_url: str | None


class UsernameTaken(Conflicting):
    """Another account has this username."""

    code = "username_taken"
    doc_url: str | None


class ValidationError(InvalidRequest):
    """One or more fields are wrong; all of them are named at once."""

    code = "validation_error"
    doc_url: str | None


class VersionMismatch(InvalidRequest):
    """A supported version, but not the version to which this environment or token is bound."""

    code = "version_mismatch"
    api_version: str | None
    doc_url: str | None


class WebhookLimitReached(Conflicting):
    """The environment has as many active endpoints as it may."""

    code = "webhook_limit_reached"
    limit: int | None
    doc_url: str | None


class WebhookUrlInUse(Conflicting):
    """Another active endpoint of the environment has this URL."""

    code = "webhook_url_in_use"
    doc_url: str | None


class WebhookUrlNotAllowed(Unprocessable):
    """The URL breaks a rule for webhook destinations."""

    code = "webhook_url_not_allowed"
    reason: str | None
    doc_url: str | None


BY_CODE: Mapping[str, type[ApiError]] = {
    "account_suspended": AccountSuspended,
    "action_already_used": ActionAlreadyUsed,
    "action_expired": ActionExpired,
    "action_invalid": ActionInvalid,
    "amount_out_of_range": AmountOutOfRange,
    "capability_not_active": CapabilityNotActive,
    "client_token_expired": ClientTokenExpired,
    "conflict": Conflict,
    "credential_mismatch": CredentialMismatch,
    "dependency_failed": DependencyFailed,
    "destination_not_allowed": DestinationNotAllowed,
    "entitlement_required": EntitlementRequired,
    "headers_too_large": HeadersTooLarge,
    "idempotency_conflict": IdempotencyConflict,
    "idempotency_in_progress": IdempotencyInProgress,
    "idempotency_key_required": IdempotencyKeyRequired,
    "insufficient_balance": InsufficientBalance,
    "insufficient_permissions": InsufficientPermissions,
    "internal_error": InternalError,
    "invalid_json": InvalidJson,
    "invalid_state": InvalidState,
    "malformed_request": MalformedRequest,
    "not_found": NotFound,
    "option_expired": OptionExpired,
    "option_locked": OptionLocked,
    "option_superseded": OptionSuperseded,
    "origin_not_allowed": OriginNotAllowed,
    "payload_too_large": PayloadTooLarge,
    "payment_expired": PaymentExpired,
    "payment_option_limit_reached": PaymentOptionLimitReached,
    "policy_denied": PolicyDenied,
    "policy_inactive": PolicyInactive,
    "rate_limited": RateLimited,
    "reconciliation_action_not_allowed": ReconciliationActionNotAllowed,
    "request_timeout": RequestTimeout,
    "transfer_encoding_not_supported": TransferEncodingNotSupported,
    "unauthorized": Unauthorized,
    "unavailable": Unavailable,
    "unsupported_asset": UnsupportedAsset,
    "unsupported_chain": UnsupportedChain,
    "unsupported_media_type": UnsupportedMediaType,
    "unsupported_version": UnsupportedVersion,
    "username_taken": UsernameTaken,
    "validation_error": ValidationError,
    "version_mismatch": VersionMismatch,
    "webhook_limit_reached": WebhookLimitReached,
    "webhook_url_in_use": WebhookUrlInUse,
    "webhook_url_not_allowed": WebhookUrlNotAllowed,
}
