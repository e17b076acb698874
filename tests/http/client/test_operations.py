"""The client held against the OpenAPI document: operations, parameters, responses, both ways."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pytest

from docs.client.modules import CLIENT, build_modules
from payments_core_http.client import async_resources, codes, operations, resources, structs
from payments_core_http.client.calls import Call, PageCall
from payments_core_http.client.structs import Page
from payments_core_http.openapi.conventions import resolved
from payments_core_http.openapi.document import build_document

DOCUMENT = build_document()
DESCRIBED = {
    operation["operationId"]: (verb.upper(), path, operation)
    for path, item in DOCUMENT["paths"].items()
    for verb, operation in item.items()
}
FUNCTIONS: Mapping[str, Callable[..., Call[Any]]] = {
    name: function
    for name, function in vars(operations).items()
    if inspect.isfunction(function) and function.__module__ == operations.__name__
}
OF_THE_CONNECTION = {"Service-Version", "Idempotency-Key"}
NOT_OFFERED = {"If-None-Match", "format"}  # the client keeps no response, and reads JSON alone
MAPS = {"balances", "postings", "capabilities", "confirmations", "payload", "metadata", "types"}
"""Fields with keys of their own, where a new one is of the same type as the others."""
SECRETS = {
    "session_token": "sessionToken",
    "client_secret": "paymentSecret",
    "payment_secret": "paymentSecretHeader",
}
CREDENTIALS = {
    "app_secret": "appSecret",
    "app_secret_as_bearer": "appSecretAsBearer",
    "app_id": "appId",
    "sdk_key": "sdkKey",
    "access_token": "accessToken",
}


def make_call(name: str) -> Call[Any]:
    """The call with every argument given, each with its own name as its value."""
    function = FUNCTIONS[name]
    return function(**{argument: argument for argument in inspect.signature(function).parameters})


def bodies(operation: Any) -> Iterator[dict[str, Any]]:
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    forms = schema["oneOf"] if "discriminator" in schema else [schema]
    yield from (resolved(form, DOCUMENT) for form in forms)


def test_the_generated_modules_are_what_the_code_says() -> None:
    stale = [
        name
        for name, source in build_modules(DOCUMENT).items()
        if (CLIENT / name).read_text("utf-8") != source
    ]
    assert stale == [], "run `make client`"


def test_every_operation_has_a_method_and_every_method_an_operation() -> None:
    assert {make_call(name).operation for name in FUNCTIONS} == set(DESCRIBED)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_method_sends_what_the_document_describes(name: str) -> None:
    call = make_call(name)
    verb, path, operation = DESCRIBED[call.operation]
    assert (call.method, call.path) == (verb, path)
    found = [resolved(one, DOCUMENT) for one in operation["parameters"]]
    described = {(one["in"], one["name"]) for one in found if one["name"] not in NOT_OFFERED}
    sent = {("path", key) for key in call.path_arguments} | {("query", key) for key in call.query}
    sent |= {("header", "Service-Version")}
    sent |= {("header", "Idempotency-Key")} if call.takes_key else set()
    assert sent == described
    if "requestBody" in operation:
        assert set(call.body or ()) in [set(one["properties"]) for one in bodies(operation)]
    else:
        assert call.body is None
    signature = inspect.signature(FUNCTIONS[name])
    given = {SECRETS[key] for key in signature.parameters if key in SECRETS}
    given |= {CREDENTIALS[call.credential]} if call.credential != "none" else set()
    assert given in ([set(way) for way in operation["security"]] or [set()])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_required_is_required(name: str) -> None:
    call = make_call(name)
    _, _, operation = DESCRIBED[call.operation]
    required = {
        key
        for key, one in inspect.signature(FUNCTIONS[name]).parameters.items()
        if one.default is inspect.Parameter.empty and key not in SECRETS
    }
    found = [resolved(one, DOCUMENT) for one in operation["parameters"]]
    wanted = {one["name"] for one in found if one["required"]} - OF_THE_CONNECTION
    if "requestBody" in operation:
        [body] = [
            one for one in bodies(operation) if set(one["properties"]) == set(call.body or ())
        ]
        wanted |= {
            key for key in body.get("required", ()) if "const" not in body["properties"][key]
        }
    assert len(required) == len(wanted), (required, wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_answer_decodes_whole_and_tolerates_what_is_new(name: str) -> None:
    call = make_call(name)
    found = examples(call)
    assert found
    for example in found:
        seen = msgspec.convert(example, type=call.response)
        decoded = msgspec.to_builtins(seen)
        absent = {name for name in decoded.keys() - example.keys() if decoded[name] is None}
        assert decoded.keys() - absent == example.keys()
        msgspec.convert(with_news(example), type=call.response)
        assert isinstance(call, PageCall) == isinstance(seen, Page)


def examples(call: Call[Any]) -> list[Any]:
    """The examples of its response that the document gives, none where several forms share them."""
    _, _, operation = DESCRIBED[call.operation]
    found = [
        resolved(example, DOCUMENT)["value"]
        for status, response in operation["responses"].items()
        if status.startswith("2")
        for example in response["content"]["application/json"]["examples"].values()
    ]
    if call.operation in ("createPayment", "readOwnPayment"):
        fields = {one.encode_name for one in msgspec.structs.fields(call.response)}
        return [one for one in found if one.keys() == fields]
    return found


def with_news(value: Any, key_of_value: str = "") -> Any:
    """The same response of a later service: a field more in each object, and unknown statuses."""
    if isinstance(value, dict):
        changed = {key: with_news(one, key) for key, one in value.items()}
        return changed if key_of_value in MAPS else {**changed, "addedLater": {"by": ["a release"]}}
    if isinstance(value, list):
        return [with_news(one) for one in value]
    if isinstance(value, str) and key_of_value in ("status", "intent", "type", "providerCode"):
        return "added_later"
    return value


def test_both_kinds_of_resources_have_every_operation() -> None:
    def offered(module: Any, base: type) -> dict[str, inspect.Signature]:
        return {
            f"{name.removeprefix('Async')}.{attribute}": inspect.signature(method)
            for name, kind in vars(module).items()
            if inspect.isclass(kind) and issubclass(kind, base) and kind is not base
            for attribute, method in vars(kind).items()
            if inspect.isfunction(method) and not attribute.startswith("_")
        }

    plain = offered(resources, resources.Resource)
    asynchronous = offered(async_resources, async_resources.AsyncResource)
    assert len(plain) == len(FUNCTIONS)
    assert plain.keys() == asynchronous.keys()
    for name, signature in plain.items():
        assert list(signature.parameters) == list(asynchronous[name].parameters)


def test_the_client_loads_nothing_of_the_service() -> None:
    script = (
        "import sys, payments_core_http.client;"
        "print({'falcon', 'nacl', 'sqlite3', 'payments_core.service', 'payments_core.storage'}"
        " & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_every_error_code_of_the_document_has_its_class() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    described = {
        one["properties"]["error"]["properties"]["code"]["const"]
        for name, one in schemas.items()
        if name.endswith("Error") and "properties" in one["properties"]["error"]
    }
    assert set(codes.BY_CODE) == described


def test_what_the_service_hides_in_a_repr_the_client_hides() -> None:
    fields = {
        re_name
        for path in sorted((CLIENT.parent).glob("v[12]/**/*.py"))
        for line in path.read_text("utf-8").splitlines()
        if "repr=False" in line and ":" in line
        for re_name in [line.strip().partition(":")[0]]
        if re_name.isidentifier()
    }
    assert len(fields) > 8
    snake = {_snake(name) for name in fields}
    assert snake - structs.SECRET_FIELDS == set()


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
