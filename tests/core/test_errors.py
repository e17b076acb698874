"""Errors: each has a code of the contract, a sentence, and facts that become JSON."""

from __future__ import annotations

import json
import string

import attrs
import pytest

from payments_core import errors
from payments_core.errors import FieldError, PaymentsError, ValidationFailed

# Contract, section 3, by HTTP status.
CODES = {
    400: "invalid_json validation_error idempotency_key_required unsupported_version "
    "version_mismatch",
    401: "unauthorized client_token_expired provider_signature_invalid",
    403: "insufficient_permissions entitlement_required origin_not_allowed credential_mismatch "
    "account_suspended",
    404: "not_found route_not_found",
    409: "idempotency_conflict idempotency_in_progress conflict invalid_state action_already_used "
    "option_superseded option_locked webhook_url_in_use webhook_limit_reached username_taken",
    422: "insufficient_balance policy_denied policy_inactive payment_expired option_expired "
    "action_expired action_invalid amount_out_of_range unsupported_chain unsupported_asset "
    "destination_not_allowed capability_not_active webhook_url_not_allowed "
    "reconciliation_action_not_allowed screening_refused",
    424: "dependency_failed",
    429: "rate_limited payment_option_limit_reached storage_limit_reached",
    500: "internal_error configuration_error",
    503: "unavailable",
}
WHOSE = {
    errors.BadInput: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.Missing: 404,
    errors.ConflictError: 409,
    errors.Unprocessable: 422,
    errors.DependencyError: 424,
    errors.LimitReached: 429,
    errors.ConfigurationError: 500,
    errors.ServiceUnavailable: 503,
}


def concrete() -> list[type[PaymentsError]]:
    return [
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, PaymentsError) and "code" in vars(item)
    ]


def sample(kind: type[PaymentsError]) -> PaymentsError:
    """An error with facts of the right types."""
    facts = {
        "int": 1_790_000_000_000,
        "Instant": 1_790_000_000_000,
        "str": "x",
        "str | None": "x",
        "bool": True,
        "tuple[str, ...]": ("a", "b"),
        "tuple[FieldError, ...]": (FieldError("a.b", "must be c"),),
    }
    return kind(*(facts[str(field.type)] for field in attrs.fields(kind)))


@pytest.mark.parametrize("kind", concrete())
def test_an_error_has_a_code_of_the_contract_under_the_right_status(
    kind: type[PaymentsError],
) -> None:
    [status] = [status for family, status in WHOSE.items() if issubclass(kind, family)]
    assert kind.code in CODES[status].split()
    assert kind.__doc__


@pytest.mark.parametrize("kind", concrete())
def test_an_error_renders_its_message_and_details(kind: type[PaymentsError]) -> None:
    error = sample(kind)
    assert error.message.endswith((".", "x"))
    assert "{" not in error.message
    assert str(error) == f"{error.code}: {error.message}"
    details = json.loads(json.dumps(error.details))
    for name, value in details.items():
        assert "_" not in name
        if name.endswith("At"):
            assert value == "2026-09-21T14:13:20.000Z"
        if name.endswith("Atomic"):
            assert isinstance(value, str)
    if kind is not ValidationFailed:
        used = {name for _, name, _, _ in string.Formatter().parse(kind.sentence) if name}
        assert used <= {field.name for field in attrs.fields(kind)}


def test_no_two_errors_share_a_code() -> None:
    codes = [kind.code for kind in concrete()]
    assert len(codes) == len(set(codes))


def test_a_validation_error_names_the_first_fault_and_counts_the_rest() -> None:
    one = ValidationFailed.at("proof.type", "must be managed_authorization")
    assert one.message == "proof.type must be managed_authorization."
    more = ValidationFailed((FieldError("", "is empty"), FieldError("b", "is long")))
    assert more.message == "body is empty (and 1 more)."
    assert more.details == {
        "fields": [{"path": "", "message": "is empty"}, {"path": "b", "message": "is long"}]
    }
