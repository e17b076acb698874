# Printed from the OpenAPI document by docs/client: run `make client`.
"""One class of error for each code that the service returns."""

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
    """The account is suspended or closed."""

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
    """The action is not the option's current action."""

    code = "action_invalid"
    doc_url: str | None


class AmountOutOfRange(Unprocessable):
    """The amount is zero, or outside the limits."""

    code = "amount_out_of_range"
    reason: str | None
    doc_url: str | None


class CapabilityNotActive(Unprocessable):
    """The capability is not active for the account, or not available here."""

    code = "capability_not_active"
    capability: str | None
    doc_url: str | None


class ClientTokenExpired(Unauthenticated):
    """The client token was valid, but has expired."""

    code = "client_token_expired"
    doc_url: str | None


class ConfigurationError(ServiceError):
    """A setting is missing that the call needs; nothing was changed. Only the operator of
    the service can set it.
    """

    code = "configuration_error"
    setting: str | None
    doc_url: str | None


class Conflict(Conflicting):
    """The request conflicts with an existing resource or its current state."""

    code = "conflict"
    reason: str | None
    doc_url: str | None


class CredentialMismatch(Forbidden):
    """The two credentials are valid, but belong to different environments."""

    code = "credential_mismatch"
    doc_url: str | None


class DependencyFailed(DependencyError):
    """A chain or another service did not answer, or cannot serve; nothing was changed."""

    code = "dependency_failed"
    dependency: str | None
    retryable: bool | None
    reason: str | None
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
    """The request line and headers are larger than the limit."""

    code = "headers_too_large"
    limit_bytes: int | None
    doc_url: str | None


class IdempotencyConflict(Conflicting):
    """The `Idempotency-Key` was used for another request."""

    code = "idempotency_conflict"
    doc_url: str | None


class IdempotencyInProgress(Conflicting):
    """The first request with this key is still in progress."""

    code = "idempotency_in_progress"
    doc_url: str | None


class IdempotencyKeyRequired(InvalidRequest):
    """This request cannot be retried safely without an `Idempotency-Key`."""

    code = "idempotency_key_required"
    doc_url: str | None


class InsufficientBalance(Unprocessable):
    """The vault's balance, without its reserved part, does not cover the amount."""

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
    """An internal error occurred; the response contains only the request id."""

    code = "internal_error"
    doc_url: str | None


class InvalidJson(InvalidRequest):
    """The body is not JSON (RFC 8259), repeats a key, or exceeds a limit of depth or digits."""

    code = "invalid_json"
    reason: str | None
    doc_url: str | None


class InvalidState(Conflicting):
    """The resource's state does not allow this action."""

    code = "invalid_state"
    resource: str | None
    status: str | None
    action: str | None
    doc_url: str | None


class LengthRequired(InvalidRequest):
    """Nobody stated the body's length, and nothing shows whether there is a body; it is not
    taken to be empty.
    """

    code = "length_required"
    doc_url: str | None


class MalformedRequest(InvalidRequest):
    """The server cannot read the request as HTTP/1.1."""

    code = "malformed_request"
    doc_url: str | None


class NotFound(Missing):
    """The resource does not exist, or belongs to another tenant."""

    code = "not_found"
    resource: str | None
    doc_url: str | None


class OptionExpired(Unprocessable):
    """The option has expired; its terms are no longer offered."""

    code = "option_expired"
    doc_url: str | None


class OptionLocked(Conflicting):
    """Funds of the selected option are in transit."""

    code = "option_locked"
    option_id: str | None
    doc_url: str | None


class OptionSuperseded(Conflicting):
    """Another option of the Payment has been selected."""

    code = "option_superseded"
    option_id: str | None
    doc_url: str | None


class OriginNotAllowed(Forbidden):
    """The header `Origin` is missing, or the payment settings do not allow it."""

    code = "origin_not_allowed"
    doc_url: str | None


class PayloadTooLarge(InvalidRequest):
    """The body is larger than the limit."""

    code = "payload_too_large"
    limit_bytes: int | None
    doc_url: str | None


class PaymentExpired(Unprocessable):
    """The Payment has expired, and accepts no new actions."""

    code = "payment_expired"
    expired_at: str | None
    doc_url: str | None


class PaymentOptionLimitReached(LimitReached):
    """One payer, or all payers together, created the maximum of options of a Payment."""

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
    """A rate policy refuses the request, the address is blocked, or the limiter fails."""

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
    """The Payment waits for a decision, but this one is not possible now."""

    code = "reconciliation_action_not_allowed"
    action: str | None
    reason: str | None
    doc_url: str | None


class RequestTimeout(InvalidRequest):
    """The request was not complete in time; nothing was changed."""

    code = "request_timeout"
    doc_url: str | None


class ScreeningRefused(Unprocessable):
    """The screening provider does not clear the address; nothing was stored of the request."""

    code = "screening_refused"
    outcome: str | None
    reason: str | None
    doc_url: str | None


class StorageLimitReached(LimitReached):
    """The environment stores as many bytes as it may."""

    code = "storage_limit_reached"
    stored_bytes: int | None
    limit_bytes: int | None
    counted_at: str | None
    doc_url: str | None


class TransferEncodingNotSupported(InvalidRequest):
    """The request has a `Transfer-Encoding` other than `chunked`."""

    code = "transfer_encoding_not_supported"
    doc_url: str | None


class Unauthorized(Unauthenticated):
    """The credential is missing or not valid; the message does not say why."""

    code = "unauthorized"
    doc_url: str | None


class Unavailable(ServiceError):
    """The storage cannot be reached, or is too busy."""

    code = "unavailable"
    doc_url: str | None


class UnsupportedAsset(Unprocessable):
    """The asset is not supported on this chain, or the request is bound to another asset."""

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
    """The body is not sent as `application/json`, or is compressed."""

    code = "unsupported_media_type"
    doc_url: str | None


class UnsupportedVersion(InvalidRequest):
    """The deployment does not support this API version."""

    code = "unsupported_version"
    supported_api_versions: list[str] | None
    doc_url: str | None


class UsernameTaken(Conflicting):
    """Another account has this username."""

    code = "username_taken"
    doc_url: str | None


class ValidationError(InvalidRequest):
    """One or more fields are not valid; `details.fields` lists all of them."""

    code = "validation_error"
    doc_url: str | None


class VersionMismatch(InvalidRequest):
    """The version is supported, but the environment or token is bound to another version."""

    code = "version_mismatch"
    api_version: str | None
    doc_url: str | None


class WebhookLimitReached(Conflicting):
    """The environment has the maximum number of active endpoints."""

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
    "configuration_error": ConfigurationError,
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
    "length_required": LengthRequired,
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
    "screening_refused": ScreeningRefused,
    "storage_limit_reached": StorageLimitReached,
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
