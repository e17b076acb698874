"""The complete generated modules of the client: their headings, imports and classes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from docs.client.events import write_events
from docs.client.names import ATTRIBUTE_PREFIXES, RESOURCES
from docs.client.operations import Method, OperationWriter, list_methods
from docs.client.schemas import Types, class_name, docstring, python_name
from payments_core_http.openapi.conventions import Schema

CLIENT = Path(__file__).parents[2] / "payments_core_http" / "client"

_NOTE = "# Printed from the OpenAPI document by docs/client: run `make client`.\n"
_FUTURE = "from __future__ import annotations\n\n"
_STRUCT_IMPORTS = """\
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

"""
_STATUS_CLASSES = {
    "400": "InvalidRequest", "401": "Unauthenticated", "403": "Forbidden", "404": "Missing",
    "405": "InvalidRequest", "408": "InvalidRequest", "409": "Conflicting",
    "411": "InvalidRequest",
    "413": "InvalidRequest", "415": "InvalidRequest", "422": "Unprocessable",
    "424": "DependencyError", "429": "LimitReached", "431": "InvalidRequest",
    "500": "ServiceError", "501": "InvalidRequest", "503": "ServiceError",
}  # fmt: skip
_OPERATION_HEADING = '"""Every operation of the service as a function that builds its call."""'


def build_modules(document: Schema) -> Mapping[str, str]:
    """The sources of the generated modules, for a document, by the names of their files."""
    return {name: _format(name, source) for name, source in write_modules(document).items()}


def write_modules(document: Schema) -> Mapping[str, str]:
    """The same before ruff formats them, and removes the imports that they do not need."""
    schemas = document["components"]["schemas"]
    responses, bodies = Types(schemas, "response"), Types(schemas, "body")
    writer = OperationWriter(document, responses, bodies)
    methods = list(list_methods(document))
    functions = [writer.write(method) for method in methods]
    modules = {
        "operations.py": _operations(functions, responses, bodies),
        "responses.py": _structs("What the service returns.", responses, "Response, Known, Page"),
        "bodies.py": _structs("The parts of requests to the service.", bodies, "Body"),
        "resources.py": _resources(methods, asynchronous=False),
        "async_resources.py": _resources(methods, asynchronous=True),
        "codes.py": _codes(document),
        "events.py": write_events(document),
        "contract.py": _contract(document),
    }
    return {name: _NOTE + source for name, source in modules.items()}


def _operations(functions: Iterable[str], responses: Types, bodies: Types) -> str:
    whole = "\n\n\n".join(functions)
    return (
        f"{_OPERATION_HEADING}\n\n{_FUTURE}{_STRUCT_IMPORTS}"
        "from payments_core_http.client.responses import "
        f"({', '.join(sorted(responses.written))})\n"
        f"from payments_core_http.client.bodies import ({', '.join(sorted(bodies.written))})\n"
        "from payments_core_http.client.calls import Call, PageCall, given\n"
        "from payments_core_http.client.structs import Page\n\n\n" + whole + "\n"
    )


def _contract(document: Schema) -> str:
    return (
        '"""The dated contract that this client is written for, and sends with each call."""\n\n'
        f'{_FUTURE}API_VERSION = "{document["info"]["version"]}"\n'
    )


def _structs(heading: str, types: Types, bases: str) -> str:
    classes = "\n\n\n".join(types.written.values())
    return (
        f'"""{heading}"""\n\n{_FUTURE}{_STRUCT_IMPORTS}'
        f"from payments_core_http.client.structs import {bases}\n\n\n{classes}\n"
    )


def _resources(methods: list[Method], *, asynchronous: bool) -> str:
    prefix, module = ("Async", "async_connection") if asynchronous else ("", "connection")
    paged, kind = set(_paged(methods)), ("sending", "listing")
    parts = []
    for (_, resource), rows in groupby(methods, lambda one: (one.client, one.resource)):
        lines = [
            f"    {row.name}: Final = {kind[row.function in paged]}(operations.{row.function})"
            for row in rows
        ]
        name = class_name(resource)
        about = f"Operations on {resource.replace('_', ' ')}."
        parts.append(
            f'class {prefix}{name}({prefix}Resource):\n    """{about}"""\n\n' + "\n".join(lines)
        )
    for client, resources in RESOURCES.items():
        names = {
            resource.removeprefix(ATTRIBUTE_PREFIXES[client]): f"{prefix}{class_name(resource)}"
            for resource in resources
        }
        declared = "\n".join(f"    {name}: {kind}" for name, kind in names.items())
        assigned = "\n".join(
            f"        self.{name} = {kind}(connection)" for name, kind in names.items()
        )
        parts.append(
            f'class {prefix}{client}Resources:\n    """What {_HOLDERS[client]} can do."""\n\n'
            f"{declared}\n\n"
            f"    def __init__(self, connection: {prefix}Connection) -> None:\n{assigned}"
        )
    return (
        f'"""The resources of the {"asynchronous " if asynchronous else ""}clients."""\n\n'
        f"{_FUTURE}from typing import Final\n\n"
        "from payments_core_http.client import operations\n"
        f"from payments_core_http.client.{module} import "
        f"{prefix}Connection, {prefix}Resource, listing, sending\n\n\n"
        + "\n\n\n".join(parts)
        + "\n"
    )


_HOLDERS = {
    "Partner": "a partner's backend",
    "Account": "the holder of an access token",
    "Public": "anyone with a Payment's secret or link",
}


def _paged(methods: list[Method]) -> Iterable[str]:
    for method in methods:
        if any(one.get("$ref", "").endswith("/cursor") for one in method.operation["parameters"]):
            yield method.function


def _codes(document: Schema) -> str:
    """A class for each error code, a subclass of its status's class."""
    statuses = {
        code: (status, schema)
        for item in document["paths"].values()
        for operation in item.values()
        for status, response in operation["responses"].items()
        if status >= "4"
        for code, schema in _errors(response, document)
    }
    types = Types(document["components"]["schemas"], "response")
    classes = []
    for code, (status, schema) in sorted(statuses.items()):
        error = schema["properties"]["error"]["properties"]
        details = {
            key: one
            for key, one in error["details"]["properties"].items()
            if key not in ("requestId", "retryAfterSeconds", "fields")
        }
        facts = {python_name(key): types.annotate(one) for key, one in details.items()}
        classes.append(
            f"class {class_name(code)}({_STATUS_CLASSES[status]}):\n"
            f'    {docstring(schema["description"])}\n\n    code = "{code}"\n'
            + "\n".join(f"    {name}: {_fact(kind)}" for name, kind in facts.items())
        )
    bases = ", ".join(sorted({"ApiError", *(_STATUS_CLASSES[row[0]] for row in statuses.values())}))
    table = ", ".join(f'"{code}": {class_name(code)}' for code in sorted(statuses))
    return (
        '"""One class of error for each code that the service returns."""\n\n'
        f"{_FUTURE}from collections.abc import Mapping\nfrom typing import Any, Literal\n\n"
        "from payments_core_http.client.structs import Known\n"
        f"from payments_core_http.client.errors import ({bases})\n\n\n"
        + "\n\n\n".join(classes)
        + f"\n\n\nBY_CODE: Mapping[str, type[ApiError]] = {{{table}}}\n"
    )


def _fact(kind: str) -> str:
    """An older or newer service may omit a detail; times stay as they are written."""
    kind = kind.replace("datetime", "str")
    return kind if kind.endswith("None") else f"{kind} | None"


def _errors(response: Schema, document: Schema) -> Iterable[tuple[str, Schema]]:
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    schema = response["content"]["application/json"]["schema"]
    for form in schema.get("oneOf", [schema]):
        name = form["$ref"].rpartition("/")[2]
        whole = document["components"]["schemas"][name]
        if "error" in whole["properties"] and "properties" in whole["properties"]["error"]:
            yield whole["properties"]["error"]["properties"]["code"]["const"], whole


def _format(name: str, source: str) -> str:
    """The source as ruff leaves it, without the imports that it does not need."""
    ruff = [sys.executable, "-m", "ruff"]
    place = ["--stdin-filename", str(CLIENT / name), "-"]
    for command in (["check", "--fix-only", "--quiet"], ["format", "--quiet"]):
        source = subprocess.run(
            [*ruff, *command, *place], input=source, capture_output=True, text=True, check=True
        ).stdout
    return source
