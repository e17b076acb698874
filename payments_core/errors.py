"""The errors of the service, by whose fault they are (contract §3).

The class says whose fault it is, `code` is the word on the wire, the fields hold the facts.
`sentence` makes the message from them, and their camel-case names are the `details`.
HTTP statuses live in `payments_core_http.errors` alone.
No error carries a secret: its text may end up in a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from payments_core.clock import Instant, format_iso


@attrs.frozen
class FieldError:
    """One fault of an input, by the path of the field, for example `wallets[0].address`."""

    path: str
    message: str


@attrs.frozen
class PaymentsError(Exception):
    """The base class of every error that a caller may get."""

    code: ClassVar[str]
    sentence: ClassVar[str]

    @property
    def message(self) -> str:
        """One sentence for the caller: what is wrong and, if possible, the remedy."""
        return self.sentence.format_map(
            {name: _to_text(name, value) for name, value in self._facts().items()}
        )

    @property
    def details(self) -> Mapping[str, Any]:
        """The facts for programs, as JSON values."""
        return {
            _to_camel_case(name): _to_json(name, value) for name, value in self._facts().items()
        }

    def _facts(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def _to_camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _to_json(name: str, value: Any) -> Any:
    if name.endswith("_at"):
        return format_iso(value)
    if name.endswith("_atomic"):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _to_text(name: str, value: Any) -> str:
    shown = _to_json(name, value)
    return ", ".join(map(str, shown)) if isinstance(shown, list) else str(shown)


class BadInput(PaymentsError):
    """The request is not well formed; nothing was looked up."""


class Unauthenticated(PaymentsError):
    """No credential, or a credential that proves nothing."""


class Forbidden(PaymentsError):
    """A valid credential without permission for this."""


class Missing(PaymentsError):
    """The resource does not exist here, or belongs to somebody else."""


class ConflictError(PaymentsError):
    """The request contradicts an earlier change."""


class Unprocessable(PaymentsError):
    """The request is well formed and allowed, but cannot be carried out."""


class DependencyError(PaymentsError):
    """An external service did not answer; nothing was changed."""


class LimitReached(PaymentsError):
    """A limit was reached."""


class ServiceUnavailable(PaymentsError):
    """The service cannot answer now."""


@attrs.frozen
class ConfigurationError(PaymentsError):
    """A setting is missing that the call needs; nothing was changed. Only the operator of the
    service can set it."""

    code = "configuration_error"
    sentence = "The setting {setting} is missing; the operator of the service must set it."
    setting: str


# Bad input


@attrs.frozen
class ValidationFailed(BadInput):
    """One or more fields are not valid; `details.fields` lists all of them."""

    code = "validation_error"
    fields: tuple[FieldError, ...]

    @classmethod
    def at(cls, path: str, message: str) -> ValidationFailed:
        """The error of a single field."""
        return cls((FieldError(path, message),))

    @property
    def message(self) -> str:
        first = self.fields[0]
        more = f" (and {len(self.fields) - 1} more)" if len(self.fields) > 1 else ""
        return f"{first.path or 'body'} {first.message}{more}."

    @property
    def details(self) -> Mapping[str, Any]:
        return {"fields": [attrs.asdict(field) for field in self.fields]}


@attrs.frozen
class InvalidJson(BadInput):
    """The body is not JSON (RFC 8259), repeats a key, or exceeds a limit of depth or digits."""

    code = "invalid_json"
    sentence = "The body is not valid JSON: {reason}."
    reason: str


@attrs.frozen
class IdempotencyKeyRequired(BadInput):
    """This request cannot be retried safely without an `Idempotency-Key`."""

    code = "idempotency_key_required"
    sentence = "This request needs an Idempotency-Key header of 1 to 256 printable characters."


@attrs.frozen
class UnsupportedVersion(BadInput):
    """The deployment does not support this API version."""

    code = "unsupported_version"
    sentence = "Service-Version must be one of {supported_api_versions}."
    supported_api_versions: tuple[str, ...]


@attrs.frozen
class VersionMismatch(BadInput):
    """The version is supported, but the environment or token is bound to another version."""

    code = "version_mismatch"
    sentence = "This credential is bound to version {api_version}; send that version or no version."
    api_version: str


# The caller


@attrs.frozen
class Unauthorized(Unauthenticated):
    """The credential is missing or not valid; the message does not say why."""

    code = "unauthorized"
    sentence = (
        "The credential is missing or not valid here. Backends use HTTP Basic with the app id and "
        "secret; browsers use a Bearer token."
    )


@attrs.frozen
class ClientTokenExpired(Unauthenticated):
    """The client token was valid, but has expired."""

    code = "client_token_expired"
    sentence = "The client token has expired; request a new client session from your backend."


@attrs.frozen
class ProviderSignatureInvalid(Unauthenticated):
    """A provider's notice that is not signed by that provider."""

    code = "provider_signature_invalid"
    sentence = "The request is not signed by this provider, or its signature has expired."


@attrs.frozen
class InsufficientPermissions(Forbidden):
    """The credential lacks a scope or a permission, or is of the wrong kind."""

    code = "insufficient_permissions"
    sentence = "This request needs {required}."
    required: tuple[str, ...]


@attrs.frozen
class EntitlementRequired(Forbidden):
    """The app's environment does not have this product."""

    code = "entitlement_required"
    sentence = "The product {product} is not enabled for this environment."
    product: str


@attrs.frozen
class OriginNotAllowed(Forbidden):
    """The header `Origin` is missing, or the payment settings do not allow it."""

    code = "origin_not_allowed"
    sentence = "Payments cannot be created from this origin; allow it in the payment settings."


@attrs.frozen
class CredentialMismatch(Forbidden):
    """The two credentials are valid, but belong to different environments."""

    code = "credential_mismatch"
    sentence = "The two credentials belong to different environments."


@attrs.frozen
class AccountSuspended(Forbidden):
    """The account is suspended or closed."""

    code = "account_suspended"
    sentence = "The account is {status} and cannot do this."
    account_id: str
    status: str


# Resources


@attrs.frozen
class NotFound(Missing):
    """The resource does not exist, or belongs to another tenant."""

    code = "not_found"
    sentence = "No such {resource}."
    resource: str


# Conflicts


@attrs.frozen
class ResourceConflict(ConflictError):
    """The request conflicts with an existing resource or its current state."""

    code = "conflict"
    sentence = "{reason}"
    reason: str


@attrs.frozen
class IdempotencyConflict(ConflictError):
    """The `Idempotency-Key` was used for another request."""

    code = "idempotency_conflict"
    sentence = "This Idempotency-Key was used with a different request."


@attrs.frozen
class IdempotencyInProgress(ConflictError):
    """The first request with this key is still in progress."""

    code = "idempotency_in_progress"
    sentence = "A request with this Idempotency-Key is in progress; try again shortly."
    retry_after_s: int = 1


@attrs.frozen
class InvalidState(ConflictError):
    """The resource's state does not allow this action."""

    code = "invalid_state"
    sentence = "The {resource} is {status}; the action '{action}' is not possible now."
    resource: str
    status: str
    action: str


@attrs.frozen
class FundsOutOfReach(InvalidState):
    """The funds are in an external wallet: the service cannot take them back."""

    sentence = (
        "The {resource} is {status}: its funds are in the recipient's own wallet, and only the"
        " recipient can send them back."
    )


@attrs.frozen
class ActionAlreadyUsed(ConflictError):
    """A one-time action, or a wallet's challenge, was used before."""

    code = "action_already_used"
    sentence = "This {action} has already been used; request a new one."
    action: str = "actionId"


@attrs.frozen
class OptionSuperseded(ConflictError):
    """Another option of the Payment has been selected."""

    code = "option_superseded"
    sentence = "Another option of this Payment has been selected."
    option_id: str


@attrs.frozen
class OptionLocked(ConflictError):
    """Funds of the selected option are in transit."""

    code = "option_locked"
    sentence = "The selected option has funds in transit; wait until they arrive or fail."
    option_id: str | None


@attrs.frozen
class WebhookUrlInUse(ConflictError):
    """Another active endpoint of the environment has this URL."""

    code = "webhook_url_in_use"
    sentence = "Another active webhook endpoint of this environment has this URL."


@attrs.frozen
class WebhookLimitReached(ConflictError):
    """The environment has the maximum number of active endpoints."""

    code = "webhook_limit_reached"
    sentence = "An environment has at most {limit} active webhook endpoints; archive one."
    limit: int


@attrs.frozen
class UsernameTaken(ConflictError):
    """Another account has this username."""

    code = "username_taken"
    sentence = "This username is taken."


# Requests that cannot be carried out


@attrs.frozen
class InsufficientBalance(Unprocessable):
    """The vault's balance, without its reserved part, does not cover the amount."""

    code = "insufficient_balance"
    sentence = "The vault's available balance does not cover this amount."
    available_atomic: int
    required_atomic: int


@attrs.frozen
class PolicyDenied(Unprocessable):
    """The vault's policy, or the mandate, does not allow this."""

    code = "policy_denied"
    sentence = "The vault's policy, or the mandate, does not allow this: {rule}."
    rule: str


@attrs.frozen
class PolicyInactive(Unprocessable):
    """The vault's policy is paused."""

    code = "policy_inactive"
    sentence = "The vault's policy is paused."


@attrs.frozen
class PaymentExpired(Unprocessable):
    """The Payment has expired, and accepts no new actions."""

    code = "payment_expired"
    sentence = "The Payment expired at {expired_at}."
    expired_at: Instant


@attrs.frozen
class OptionExpired(Unprocessable):
    """The option has expired; its terms are no longer offered."""

    code = "option_expired"
    sentence = "The option has expired; create a new one."


@attrs.frozen
class ActionExpired(Unprocessable):
    """The one-time action, or the wallet's challenge, was not used in time."""

    code = "action_expired"
    sentence = "The {action} expired at {expired_at}; request a new one."
    expired_at: Instant
    action: str = "actionId"


@attrs.frozen
class ActionInvalid(Unprocessable):
    """The action is not the option's current action."""

    code = "action_invalid"
    sentence = "The actionId is not this option's current one; read the option again."


@attrs.frozen
class AmountOutOfRange(Unprocessable):
    """The amount is zero, or outside the limits."""

    code = "amount_out_of_range"
    sentence = "The amount is out of range: {reason}."
    reason: str


@attrs.frozen
class UnsupportedChain(Unprocessable):
    """The deployment does not serve this chain, or the request is bound to another chain."""

    code = "unsupported_chain"
    sentence = "Chain {chain_id} {reason}."
    chain_id: int
    reason: str = "is not supported"


@attrs.frozen
class UnsupportedAsset(Unprocessable):
    """The asset is not supported on this chain, or the request is bound to another asset."""

    code = "unsupported_asset"
    sentence = "{symbol} on chain {chain_id} {reason}."
    chain_id: int
    symbol: str
    reason: str = "is not supported"


@attrs.frozen
class DestinationNotAllowed(Unprocessable):
    """The recipient cannot be paid in this way."""

    code = "destination_not_allowed"
    sentence = "The destination cannot be used: {reason}."
    reason: str


@attrs.frozen
class ScreeningRefused(Unprocessable):
    """The screening provider does not clear the address; nothing was stored of the request.

    Its `outcome` is `review` or `blocked`, and its `reason` the provider's, if it gave one.
    """

    code = "screening_refused"
    sentence = "Screening did not clear the address: {outcome}."
    outcome: str
    reason: str | None = None


@attrs.frozen
class ReconciliationActionNotAllowed(Unprocessable):
    """The Payment waits for a decision, but this one is not possible now."""

    code = "reconciliation_action_not_allowed"
    sentence = "{action} is not possible for this Payment now: {reason}."
    action: str
    reason: str


@attrs.frozen
class CapabilityNotActive(Unprocessable):
    """The capability is not active for the account, or not available here."""

    code = "capability_not_active"
    sentence = "{capability} is not active here."
    capability: str


@attrs.frozen
class WebhookUrlNotAllowed(Unprocessable):
    """The URL breaks a rule for webhook destinations."""

    code = "webhook_url_not_allowed"
    sentence = "The webhook URL is not allowed: {reason}."
    reason: str


# External services


@attrs.frozen
class DependencyFailed(DependencyError):
    """A chain or another service did not answer, or cannot serve; nothing was changed.

    Its `reason` is `operator_out_of_gas` if the environment's operator has too few coins of the
    chain to pay for the transaction; without one there was no answer.
    """

    code = "dependency_failed"
    sentence = "The {dependency} did not answer; nothing was changed."
    dependency: str
    retryable: bool = True
    reason: str | None = None

    @property
    def message(self) -> str:
        """The sentence of its reason."""
        return _DEPENDENCY_REASONS.get(self.reason or "") or super().message

    @property
    def details(self) -> Mapping[str, Any]:
        """The facts; `reason` only if there is one."""
        return {name: value for name, value in super().details.items() if value is not None}


_DEPENDENCY_REASONS = {
    "operator_out_of_gas": "The operator of this environment has too few coins of the chain to pay"
    " for the transaction; nothing was changed.",
}
"""The sentences of the reasons of DependencyFailed."""


@attrs.frozen
class PaymentOptionLimitReached(LimitReached):
    """One payer, or all payers together, created the maximum of options of a Payment."""

    code = "payment_option_limit_reached"
    sentence = "At most {limit} options can be created for this Payment."
    limit: int


@attrs.frozen
class StorageLimitReached(LimitReached):
    """The environment stores as many bytes as it may."""

    code = "storage_limit_reached"
    sentence = (
        "This environment stores {stored_bytes} bytes, and may store {limit_bytes}. New accounts,"
        " wallets and metadata are refused until it stores less, or its operator raises the limit;"
        " payments, webhooks and reads go on."
    )
    stored_bytes: int
    limit_bytes: int
    counted_at: Instant


@attrs.frozen
class Unavailable(ServiceUnavailable):
    """The storage cannot be reached, or is too busy."""

    code = "unavailable"
    sentence = "The service is temporarily unavailable; try again."
    retry_after_s: int = 1
