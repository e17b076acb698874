"""What counts as an addition to a dated contract, and what would break who was written for it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docs.openapi_compatibility import additive, main
from payments_core.contracts.versions import CURRENT_VERSION, Versions
from payments_core_http.openapi.document import build_document, format_document

Change = Callable[[dict[str, Any]], object]

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
OLD = build_document()


def operation(whole: dict[str, Any], method: str, path: str) -> Any:
    return whole["paths"][path][method.lower()]


def schema(whole: dict[str, Any], name: str) -> Any:
    return whole["components"]["schemas"][name]


def field(whole: dict[str, Any], name: str, of: str) -> Any:
    return schema(whole, of)["properties"][name]


def add_field(whole: dict[str, Any], of: str, name: str, *, required: bool = False) -> None:
    owner = schema(whole, of)
    owner["properties"][name] = {"type": "string"}
    if required:
        owner.setdefault("required", []).append(name)


def drop_field(whole: dict[str, Any], of: str, name: str) -> None:
    owner = schema(whole, of)
    del owner["properties"][name]
    if name in owner.get("required", []):
        owner["required"].remove(name)


def answer(whole: dict[str, Any], method: str, path: str, status: str) -> Any:
    found = operation(whole, method, path)["responses"][status]
    return found


def add_code(whole: dict[str, Any], status: str, name: str) -> None:
    """Give createPayment's errors of a status one more code."""
    other = copy.deepcopy(schema(whole, "ConflictError"))
    other["properties"]["error"]["properties"]["code"]["const"] = name
    whole["components"]["schemas"]["New"] = other
    errors_of(whole, "POST", "/v2/payments", status).append({"$ref": "#/components/schemas/New"})


def errors_of(whole: dict[str, Any], method: str, path: str, status: str) -> Any:
    responses = operation(whole, method, path)["responses"]
    if "$ref" in responses[status]:  # its own, apart from those who share it
        name = responses[status]["$ref"].rpartition("/")[2]
        responses[status] = copy.deepcopy(whole["components"]["responses"][name])
    content = responses[status]["content"]["application/json"]
    content["schema"].setdefault("oneOf", [])
    return content["schema"]["oneOf"]


def parameters(whole: dict[str, Any], method: str, path: str) -> Any:
    return operation(whole, method, path)["parameters"]


NEW_PARAMETER = {"name": "x", "in": "query", "required": False, "schema": {"type": "string"}}

ADDITIVE: dict[str, Change] = {
    "nothing": lambda d: None,
    "a new route": lambda d: d["paths"].update({"/v2/new": d["paths"]["/healthz"]}),
    "a new method": lambda d: d["paths"]["/healthz"].update(
        post={**operation(d, "GET", "/healthz"), "operationId": "other"}
    ),
    "a new field of an answer": lambda d: add_field(d, "Account", "new", required=True),
    "a new optional field of an answer": lambda d: add_field(d, "Account", "new"),
    "a new optional field of a body": lambda d: add_field(d, "CreateAccount", "new"),
    "a new optional parameter": lambda d: parameters(d, "GET", "/v2/accounts").append(
        NEW_PARAMETER
    ),
    "a field of a body need not be there": lambda d: schema(d, "CreateAccount")["required"].remove(
        "subjectType"
    ),
    "a body takes another value": lambda d: field(d, "subjectType", "CreateAccount")["enum"].append(
        "household"
    ),
    "a body takes longer texts": lambda d: field(d, "externalUserId", "CreateAccount").update(
        maxLength=500
    ),
    "a body takes null": lambda d: field(d, "subjectType", "CreateAccount").update(
        type=["string", "null"], enum=["individual", "business", None]
    ),
    "a body has no pattern": lambda d: field(d, "username", "CreateAccount").pop("pattern"),
    "a body takes a further form": lambda d: schema(d, "CreatePayment")["properties"][
        "destination"
    ]["oneOf"].append({"$ref": "#/components/schemas/BankDestination"}),
    "a body need not be there": lambda d: operation(d, "POST", "/v2/accounts")[
        "requestBody"
    ].update(required=False),
    "an answer is never null": lambda d: field(d, "username", "Account").update(type="string"),
    "an answer has fewer values": lambda d: field(d, "status", "Account")["enum"].remove("closed"),
    "an answer has a pattern": lambda d: field(d, "address", "Wallet").update(pattern="^0x"),
    "a new error code": lambda d: add_code(d, "409", "new_code"),
    "a new status of error": lambda d: operation(d, "GET", "/healthz")["responses"].update(
        {"418": operation(d, "GET", "/healthz")["responses"]["500"]}
    ),
    "a new header of an answer": lambda d: answer(d, "GET", "/healthz", "200")["headers"].update(
        {"X-New": {"description": "", "required": False, "schema": {"type": "string"}}}
    ),
    "a new event": lambda d: d["webhooks"].update(
        {"payment.new": d["webhooks"]["payment.created"]}
    ),
    "a new field of an event": lambda d: add_field(d, "PaymentPayload", "new", required=True),
    "a further way in": lambda d: operation(d, "GET", "/v2/accounts")["security"].append(
        {"accessToken": []}
    ),
    "a right less is needed": lambda d: operation(d, "GET", "/v2/accounts").update(
        security=[{"appSecret": []}]
    ),
    "other words": lambda d: operation(d, "GET", "/healthz").update(
        summary="Else.", description="Else."
    ),
    "another example": lambda d: d["components"]["examples"]["Account"].update(value={}),
    "another name of a schema": lambda d: (
        d["components"]["schemas"].update(Healthy=schema(d, "Health")),
        answer(d, "GET", "/healthz", "200")["content"]["application/json"].update(
            schema={"$ref": "#/components/schemas/Healthy"}
        ),
    ),
}

BREAKING: dict[str, tuple[Change, str]] = {
    "a route is gone": (
        lambda d: d["paths"].pop("/v2/accounts"),
        "POST /v2/accounts: the route is gone",
    ),
    "a method is gone": (
        lambda d: d["paths"]["/v2/accounts"].pop("get"),
        "GET /v2/accounts: the route is gone",
    ),
    "a field of an answer is gone": (
        lambda d: drop_field(d, "Account", "username"),
        "username is gone",
    ),
    "an optional field of an answer is gone": (
        lambda d: drop_field(d, "Delivery", "nextAttemptAt"),
        "nextAttemptAt is gone",
    ),
    "a field of an answer may be missing": (
        lambda d: schema(d, "Account")["required"].remove("username"),
        "username need not be there",
    ),
    "a field deep inside an answer is gone": (
        lambda d: drop_field(d, "Escrow", "address"),
        "escrow.address is gone",
    ),
    "a closed answer has a new field": (
        lambda d: add_field(d, "FundingOperation", "new"),
        "fundingOperation.new is not known",
    ),
    "a closed answer is open": (
        lambda d: schema(d, "FundingOperation").pop("additionalProperties"),
        "may have fields that are not known",
    ),
    "an answer may be null": (
        lambda d: field(d, "status", "Account").update(
            type=["string", "null"], enum=["active", "suspended", "closed", None]
        ),
        "status may be of type null",
    ),
    "an answer has another type": (
        lambda d: field(d, "externalUserId", "Account").update(type="integer"),
        "externalUserId may be of type integer",
    ),
    "an answer has a further value": (
        lambda d: field(d, "status", "Account")["enum"].append("frozen"),
        "status may be frozen",
    ),
    "an answer may be any value": (
        lambda d: field(d, "status", "Account").pop("enum"),
        "status is not only one of",
    ),
    "an answer has another pattern": (
        lambda d: field(d, "accountId", "Account").update(pattern="^account_"),
        "accountId has a pattern",
    ),
    "an answer has a further form": (
        lambda d: answer(d, "GET", "/v2/accounts/{accountId}", "200")["content"][
            "application/json"
        ].update(
            schema={
                "anyOf": [
                    {"$ref": "#/components/schemas/Account"},
                    {"$ref": "#/components/schemas/Health"},
                ]
            }
        ),
        "id need not be there",
    ),
    "an answer has no body": (
        lambda d: answer(d, "GET", "/healthz", "200").pop("content"),
        "no body any more",
    ),
    "a status of success is gone": (
        lambda d: operation(d, "POST", "/v2/accounts/{accountId}/vaults")["responses"].pop("200"),
        "200 is gone",
    ),
    "a status of success is new": (
        lambda d: operation(d, "POST", "/v2/accounts")["responses"].update(
            {"202": answer(d, "POST", "/v2/accounts", "201")}
        ),
        "202 is a new status of success",
    ),
    "a header of an answer is gone": (
        lambda d: answer(d, "GET", "/healthz", "200")["headers"].pop("X-Request-Id"),
        "the header X-Request-Id is gone",
    ),
    "a header of an answer may be missing": (
        lambda d: d["components"]["headers"]["X-Request-Id"].update(required=False),
        "the header X-Request-Id need not be there",
    ),
    "a header of an answer has another type": (
        lambda d: d["components"]["headers"]["Retry-After"]["schema"].update(type="string"),
        "the header Retry-After may be of type string",
    ),
    "a body has a new required field": (
        lambda d: add_field(d, "CreateAccount", "new", required=True),
        "new need not be there",
    ),
    "a field of a body is required now": (
        lambda d: schema(d, "CreateAccount")["required"].append("email"),
        "email need not be there",
    ),
    "a field of a body is gone": (
        lambda d: drop_field(d, "CreateAccount", "email"),
        "email is not known",
    ),
    "a body takes fewer values": (
        lambda d: field(d, "subjectType", "CreateAccount")["enum"].remove("business"),
        "subjectType may be business",
    ),
    "a body takes null no more": (
        lambda d: field(d, "username", "CreateAccount").update(type="string"),
        "username may be of type null",
    ),
    "a body takes shorter texts": (
        lambda d: field(d, "externalUserId", "CreateAccount").update(maxLength=64),
        "externalUserId has a maxLength",
    ),
    "a body asks for longer texts": (
        lambda d: field(d, "externalUserId", "CreateAccount").update(minLength=8),
        "externalUserId has a minLength",
    ),
    "a body takes fewer items": (
        lambda d: field(d, "wallets", "CreateAccount").update(maxItems=5),
        "wallets has a maxItems",
    ),
    "a body takes smaller numbers": (
        lambda d: field(d, "expiresInSeconds", "CreateClientSession").update(maximum=900),
        "expiresInSeconds has a maximum",
    ),
    "a body has a new pattern": (
        lambda d: field(d, "externalUserId", "CreateAccount").update(pattern="^[a-z]+$"),
        "externalUserId has a pattern",
    ),
    "a body has another format": (
        lambda d: field(d, "expiresAt", "CreateMandate").update(format="date"),
        "expiresAt has a format",
    ),
    "a body has another type": (
        lambda d: field(d, "amount", "CreatePayment").update(type="number"),
        "amount may be of type string",
    ),
    "a body has another default": (
        lambda d: field(d, "expiresInSeconds", "CreateClientSession").update(default=60),
        "expiresInSeconds has another default",
    ),
    "a body takes a form less": (
        lambda d: schema(d, "CreatePayment")["properties"]["destination"]["oneOf"].pop(),
        "what was taken is refused",
    ),
    "a field deep inside a body is required now": (
        lambda d: schema(d, "WalletInput")["required"].append("label"),
        "wallets[].label need not be there",
    ),
    "metadata has fewer keys": (
        lambda d: schema(d, "Metadata").update(maxProperties=5),
        "metadata has a maxProperties",
    ),
    "a body is required now": (
        lambda d: operation(d, "POST", "/v2/payments/{paymentId}/refunds")["requestBody"].update(
            required=True
        ),
        "a body is now required",
    ),
    "a body is no longer accepted": (
        lambda d: operation(d, "POST", "/v2/accounts").pop("requestBody"),
        "the body is no longer accepted",
    ),
    "a parameter is gone": (
        lambda d: parameters(d, "GET", "/v2/accounts").pop(),
        "is gone",
    ),
    "a parameter is required now": (
        lambda d: d["components"]["parameters"]["limit"].update(required=True),
        "query parameter limit is now required",
    ),
    "a new parameter is required": (
        lambda d: parameters(d, "GET", "/v2/accounts").append({**NEW_PARAMETER, "required": True}),
        "query parameter x is new and required",
    ),
    "a header is required now": (
        lambda d: d["components"]["parameters"]["Idempotency-Key"].update(required=True),
        "header parameter Idempotency-Key is now required",
    ),
    "a parameter takes fewer values": (
        lambda d: d["components"]["parameters"]["limit"]["schema"].update(maximum=50),
        "has a maximum",
    ),
    "an id in a path has another pattern": (
        lambda d: d["components"]["parameters"]["accountId"]["schema"].update(pattern="^a$"),
        "path parameter accountId: what was taken is refused",
    ),
    "an error code is gone": (
        lambda d: errors_of(d, "POST", "/v2/accounts", "409").pop(0),
        "409: the code conflict is gone",
    ),
    "a status of error is gone": (
        lambda d: operation(d, "POST", "/v2/accounts")["responses"].pop("409"),
        "409 is gone",
    ),
    "a detail of an error is gone": (
        lambda d: schema(d, "InvalidStateError")["properties"]["error"]["properties"]["details"][
            "properties"
        ].pop("action"),
        "error.details.action is gone",
    ),
    "another credential is asked for": (
        lambda d: operation(d, "GET", "/v2/accounts").update(
            security=[{"accessToken": ["v2:accounts"]}]
        ),
        "no longer opens it",
    ),
    "a second credential is asked for": (
        lambda d: operation(d, "GET", "/v2/client/me").update(
            security=[{"accessToken": ["account:read"], "paymentSecretHeader": []}]
        ),
        "no longer opens it",
    ),
    "a further right is needed": (
        lambda d: operation(d, "GET", "/v2/accounts").update(
            security=[{"appSecret": ["v2:accounts", "v2:kyc"]}]
        ),
        "no longer opens it",
    ),
    "a route is open to all": (
        lambda d: operation(d, "GET", "/v2/accounts").update(security=[]),
        "asks for no credential any more",
    ),
    "an open route asks for a credential": (
        lambda d: operation(d, "GET", "/healthz").update(security=[{"appSecret": []}]),
        "the security none no longer opens it",
    ),
    "a credential is sent in another way": (
        lambda d: d["components"]["securitySchemes"]["appSecret"].update(scheme="bearer"),
        "the credential appSecret",
    ),
    "an operation has another name": (
        lambda d: operation(d, "GET", "/healthz").update(operationId="isHealthy"),
        "operationId checkHealth is now isHealthy",
    ),
    "an event is gone": (
        lambda d: d["webhooks"].pop("payment.late"),
        "payment.late: the event is gone",
    ),
    "a field of an event is gone": (
        lambda d: drop_field(d, "PaymentPayload", "labels"),
        "payload.labels is gone",
    ),
    "a header of an event is gone": (
        lambda d: d["webhooks"]["payment.late"]["post"]["parameters"].pop(0),
        "payment.late: the header x-service-event is gone",
    ),
}


def changed(change: Change) -> dict[str, Any]:
    new = copy.deepcopy(OLD)
    change(new)
    return new


@pytest.mark.parametrize("name", ADDITIVE)
def test_an_addition_breaks_nobody(name: str) -> None:
    assert additive(OLD, changed(ADDITIVE[name])) == []


@pytest.mark.parametrize("name", BREAKING)
def test_what_breaks_is_named(name: str) -> None:
    change, why = BREAKING[name]
    found = additive(OLD, changed(change))
    assert any(why in sentence for sentence in found), found


@pytest.mark.parametrize("date", Versions().supported)
def test_the_committed_contract_of_each_date_is_only_added_to(date: str) -> None:
    committed = json.loads((REFERENCE / f"openapi-{date}.json").read_text(encoding="utf-8"))
    assert committed["info"]["version"] == date
    assert additive(committed, build_document(date)) == []


class TestWriting:
    def test_the_dates_are_listed(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--dates"]) == 0
        assert capsys.readouterr().out.split() == list(Versions().supported)

    @staticmethod
    def write(file: Path, change: Change) -> None:
        whole = build_document()
        change(whole)
        file.write_text(json.dumps(whole), encoding="utf-8")

    def test_a_document_is_written_where_there_was_none(self, tmp_path: Path) -> None:
        file = tmp_path / "openapi.json"
        assert main([CURRENT_VERSION, str(file)]) == 0
        assert file.read_text(encoding="utf-8") == format_document(build_document())

    def test_an_addition_is_written(self, tmp_path: Path) -> None:
        file = tmp_path / "openapi.json"
        self.write(file, lambda whole: whole["paths"].pop("/v2/payments"))
        assert main([CURRENT_VERSION, str(file)]) == 0
        assert file.read_text(encoding="utf-8") == format_document(build_document())

    def test_what_breaks_is_named_and_not_written(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "openapi.json"
        self.write(
            file, lambda whole: whole["paths"].update({"/v2/old": whole["paths"]["/healthz"]})
        )
        before = file.read_bytes()
        assert main([CURRENT_VERSION, str(file)]) == 1
        assert "GET /v2/old: the route is gone" in capsys.readouterr().err
        assert file.read_bytes() == before

    @pytest.mark.parametrize("text", ["", "{}", "[]", "not json"])
    def test_another_file_is_left_alone(
        self, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "notes.txt"
        file.write_text(text, encoding="utf-8")
        assert main([CURRENT_VERSION, str(file)]) == 1
        assert "is not an OpenAPI document of ours" in capsys.readouterr().err
        assert file.read_text(encoding="utf-8") == text

    @pytest.mark.parametrize("arguments", [[], [CURRENT_VERSION], ["2020-01-01", "openapi.json"]])
    def test_other_arguments_are_refused_with_the_usage(
        self, arguments: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(arguments) == 2
        assert "docs.openapi_compatibility VERSION FILE" in capsys.readouterr().err
