"""Turns the operations of the OpenAPI document into functions that build a `Call`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import attrs

from docs.client.names import RESOURCES, VARIANTS
from docs.client.schemas import Types, docstring, python_name, quoted
from payments_core_http.openapi.conventions import Schema, resolved

_SENT_BY_THE_CLIENT = frozenset({"Service-Version", "Idempotency-Key", "If-None-Match", "format"})
"""Parameters that are not arguments: the first two are the connection's, no response is kept for
the third to name, and the client reads JSON alone."""
_CREDENTIALS = {
    "appSecret": "app_secret",
    "appSecretAsBearer": "app_secret_as_bearer",
    "appId": "app_id",
    "sdkKey": "sdk_key",
    "accessToken": "access_token",
}
_BEARERS = {"sessionToken": "session_token", "paymentSecret": "client_secret"}
"""Credentials of one call, and the parameters that take them."""
_PAYMENT_SECRET = "paymentSecretHeader"
_JSON = "application/json"


@attrs.frozen(kw_only=True)
class Method:
    """One method of a resource: an operation, or one of its variants."""

    client: str
    resource: str
    name: str
    path: str
    verb: str
    operation: Schema
    body: str | None = None
    response: str | None = None
    summary: str = ""
    with_payment_secret: bool = False

    @property
    def function(self) -> str:
        """The name of the function that builds its call."""
        return f"{self.resource}_{self.name}"


def list_methods(document: Schema) -> Iterator[Method]:
    """All methods, in the order of the table of names. KeyError for an operation without a row."""
    found = {
        operation["operationId"]: (path, verb, operation)
        for path, item in document["paths"].items()
        for verb, operation in item.items()
    }
    named = {row for rows in RESOURCES.values() for names in rows.values() for row in names}
    if missing := sorted(found.keys() - named):
        raise KeyError(f"add to RESOURCES in docs/client/names.py: {', '.join(missing)}")
    for client, resources in RESOURCES.items():
        for resource, names in resources.items():
            for id, name in names.items():
                path, verb, operation = found[id]
                place = {
                    "client": client, "resource": resource, "path": path, "verb": verb.upper(),
                    "operation": operation,
                }  # fmt: skip
                if id not in VARIANTS:
                    secret = any(_PAYMENT_SECRET in way for way in operation["security"])
                    yield Method(**place, name=name, with_payment_secret=secret)
                for variant, (adds, response, summary) in VARIANTS.get(id, {}).items():
                    secret = adds == _PAYMENT_SECRET
                    yield Method(
                        **place,
                        name=variant,
                        body=None if secret else adds or None,
                        response=response,
                        summary=summary,
                        with_payment_secret=secret,
                    )


@attrs.frozen
class OperationWriter:
    """Writes the function of a method, and requests the structs that it needs."""

    document: Schema
    responses: Types
    bodies: Types

    def write(self, method: Method) -> str:
        """The function's source."""
        operation = method.operation
        parameters = [resolved(one, self.document) for one in operation["parameters"]]
        in_path = [one for one in parameters if one["in"] == "path"]
        rest = [one for one in parameters if one["in"] != "path"]
        takes_key = any(one["name"] == "Idempotency-Key" for one in rest)
        rest = [one for one in rest if one["name"] not in _SENT_BY_THE_CLIENT]
        body = self._body(method)
        required, optional = self._list_arguments(method, rest, body)
        if takes_key:
            optional.append("idempotency_key: str | None = None")
        positional = [f"{python_name(one['name'])}: str" for one in in_path]
        keywords = [*required, *optional]
        arguments = ", ".join([*positional, *(["*", *keywords] if keywords else [])])
        kind, response = self._response(method)
        fields = [
            f'operation="{operation["operationId"]}"',
            f'method="{method.verb}"',
            f'path="{method.path}"',
            f"response={response}",
            *self._credentials(method),
            *self._sent(method, in_path, rest, body),
        ]
        if takes_key:
            fields += ["takes_key=True", "idempotency_key=idempotency_key"]
        calls = kind.partition("[")[0]
        about = textwrap.indent(self._about(method, rest, body), "    ")
        return (
            f"def {method.function}({arguments}) -> {kind}:\n{about}\n"
            f"    return {calls}({', '.join(fields)},)"
        )

    def _body(self, method: Method) -> Schema | None:
        """The schema of the body, an object; None if the operation has none."""
        request = method.operation.get("requestBody")
        if request is None:
            return None
        schema: Schema = request["content"][_JSON]["schema"]
        if method.body is not None:
            schema = {"$ref": f"#/components/schemas/{method.body}"}
        return resolved(schema, self.document)

    def _list_arguments(
        self, method: Method, parameters: list[Schema], body: Schema | None
    ) -> tuple[list[str], list[str]]:
        required, optional = self._secrets(method), []
        for key, schema in (body or {}).get("properties", {}).items():
            kind = self.bodies.annotate(schema)
            if key not in (body or {}).get("required", ()):
                optional.append(f"{python_name(key)}: {kind} | UnsetType = UNSET")
            elif "const" not in schema:
                required.append(f"{python_name(key)}: {kind}")
        for one in parameters:
            about = {"description": one.get("description", "")}
            kind = self.bodies.annotate({**about, **one["schema"]})
            if one["required"]:
                required.append(f"{python_name(one['name'])}: {kind}")
            else:
                optional.append(f"{python_name(one['name'])}: {kind} | None = None")
        return required, optional

    def _secrets(self, method: Method) -> list[str]:
        schemes = {name for way in method.operation["security"] for name in way}
        names = [parameter for scheme, parameter in _BEARERS.items() if scheme in schemes]
        if method.with_payment_secret:
            names.append("payment_secret")
        return [f"{name}: str" for name in names]

    def _credentials(self, method: Method) -> Iterator[str]:
        schemes = {name for way in method.operation["security"] for name in way}
        [own] = [row for name, row in _CREDENTIALS.items() if name in schemes] or ["none"]
        yield f'credential="{own}"'
        for scheme, parameter in _BEARERS.items():
            if scheme in schemes:
                yield f"bearer={parameter}"

    def _sent(
        self, method: Method, in_path: list[Schema], rest: list[Schema], body: Schema | None
    ) -> Iterator[str]:
        if in_path:
            yield f"path_arguments={_pairs(one['name'] for one in in_path)}"
        queries = [one["name"] for one in rest if one["in"] == "query"]
        if queries:
            yield f"query={_pairs(queries)}"
        if method.with_payment_secret:
            yield 'headers={"X-Service-Payment-Secret": payment_secret}'
        if body is not None:
            yield f"body=given({self._body_pairs(body)})"

    def _body_pairs(self, body: Schema) -> str:
        pairs = (
            f'"{key}": ' + (quoted(one["const"]) if "const" in one else python_name(key))
            for key, one in body.get("properties", {}).items()
        )
        return "{" + ", ".join(pairs) + "}"

    def _response(self, method: Method) -> tuple[str, str]:
        """The annotation of the call, and the type of its response."""
        schema = self.response_schema(method)
        name = self.responses.annotate(schema)
        item = self.responses.item_of_page(schema)
        return (f"PageCall[{name}, {item}]" if item else f"Call[{name}]"), name

    def response_schema(self, method: Method) -> Schema:
        """The schema of the response of success."""
        if method.response is not None:
            return {"$ref": f"#/components/schemas/{method.response}"}
        [schema] = {
            str(one["content"][_JSON]["schema"]): one["content"][_JSON]["schema"]
            for status, one in method.operation["responses"].items()
            if status.startswith("2")
        }.values()
        return dict(schema)

    def _about(self, method: Method, parameters: list[Schema], body: Schema | None) -> str:
        operation = method.operation
        whole = [method.summary or operation["summary"]]
        if operation.get("description"):
            whole.append(operation["description"])
        if body is not None and body.get("description"):
            whole.append(body["description"])
        lines = [docstring(" ".join(whole))]
        described = {
            **(body or {}).get("properties", {}),
            **{one["name"]: one for one in parameters},
        }
        sentences = [
            f"`{python_name(key)}`: {one['description'].rstrip('.')}."
            for key, one in described.items()
            if one.get("description") and "const" not in one
        ]
        if not sentences:
            return lines[0]
        opening = lines[0].removeprefix('"""').removesuffix('"""').rstrip()
        wrapped = [
            line for it in sentences for line in textwrap.wrap(it, 92, subsequent_indent="  ")
        ]
        return '"""' + "\n".join([opening, "", *wrapped]).replace("\\d", "\\\\d") + '\n"""'


def _pairs(names: Iterator[str] | list[str]) -> str:
    return "{" + ", ".join(f'"{name}": {python_name(name)}' for name in names) + "}"
