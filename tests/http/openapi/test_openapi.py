"""The OpenAPI document: valid, whole, true to what checks requests, and served."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator

from docs.generate import error_kinds
from payments_core.contracts.versions import CURRENT_VERSION, Versions
from payments_core.engine.events import CATALOGUE
from payments_core.errors import ValidationFailed
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.validation.readers import JSON
from payments_core_http.errors import status_of
from payments_core_http.observability import health
from payments_core_http.openapi.document import build_document, format_document
from payments_core_http.openapi.error_responses import errors_of
from payments_core_http.openapi.operations import SCHEMES
from payments_core_http.openapi.resources import operation_id
from payments_core_http.routes import ROUTES
from payments_core_http.routing import Credential, Nothing, Route
from tests.http.api_harness import ApiHarness
from tests.http.checkout import Checkout
from tests.http.openapi_checker import OpenApiChecker, objects_in

WHOLE = build_document()
SCHEMAS = WHOLE["components"]["schemas"]
ROWS = (*health.ROUTES, *ROUTES)
COMMITTED = Path(__file__).parents[3] / "docs" / "reference" / f"openapi-{CURRENT_VERSION}.json"
SERVER_S_OWN = {405: "method_not_allowed", 404: "route_not_found"}
"""Errors of requests that no operation describes."""


FORMATS = FormatChecker(formats=())


@FORMATS.checks("date-time", raises=ValueError)
def is_moment(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


def row_name(route: Route) -> str:
    return route.name


def described(route: Route) -> Any:
    return WHOLE["paths"][route.path][route.method.lower()]


def resolved(value: Any) -> Any:
    while "$ref" in value:
        found: Any = WHOLE
        for part in value["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        value = found
    return value


def contents(value: Any) -> Iterator[Any]:
    """Every place of the document that has a schema and examples."""
    if isinstance(value, list):
        for item in value:
            yield from contents(item)
    elif isinstance(value, dict):
        if "application/json" in value:
            yield value["application/json"]
        for item in value.values():
            yield from contents(item)


def faults(schema: Any, value: Any) -> list[str]:
    whole = {**schema, "components": WHOLE["components"]}
    validator = Draft202012Validator(whole, format_checker=FORMATS)
    return [error.message for error in validator.iter_errors(value)]


class TestTheDocument:
    def test_it_is_valid(self) -> None:
        assert [str(error) for error in OpenAPIV31SpecValidator(WHOLE).iter_errors()] == []

    def test_it_is_json_and_always_the_same(self) -> None:
        assert json.loads(format_document(WHOLE)) == WHOLE
        assert format_document(build_document()) == format_document(WHOLE)

    def test_every_row_is_in_it_and_nothing_else(self) -> None:
        found = {
            f"{method.upper()} {path}"
            for path, methods in WHOLE["paths"].items()
            for method in methods
        }
        assert found == {route.name for route in ROWS}

    def test_every_operation_has_a_name_of_its_own(self) -> None:
        names = [operation_id(route) for route in ROWS]
        assert len(set(names)) == len(names)
        assert all(re.fullmatch("[a-z]+([A-Z][a-z0-9]*)+", name) for name in names), names

    def test_it_names_no_source_that_its_readers_do_not_have(self) -> None:
        assert not re.search(r"contract §|interface \"", format_document(WHOLE))

    def test_every_reference_is_used(self) -> None:
        text = json.dumps(WHOLE)
        unused = [
            f"{kind}/{name}"
            for kind in ("schemas", "parameters", "headers", "responses", "examples")
            for name in WHOLE["components"][kind]
            if f'"#/components/{kind}/{name}"' not in text
        ]
        assert unused == []

    def test_every_example_fits_its_schema(self) -> None:
        seen = 0
        for content in contents(WHOLE):
            examples = [resolved(one)["value"] for one in content.get("examples", {}).values()]
            examples += [content["example"]] if "example" in content else []
            assert examples
            for example in examples:
                seen += 1
                assert faults(content["schema"], example) == [], example
        assert seen > len(ROWS)

    def test_no_example_looks_like_a_credential(self) -> None:
        text = json.dumps(WHOLE["components"]["examples"])
        assert not re.search(r"(?:sk|rk|pk)_\w+_\w{8}|(?:cst|cat|whsec|secret)_[\w+/-]{8}", text)


@pytest.mark.parametrize("route", ROWS, ids=row_name)
class TestEveryRow:
    def test_it_says_what_it_returns(self, route: Route) -> None:
        assert route.response is not None

    def test_its_path_names_and_headers_are_parameters(self, route: Route) -> None:
        found = [resolved(one) for one in described(route)["parameters"]]
        by_place = {(one["in"], one["name"]): one for one in found}
        assert [name for place, name in by_place if place == "path"] == list(route.path_names)
        key = by_place.get(("header", "Idempotency-Key"))
        assert (key is not None) == (route.idempotency != "ignored")
        assert key is None or key["required"] == (route.idempotency == "required")
        assert ("header", "Service-Version") in by_place
        if route.query is not Nothing:
            names = {field.name for field in attrs.fields(route.query)}
            assert {name for place, name in by_place if place == "query"} == names

    def test_its_credentials_open_it(self, route: Route) -> None:
        ways = described(route)["security"]
        assert bool(ways) == (route.credential in SCHEMES)
        needs = route.needs
        for way in ways:
            roles = way[SCHEMES[route.credential]]
            assert set(roles) == set((*needs.scopes, *needs.permissions) if needs else ())
        if route.with_payment_secret:
            assert all("paymentSecretHeader" in way for way in ways)

    def test_every_error_of_it_has_its_status(self, route: Route) -> None:
        responses = described(route)["responses"]
        for status, kinds in errors_of(route).items():
            examples = resolved(responses[str(status)])["content"]["application/json"]["examples"]
            assert list(examples) == [kind.code for kind in kinds]
        assert {kind for kinds in errors_of(route).values() for kind in kinds} >= set(route.errors)

    def test_an_answer_that_may_be_replayed_says_so(self, route: Route) -> None:
        for status, response in described(route)["responses"].items():
            replayed = "Idempotent-Replayed" in resolved(response)["headers"]
            assert replayed == (status < "3" and route.idempotency != "ignored")


def test_every_credential_of_a_row_has_a_scheme() -> None:
    not_described = {"none", "app_id", "operator_session"}  # open to all, or of pages alone
    assert {*SCHEMES, *not_described} == set(get_args(Credential))
    assert set(SCHEMES.values()) < set(WHOLE["components"]["securitySchemes"])


def test_every_error_code_is_described_with_its_status() -> None:
    for kind in error_kinds():
        if SERVER_S_OWN.get(status_of(kind)) == kind.code:
            continue
        uses = [route for route in ROWS if kind in errors_of(route).get(status_of(kind), ())]
        if uses:
            prefixes = {"nested": "", "flat": "legacy_"}
            for form in {route.error_form for route in uses}:
                name = prefixes[form] + kind.code
                example = WHOLE["components"]["examples"][name]["value"]
                error = example["error"] if form == "nested" else example
                assert error["code"] == kind.code
                assert {**error, **error.get("details", {})}.keys() >= {"requestId"}


# Bodies: what the schema says is what the reader does

READER = JSON


def cases() -> Iterator[Any]:
    """For each rule of each field of each body, a value that breaks it alone."""
    seen: set[str] = set()
    for route in ROWS:
        if route.body is Nothing:
            continue
        content = described(route)["requestBody"]["content"]["application/json"]
        for name, example in content["examples"].items():
            if name in seen:
                continue
            seen.add(name)
            schema, value = SCHEMAS[name], resolved(example)["value"]
            for field, broken in broken_fields(schema, value):
                yield pytest.param(route, field, broken, id=f"{name}-{field}-{len(seen)}")


def broken_fields(schema: Any, value: Any) -> Iterator[tuple[str, Any]]:
    for name in schema.get("required", []):
        yield name, {key: it for key, it in value.items() if key != name}
    yield "unheardOf", {**value, "unheardOf": 1}
    for name, field in schema["properties"].items():
        field = resolved(field)
        kinds = field.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and "null" not in kinds:
            yield name, {**value, name: None}
        if "maxLength" in field:
            yield name, {**value, name: "1" * (field["maxLength"] + 1)}
        if field.get("minLength", 0) > 0:
            yield name, {**value, name: "1" * (field["minLength"] - 1)}
        if "enum" in field or "const" in field or "pattern" in field or "format" in field:
            yield name, {**value, name: "%" * max(1, field.get("minLength", 1))}
        if "minimum" in field:
            yield name, {**value, name: field["minimum"] - 1}
        if "maximum" in field:
            yield name, {**value, name: field["maximum"] + 1}
        if "maxItems" in field:
            yield name, {**value, name: [0] * (field["maxItems"] + 1)}
        if field.get("minItems", 0) > 0:
            yield name, {**value, name: []}


@pytest.mark.parametrize(("route", "field", "broken"), list(cases()))
def test_what_the_schema_refuses_the_reader_refuses(route: Route, field: str, broken: Any) -> None:
    with pytest.raises(ValidationFailed) as refused:
        READER.read(broken, route.body)
    assert any(re.match(rf"{field}\b", fault.path) for fault in refused.value.fields)
    schema = described(route)["requestBody"]["content"]["application/json"]["schema"]
    assert faults(schema, broken)


@pytest.mark.parametrize(
    "route", [route for route in ROWS if route.body is not Nothing], ids=row_name
)
def test_the_reader_takes_every_example_of_a_body(route: Route) -> None:
    content = described(route)["requestBody"]["content"]["application/json"]
    for example in content["examples"].values():
        READER.read(resolved(example)["value"], route.body)


def test_every_pattern_is_of_the_whole_text() -> None:
    def patterns(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if isinstance(value.get("pattern"), str):
                yield value["pattern"]
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from patterns(item)

    found = set(patterns(WHOLE))
    assert len(found) > 10
    assert all(one.startswith("^") and one.endswith("$") for one in found), found


def test_every_object_of_a_body_is_closed() -> None:
    bodies = [
        schema
        for route in ROWS
        if route.body is not Nothing
        for name in described(route)["requestBody"]["content"]["application/json"]["examples"]
        for schema in objects_in(SCHEMAS[name])
    ]
    assert bodies
    assert all(schema.get("additionalProperties") is False for schema in bodies)


# Events


def test_every_event_of_the_catalogue_is_a_webhook_with_its_fields() -> None:
    assert list(WHOLE["webhooks"]) == [event.name for event in CATALOGUE]
    for event in CATALOGUE:
        content = WHOLE["webhooks"][event.name]["post"]["requestBody"]["content"]
        payload = resolved(content["application/json"]["schema"]["properties"]["payload"])
        assert list(payload["properties"]) == list(event.fields)
        assert payload["required"] == list(event.fields)


def test_what_happens_is_what_the_webhooks_describe() -> None:
    checkout = Checkout(MemoryStorage())
    payment = checkout.create().json
    assert checkout.authorize(payment, checkout.option(payment)).status == 200
    checkout.advance(60)
    assert checkout.read(payment["id"])["status"] == "succeeded"
    for event in CATALOGUE:
        seen = checkout.api.call("POST", "/v2/sandbox/events", {"name": event.name})
        assert seen.status == 200, seen.body
    events = checkout.api.call("GET", "/v2/console/events?limit=100").json["data"]
    assert {event["name"] for event in events} == {event.name for event in CATALOGUE}
    for event in events:
        content = WHOLE["webhooks"][event["name"]]["post"]["requestBody"]["content"]
        assert faults(content["application/json"]["schema"], event) == [], event


# The judge of the other tests


class TestTheChecker:
    judge = OpenApiChecker(ROUTES, Versions(), CURRENT_VERSION)

    def judged(self, path: str, status: int, body: Any, sent: bytes = b"") -> None:
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path}
        headers = {"service-version": CURRENT_VERSION, "x-request-id": "req"}
        self.judge.check(environ, sent, status, headers, json.dumps(body).encode())

    def test_what_is_described_passes(self) -> None:
        self.judged("/healthz", 200, {"status": "ok"})

    @pytest.mark.parametrize(
        ("status", "body"),
        [
            (200, {}),
            (200, {"status": 1}),
            (200, {"status": "ok", "more": 1}),
            (201, {"status": "ok"}),
            (500, {"error": {"code": "not_found", "message": "", "details": {}}}),
        ],
    )
    def test_what_is_not_described_fails(self, status: int, body: Any) -> None:
        with pytest.raises(AssertionError):
            self.judged("/healthz", status, body)


# As a service returns it


class TestServed:
    def test_it_is_the_document_of_the_app(self, api: ApiHarness) -> None:
        seen = api.call("GET", "/openapi.json", auth=None)
        assert seen.status == 200
        assert seen.headers["content-type"] == "application/json"
        assert seen.json["paths"].keys() >= WHOLE["paths"].keys()
        for name in WHOLE["paths"]:
            assert seen.json["paths"][name] == WHOLE["paths"][name]

    def test_it_may_be_kept_and_asked_for_again(self, api: ApiHarness) -> None:
        seen = api.call("GET", "/openapi.json", auth=None)
        assert seen.headers["cache-control"].startswith("public")
        tag = seen.headers["etag"]
        again = api.call("GET", "/openapi.json", auth=None, headers={"If-None-Match": tag})
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == tag
        other = api.call("GET", "/openapi.json", auth=None, headers={"If-None-Match": '"x"'})
        assert other.body == seen.body

    def test_it_answers_head_and_no_other_method(self, api: ApiHarness) -> None:
        assert api.call("HEAD", "/openapi.json", auth=None).status == 200
        assert api.call("POST", "/openapi.json", auth=None).status == 405


def test_the_committed_copy_is_the_text_that_the_command_writes() -> None:
    text = COMMITTED.read_text(encoding="utf-8")
    assert format_document(json.loads(text)) == text
