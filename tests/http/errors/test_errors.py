"""The table of statuses, and what an error looks like on the wire (contract §3)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs
import pytest

from payments_core import errors as library
from payments_core.errors import PaymentsError
from payments_core_http import errors
from payments_core_http.errors import encode_error, headers_of, status_of
from payments_core_http.redaction import redact

CONTRACT = {
    400: "invalid_json validation_error idempotency_key_required unsupported_version"
    " version_mismatch malformed_request",
    401: "unauthorized client_token_expired provider_signature_invalid",
    403: "insufficient_permissions entitlement_required origin_not_allowed credential_mismatch"
    " account_suspended form_refused",
    404: "not_found route_not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "idempotency_conflict idempotency_in_progress conflict invalid_state action_already_used"
    " option_superseded option_locked webhook_url_in_use webhook_limit_reached username_taken",
    411: "length_required",
    413: "payload_too_large",
    415: "unsupported_media_type",
    422: "insufficient_balance policy_denied policy_inactive payment_expired option_expired"
    " action_expired action_invalid amount_out_of_range unsupported_chain unsupported_asset"
    " destination_not_allowed capability_not_active webhook_url_not_allowed"
    " reconciliation_action_not_allowed screening_refused",
    424: "dependency_failed",
    429: "rate_limited payment_option_limit_reached storage_limit_reached",
    431: "headers_too_large",
    500: "internal_error configuration_error",
    501: "transfer_encoding_not_supported",
    503: "unavailable",
}
STATUS = {code: status for status, codes in CONTRACT.items() for code in codes.split()}


def kinds(kind: type[PaymentsError] = PaymentsError) -> Iterator[type[PaymentsError]]:
    for below in kind.__subclasses__():
        if below.__module__ in (library.__name__, errors.__name__) and "code" in vars(below):
            yield below
        yield from kinds(below)


ALL = sorted({kind.code: kind for kind in kinds()}.values(), key=lambda kind: kind.code)


def example(kind: type[PaymentsError]) -> PaymentsError:
    """An error of that kind, with a fact of the right shape for every field."""
    facts = {}
    for field in attrs.fields(kind):
        if field.default is attrs.NOTHING:
            wide = "tuple" in str(field.type)
            number = field.name.endswith(("_at", "_atomic", "_id", "limit", "_bytes"))
            facts[field.name] = ("fact",) if wide else 7 if number else "fact"
    if kind is library.ValidationFailed:
        return library.ValidationFailed.at("name", "is wrong")
    return kind(**facts)


def test_there_are_errors() -> None:
    assert len(ALL) > 40


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.code)
def test_every_code_has_the_status_of_the_contract(kind: type[PaymentsError]) -> None:
    assert status_of(kind) == STATUS[kind.code]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.code)
def test_every_error_has_its_envelope(kind: type[PaymentsError]) -> None:
    body = json.loads(encode_error(example(kind), "req_1"))
    assert set(body) == {"error"}
    error = body["error"]
    assert set(error) == {"code", "message", "details"}
    assert error["code"] == kind.code
    assert error["message"] and "{" not in error["message"]
    assert error["details"]["requestId"] == "req_1"


def test_headers_come_with_the_errors_that_need_them() -> None:
    assert headers_of(library.Unauthorized(), "Bearer") == {"WWW-Authenticate": "Bearer"}
    assert headers_of(library.Unavailable(), "Bearer") == {"Retry-After": "1"}
    assert headers_of(errors.MethodNotAllowed(("GET", "HEAD")), "") == {"Allow": "GET, HEAD"}
    assert headers_of(library.NotFound("account"), "Bearer") == {}


@pytest.mark.parametrize(
    "secret",
    [
        "sk_sandbox_" + "a" * 51,
        "rk_production_" + "a" * 51,
        "pk_sandbox_" + "a" * 51,
        "cst_" + "a" * 60,
        "cat_" + "b" * 60,
        "whsec_AAA+/=",
        "payment_x_secret_abc-def",
        "Basic YXBwOnNrX3Nh",
        "Bearer abc.def",
    ],
)
def test_the_log_holds_no_secret(secret: str) -> None:
    reported = redact(f"it said '{secret}' and failed")
    assert "[redacted]" in reported and "and failed" in reported
    assert secret.split("_")[-1] not in reported and secret.split(" ")[-1] not in reported
