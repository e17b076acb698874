"""Holds every answer that a test sees against the OpenAPI document: what is answered is described,
and what was accepted is not described more narrowly than it is.

Objects are closed for it, so that a field that no view declares is found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jsonschema_rs import Draft202012Validator, Registry, ValidationError

from payments_core.contracts.versions import Versions
from payments_core_http.errors import LEGACY_PREFIX
from payments_core_http.openapi.document import build_document
from payments_core_http.routing import Route

URI = "urn:document"
SERVER_S_OWN = {"malformed_request", "route_not_found", "method_not_allowed"}
"""Errors of requests that no operation describes."""


class OpenApiChecker:
    """The document of some routes, as a judge of exchanges."""

    def __init__(self, routes: Sequence[Route], versions: Versions, version: str) -> None:
        self.document = closed(build_document(version, routes, versions))
        self._registry = Registry([(URI, self.document)])
        self._paths = [(re.compile(shape(path)), path) for path in self.document["paths"]]
        self._validators: dict[str, Draft202012Validator] = {}
        self.seen: set[tuple[str, str, str]] = set()

    def check(
        self,
        environ: Mapping[str, Any],
        sent: bytes,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
    ) -> None:
        """Fail where the document does not describe this answer, or this request that was taken."""
        method, path = environ["REQUEST_METHOD"], self._path(environ["PATH_INFO"])
        media = headers.get("content-type", "application/json").partition(";")[0]
        answered = json.loads(body) if body and media == "application/json" else None
        operation = self.document["paths"].get(path, {}).get(method.lower())
        if operation is None or method == "HEAD":
            self._check_unrouted(environ["PATH_INFO"], status, answered)
            return
        if answered is not None and status >= 400 and code_of(answered) in SERVER_S_OWN:
            return
        where = f"{method} {path} {status}"
        described = operation["responses"].get(str(status))
        assert described is not None, f"{where} is not described: {body!r}"
        pointer = f"/paths/{escaped(path)}/{method.lower()}/responses/{status}"
        if "$ref" in described:
            pointer = described["$ref"].removeprefix("#")
            described = self.document["components"]["responses"][pointer.rpartition("/")[2]]
        self.seen.add((method, path, str(status)))
        for name in described["headers"]:
            needed = self.document["components"]["headers"][name]["required"]
            assert name.lower() in headers or not needed, f"{where} has no {name}"
        if "content" not in described:
            assert not body, where
            return
        assert media in described["content"], f"{where} is {media}"
        shown = answered if media == "application/json" else body.decode()
        self._validate(f"{pointer}/content/{escaped(media)}/schema", shown, where)
        if status < 300 and method != "GET":  # whose body nobody reads
            self._check_request(operation, f"/paths/{escaped(path)}/{method.lower()}", sent)

    def _check_unrouted(self, path: str, status: int, answered: Any) -> None:
        if status >= 400 and answered is not None:
            if path.startswith(LEGACY_PREFIX):
                assert answered.keys() == {"success", "error", "code", "requestId"}
                return
            assert set(answered) == {"error"}
            assert answered["error"].keys() == {"code", "message", "details"}

    def _check_request(self, operation: Mapping[str, Any], pointer: str, sent: bytes) -> None:
        if "requestBody" not in operation:
            assert sent in (b"", b"{}")
        elif sent:
            schema = f"{pointer}/requestBody/content/application~1json/schema"
            self._validate(schema, json.loads(sent), f"the body of {pointer}")

    def _validate(self, pointer: str, value: Any, where: str) -> None:
        if pointer not in self._validators:
            self._validators[pointer] = Draft202012Validator(
                {"$ref": f"{URI}#{pointer}"}, registry=self._registry
            )
        validator = self._validators[pointer]
        if not validator.is_valid(value):
            faults = [describe(error) for error in validator.iter_errors(value)]
            raise AssertionError(f"{where}: {faults} in {value}")

    def _path(self, asked: str) -> str:
        matching = (path for pattern, path in self._paths if pattern.fullmatch(asked))
        # `/a/{id}` and `/a/b` may both fit; the one that names more is meant.
        return min(matching, key=lambda path: path.count("{"), default="")


def code_of(answered: Any) -> str:
    """The code of an error, in either generation's form."""
    error = answered["error"]
    return str(error["code"] if isinstance(error, dict) else answered["code"])


def describe(error: ValidationError) -> str:
    """A fault with its place; of several forms, those of each."""
    inner = [describe(one) for form in getattr(error.kind, "context", ()) for one in form]
    return f"{'/'.join(map(str, error.instance_path))}: {error.message[:300]} {inner or ''}"


def shape(path: str) -> str:
    return re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))


def escaped(path: str) -> str:
    return path.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")


def closed(whole: dict[str, Any]) -> dict[str, Any]:
    """The document with every object of it closed."""
    copy: dict[str, Any] = json.loads(json.dumps(whole))
    for schema in objects_in(copy):
        schema.setdefault("additionalProperties", False)
    return copy


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every schema of an object with fields."""
    if isinstance(value, list):
        for item in value:
            yield from objects_in(item)
    elif isinstance(value, dict):
        if value.get("type") == "object" and "properties" in value:
            yield value
        for item in value.values():
            yield from objects_in(item)
