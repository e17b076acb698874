"""Turns the section `webhooks` of the OpenAPI document into one struct for each event."""

from __future__ import annotations

from collections.abc import Mapping

from docs.client.schemas import Types, docstring
from payments_core_http.openapi.conventions import Schema

_HEADING = '''\
"""The events of webhooks: a struct for each event, with its payload."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

from payments_core_http.client.structs import Response, Known'''
_UNKNOWN = '''\
class UnknownEvent(Envelope, frozen=True, kw_only=True):
    """An event that a later service sends, and that this release does not know."""

    payload: Mapping[str, Any]'''
_ABOUT_ALL = (
    '"""Any event, distinguished by its class: `match event: case PaymentSucceeded(): ...`."""'
)


def write_events(document: Schema) -> str:
    """The module's source."""
    operations = {
        entry["post"]["operationId"].removeprefix("on"): entry["post"]
        for entry in document["webhooks"].values()
    }
    forms = {kind: _form_of(operation) for kind, operation in operations.items()}
    envelope = _find_what_all_have(forms)
    types = Types({**document["components"]["schemas"], "Envelope": envelope}, "response")
    types.annotate({"$ref": "#/components/schemas/Envelope"})
    classes = []
    for kind, form in forms.items():
        payload = types.annotate({"$ref": form["payload"]["$ref"]})
        classes.append(
            f"class {kind}(Envelope, frozen=True, kw_only=True):\n"
            f"    {docstring(operations[kind]['summary'])}\n\n"
            f'    name: Literal["{form["name"]["const"]}"]\n    payload: {payload}'
        )
    rows = ", ".join(f'"{form["name"]["const"]}": {kind}' for kind, form in forms.items())
    tables = (
        f"Event: TypeAlias = {' | '.join([*forms, 'UnknownEvent'])}\n{_ABOUT_ALL}\n\n"
        f"BY_NAME: Mapping[str, type[Event]] = {{{rows}}}\n"
    )
    return "\n\n\n".join([_HEADING, *types.written.values(), *classes, _UNKNOWN, tables])


def _form_of(operation: Schema) -> Mapping[str, Schema]:
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    fields: Mapping[str, Schema] = schema["properties"]
    return fields


def _find_what_all_have(forms: Mapping[str, Mapping[str, Schema]]) -> Schema:
    """The envelope, open for other names and for the contracts of later dates."""
    shared = {key: one for key, one in next(iter(forms.values())).items() if key != "payload"}
    fields = {
        key: {rule: value for rule, value in one.items() if rule != "const"}
        for key, one in shared.items()
    }
    return {"description": "What every event has.", "properties": fields, "required": list(fields)}
