"""Writes the OpenAPI document of a dated contract, if it does not break the users of the last one.

    python -m docs.openapi_compatibility VERSION FILE
    python -m docs.openapi_compatibility --dates         list the versions

A dated contract changes only by additions (interface "Versioning" 7): new routes, new optional
fields of bodies, new fields of responses, new events and new error codes. All else is named here.
Requests may become wider and responses narrower, never the other way round.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from docs.schema_containment import Containment
from payments_core.contracts.versions import Versions
from payments_core_http.openapi.conventions import Schema, resolved
from payments_core_http.openapi.document import build_document, format_document

Document = Mapping[str, Any]

_JSON = "application/json"


def additive(old: Document, new: Document) -> list[str]:
    """A sentence for each change that is not an addition; an empty list if all are."""
    requests = Containment(old, new, responses=False)
    responses = Containment(new, old, responses=True)
    return list(_Comparison(old, new, requests, responses).changes())


@attrs.frozen
class _Comparison:
    old: Document
    new: Document
    requests: Containment
    responses: Containment

    def changes(self) -> Iterator[str]:
        """Every breaking change, in the order of the older document."""
        yield from self._schemes()
        for path, methods in self.old["paths"].items():
            for method, operation in methods.items():
                name = f"{method.upper()} {path}"
                other = self.new["paths"].get(path, {}).get(method)
                if other is None:
                    yield f"{name}: the route is gone"
                else:
                    yield from (f"{name}: {why}" for why in self._operation(operation, other))
        for event, entry in self.old["webhooks"].items():
            other = self.new["webhooks"].get(event)
            if other is None:
                yield f"{event}: the event is gone"
            else:
                yield from (f"{event}: {why}" for why in self._event(entry, other))

    def _schemes(self) -> Iterator[str]:
        schemes = self.new["components"]["securitySchemes"]
        for name, scheme in self.old["components"]["securitySchemes"].items():
            if _bare(scheme) != _bare(schemes.get(name, {})):
                yield f"the credential {name} is gone or is sent in another way"

    def _operation(self, old: Schema, new: Schema) -> Iterator[str]:
        if old["operationId"] != new["operationId"]:
            yield f"operationId {old['operationId']} is now {new['operationId']}"
        yield from self._security(old["security"], new["security"])
        yield from self._parameters(old, new)
        yield from self._body(old, new)
        yield from self._responses(old["responses"], new["responses"])

    def _security(self, old: list[Schema], new: list[Schema]) -> Iterator[str]:
        """Each security scheme must stay, with the same credentials and no further rights."""
        ways = new or [{}]
        for way in old or [{}]:
            if not any(
                way.keys() == one.keys() and all(set(one[name]) <= set(way[name]) for name in one)
                for one in ways
            ):
                yield f"the security {way or 'none'} no longer opens it"
        if old and not new:
            yield "it asks for no credential any more"

    # Requests

    def _parameters(self, old: Schema, new: Schema) -> Iterator[str]:
        before, after = self._named(old, self.old), self._named(new, self.new)
        for key, parameter in before.items():
            where = f"{key[0]} parameter {key[1]}"
            other = after.get(key)
            if other is None:
                yield f"{where} is gone"
                continue
            if other["required"] and not parameter["required"]:
                yield f"{where} is now required"
            yield from self._request(parameter["schema"], other["schema"], where)
        for key, parameter in after.items():
            if key not in before and parameter["required"]:
                yield f"{key[0]} parameter {key[1]} is new and required"

    def _named(self, operation: Schema, document: Document) -> dict[tuple[str, str], Schema]:
        found = [resolved(one, document) for one in operation.get("parameters", ())]
        return {(one["in"], one["name"]): one for one in found}

    def _body(self, old: Schema, new: Schema) -> Iterator[str]:
        before, after = old.get("requestBody"), new.get("requestBody")
        if after is None:
            if before is not None:
                yield "the body is no longer accepted"
            return
        if after["required"] and not (before and before["required"]):
            yield "a body is now required"
        if before is not None:
            yield from self._request(_schema(before), _schema(after), "the body")

    def _request(self, old: Schema, new: Schema, where: str) -> Iterator[str]:
        for misfit in self.requests.misfits(old, new):
            yield f"{where}: what was taken is refused: {misfit}"
        for path in _changed_defaults(
            resolved(old, self.old), resolved(new, self.new), (self.old, self.new)
        ):
            yield f"{where}: {path} has another default"

    # Responses

    def _responses(self, old: Schema, new: Schema) -> Iterator[str]:
        for status, given in old.items():
            if status not in new:
                yield f"{status} is gone"
                continue
            before, after = resolved(given, self.old), resolved(new[status], self.new)
            yield from self._headers(before, after, status)
            if status >= "4":
                yield from self._codes(before, after, status)
            elif "content" in before:
                yield from self._answer(before, after, f"{status}")
        for status in new:
            if status not in old and status < "4" and any(one < "3" for one in old):
                yield f"{status} is a new status of success"

    def _headers(self, old: Schema, new: Schema, status: str) -> Iterator[str]:
        for name, header in old.get("headers", {}).items():
            other = new.get("headers", {}).get(name)
            if other is None:
                yield f"{status}: the header {name} is gone"
                continue
            before, after = resolved(header, self.old), resolved(other, self.new)
            if before["required"] and not after["required"]:
                yield f"{status}: the header {name} need not be there"
            for misfit in self.responses.misfits(after["schema"], before["schema"], name):
                yield f"{status}: the header {misfit}"

    def _codes(self, old: Schema, new: Schema, status: str) -> Iterator[str]:
        before, after = _codes(old, self.old), _codes(new, self.new)
        for code, schema in before.items():
            if code not in after:
                yield f"{status}: the code {code} is gone"
                continue
            for misfit in self.responses.misfits(after[code], schema):
                yield f"{status} {code}: {misfit}"

    def _answer(self, old: Schema, new: Schema, where: str) -> Iterator[str]:
        if "content" not in new:
            yield f"{where}: the response has no body any more"
            return
        for misfit in self.responses.misfits(_schema(new), _schema(old)):
            yield f"{where}: {misfit}"

    def _event(self, old: Schema, new: Schema) -> Iterator[str]:
        before, after = old["post"], new["post"]
        headers = self._named(after, self.new)
        for key, header in self._named(before, self.old).items():
            other = headers.get(key)
            if other is None or (header["required"] and not other["required"]):
                yield f"the header {key[1]} is gone or need not be there"
        yield from self._answer(before["requestBody"], after["requestBody"], "the event")


def _schema(holder: Schema) -> Schema:
    schema: Schema = holder["content"][_JSON]["schema"]
    return schema


def _codes(response: Schema, document: Document) -> dict[str, Schema]:
    """The errors of a response by their codes."""
    schema = _schema(response)
    return {_code_of(resolved(form, document)): form for form in schema.get("oneOf", [schema])}


def _code_of(form: Schema) -> str:
    """The code of an error's schema, which is within `error`, or next to it in v1."""
    fields = form["properties"]
    return str(fields["error"].get("properties", fields)["code"]["const"])


def _changed_defaults(
    old: Schema, new: Schema, documents: tuple[Document, Document], path: str = ""
) -> Iterator[str]:
    """The fields with another default, which changes the meaning of a request without them.

    A field that was required has no default that anybody relies on.
    """
    if path and old.get("default") != new.get("default"):
        yield path
    for name, field in old.get("properties", {}).items():
        other = new.get("properties", {}).get(name)
        if other is not None and name not in old.get("required", ()):
            inner, outer = resolved(field, documents[0]), resolved(other, documents[1])
            yield from _changed_defaults(
                inner, outer, documents, f"{path}.{name}" if path else name
            )
    befores, afters = old.get("oneOf", ()), new.get("oneOf", ())
    for before, after in zip(befores, afters, strict=False):
        if "$ref" in before and "$ref" in after:
            inner, outer = resolved(before, documents[0]), resolved(after, documents[1])
            yield from _changed_defaults(inner, outer, documents, path)


def _bare(scheme: Schema) -> Schema:
    return {name: value for name, value in scheme.items() if name != "description"}


def main(arguments: list[str]) -> int:
    """Write the document over the file, or say on stderr why not; 0, 1 or 2."""
    if arguments == ["--dates"]:
        print(*Versions().supported, sep="\n")
        return 0
    if len(arguments) != 2 or arguments[0] not in Versions().supported:
        print(__doc__, file=sys.stderr)
        return 2
    version, path = arguments[0], Path(arguments[1])
    whole = build_document(version)
    if path.exists():
        try:
            breaking = additive(json.loads(path.read_text(encoding="utf-8")), whole)
        except (OSError, ValueError, KeyError, TypeError):
            print(f"{path} is not an OpenAPI document of ours.", file=sys.stderr)
            return 1
        if breaking:
            print(f"The clients of {path} would break:", *breaking, sep="\n", file=sys.stderr)
            return 1
    path.write_text(format_document(whole), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
