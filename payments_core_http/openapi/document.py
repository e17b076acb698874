"""The whole document: paths, components, webhooks and examples, in an order that never changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from payments_core.contracts.versions import CURRENT_VERSION, Versions
from payments_core_http.observability import health
from payments_core_http.older_objects import OlderObjects
from payments_core_http.openapi.conventions import Schema
from payments_core_http.openapi.error_responses import EXAMPLES, ErrorResponses
from payments_core_http.openapi.examples import make_example
from payments_core_http.openapi.operations import PAYMENT_SECRET_HEADER, Operations
from payments_core_http.openapi.resources import group_by_resource
from payments_core_http.openapi.schemas import COMPONENTS, Schemas, replace_texts
from payments_core_http.openapi.webhooks import add_examples as add_webhook_examples
from payments_core_http.openapi.webhooks import build_webhooks, make_header_parameters
from payments_core_http.routes import ROUTES
from payments_core_http.routing import Route

SPECIFICATION = "3.1.0"
DEFAULT_VERSIONS = Versions()
_WIDTH = 96

ABOUT = """\
Stablecoin Payments and accounts.

Amounts are decimal strings, and those in an asset's smallest unit digit strings; times are ISO 8601
in UTC. A field that a body does not list is refused, and all faults of a body are reported at
once. Every response, errors too, carries `X-Request-Id` and `Service-Version`. Paths that accept
GET accept HEAD as well.
"""


def build_document(
    version: str | None = None,
    routes: Sequence[Route] | None = None,
    versions: Versions = DEFAULT_VERSIONS,
    public_url: str | None = None,
) -> Schema:
    """The OpenAPI 3.1 document of a dated contract, of the newest unless given, as JSON values.

    `routes` are the application's, and `versions` the deployment's; without them, the document has
    all routes. `public_url` is where it is reached; without it, at the root of the document's host.
    """
    version = version or versions.current
    whole = _build_newest(version, routes)
    if public_url is not None:
        whole["servers"][0]["url"] = public_url
    if changes := versions.changes_since(version):
        _make_older(whole, OlderObjects(whole, changes))
    return whole


def _make_older(whole: Schema, objects: OlderObjects) -> None:
    """Replace the schemas, and the examples of their values, by those of an older contract."""
    components = whole["components"]
    for name, example in components["examples"].items():
        if name in objects.schemas:
            example["value"] = objects.render(example["value"], {"$ref": COMPONENTS + name})
    for entry in whole["webhooks"].values():
        content = entry["post"]["requestBody"]["content"]["application/json"]
        content["example"] = objects.render(content["example"], content["schema"])
    components["schemas"] = objects.schemas


def _build_newest(version: str, routes: Sequence[Route] | None) -> Schema:
    """The newest document, under a date."""
    rows = (*health.ROUTES, *(ROUTES if routes is None else routes))
    schemas = Schemas()
    failures = ErrorResponses(schemas)
    operations = Operations(schemas, failures)
    tags: list[Schema] = []
    paths: dict[str, Schema] = {}
    for title, members in group_by_resource(rows):
        tags.append({"name": title})
        for route in members:
            paths.setdefault(route.path, {})[route.method.lower()] = operations.add_operation(
                route, title
            )
    events = build_webhooks(schemas, version)
    shared = {**operations.make_shared_parameters((version,)), **make_header_parameters()}
    whole = schemas.resolve_names(
        {
            "openapi": SPECIFICATION,
            "info": {
                "title": "payments-core",
                "version": version,
                "description": ABOUT,
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/", "description": "This deployment."}],
            "tags": [*tags, {"name": "Webhooks"}],
            "paths": {path: paths[path] for path in sorted(paths)},
            "webhooks": events,
            "components": {
                "securitySchemes": SECURITY_SCHEMES,
                "parameters": dict(sorted(shared.items())),
                "headers": RESPONSE_HEADERS,
                "responses": dict(sorted(failures.responses.items())),
                "examples": dict(failures.examples),
            },
        }
    )
    _add_examples(whole)
    if version != CURRENT_VERSION:  # the examples are written under this release's newest date
        whole = replace_texts(whole, {CURRENT_VERSION: version})
    whole["components"]["examples"] = dict(sorted(whole["components"]["examples"].items()))
    return whole


def format_document(whole: Schema) -> str:
    """The document as it is committed and printed, always the same bytes: a value that fits is on
    one line, and otherwise each key has its own, so that a change is a change of few lines."""
    return _format_value(whole, 0) + "\n"


def _format_value(value: Any, depth: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + depth <= _WIDTH or not isinstance(value, dict | list):
        return line
    inner, outer = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, list):
        listed = (_format_value(item, depth + 1) for item in value)
        return "[" + inner + f",{inner}".join(listed) + outer + "]"
    items = (f"{json.dumps(name)}: {_format_value(it, depth + 1)}" for name, it in value.items())
    return "{" + inner + f",{inner}".join(items) + outer + "}"


def _add_examples(whole: Schema) -> None:
    """Give every body and every success an example; a body of several forms has one of each."""
    schemas, shared = whole["components"]["schemas"], whole["components"]["examples"]
    add_webhook_examples(whole["webhooks"], schemas)
    for path in whole["paths"].values():
        for operation in path.values():
            for content in _find_contents(operation):
                content["examples"] = _refer_to_examples(content["schema"], schemas, shared)


def _find_contents(operation: Schema) -> list[Schema]:
    holders = [operation["requestBody"]] if "requestBody" in operation else []
    holders += [
        response
        for status, response in operation["responses"].items()
        if status.startswith("2") and "content" in response
    ]
    return [holder["content"]["application/json"] for holder in holders]


def _refer_to_examples(schema: Schema, schemas: Schema, shared: Schema) -> Schema:
    """References to an example of each form that the schema has, which are kept in `shared`."""
    forms = schema.get("oneOf") or schema.get("anyOf") or [schema]
    names = [form["$ref"].removeprefix(COMPONENTS) for form in forms]
    for name in names:
        shared.setdefault(name, {"value": make_example({"$ref": COMPONENTS + name}, schemas)})
    return {name: {"$ref": EXAMPLES + name} for name in names}


def _bearer_scheme(text: str) -> Schema:
    return {"type": "http", "scheme": "bearer", "description": text}


SECURITY_SCHEMES: Schema = {
    "appSecret": {
        "type": "http",
        "scheme": "basic",
        "description": "App id and app secret, from the partner's backend only.",
    },
    "appId": {
        "type": "http",
        "scheme": "basic",
        "description": "The app id alone, without a secret, with or without a colon after it.",
    },
    "sdkKey": {
        "type": "apiKey",
        "in": "header",
        "name": "x-sdk-key",
        "description": "A publishable key (`pk_`), which is not secret.",
    },
    "appSecretAsBearer": _bearer_scheme("The app secret, without the app id."),
    "accessToken": _bearer_scheme("The result of exchanging a client session's token."),
    "sessionToken": _bearer_scheme("A client session's token, which works once."),
    "paymentSecret": _bearer_scheme("The `clientSecret` of the path's Payment."),
    PAYMENT_SECRET_HEADER: {
        "type": "apiKey",
        "in": "header",
        "name": "X-Service-Payment-Secret",
        "description": "The `clientSecret` of the path's Payment, together with an access token.",
    },
}


def _header_component(text: str, kind: str, *, always: bool = False, **keywords: Any) -> Schema:
    return {"description": text, "required": always, "schema": {"type": kind, **keywords}}


RESPONSE_HEADERS: Schema = {
    "ETag": _header_component("Changes exactly when the response does.", "string"),
    "Idempotent-Replayed": _header_component(
        "Present if the response is that of an earlier request.", "string", const="true"
    ),
    "Link": _header_component(
        'With CSV: the next page, if there is one, with `rel="next"`.', "string"
    ),
    "RateLimit-Limit": _header_component(
        "The quota of the policy with the fewest requests left, if limits are enforced.", "integer"
    ),
    "RateLimit-Remaining": _header_component("The remaining requests.", "integer"),
    "RateLimit-Reset": _header_component("The number of seconds until it resets.", "integer"),
    "Retry-After": _header_component("After how many seconds to try again.", "integer"),
    "Service-Version": _header_component("The contract of this response.", "string", always=True),
    "WWW-Authenticate": _header_component("The required scheme.", "string", always=True),
    "X-Request-Id": _header_component("The id of the request.", "string", always=True),
}
