"""The body of a request: how much of it is read, and whether it is JSON (contract §3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from payments_core.credentials.secrets import holds_credential
from payments_core.errors import InvalidJson, ValidationFailed
from payments_core.validation.faults import join_path
from payments_core.validation.metadata import shorten_name
from payments_core.validation.readers import JSON
from payments_core_http.errors import UnsupportedMediaType
from payments_core_http.routing import Route
from payments_core_http.wire import json_text
from payments_core_http.wire.body_bytes import BodyIncomplete, declared_length, read_body_bytes
from payments_core_http.wire.limits import MAX_BODY_BYTES

_JSON = re.compile(r'application/json(?: *; *charset *= *"?utf-8"?)?', re.ASCII | re.IGNORECASE)
# Characters of a credential, or an escape that may hide one: other bodies need no closer check.
_CREDENTIAL_HINT = re.compile(rb"[srp]k_|cst_|cat_|ops_|whsec_|_secret_|\\u")


def read_json_bytes(route: Route, environ: Mapping[str, Any]) -> bytes:
    """The bytes of the body; empty if the server says that there is none, and for a GET.

    Raises UnsupportedMediaType, PayloadTooLarge, LengthRequired, InvalidJson, ValidationFailed.
    """
    if route.method == "GET":
        return b""
    media_type = environ.get("CONTENT_TYPE", "").strip()
    encoding = environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    is_json = _JSON.fullmatch(media_type) and encoding in ("identity", "")
    length = declared_length(environ)
    if length and not is_json:
        raise UnsupportedMediaType()
    try:
        raw = read_body_bytes(environ, length, MAX_BODY_BYTES)
    except BodyIncomplete as error:
        raise InvalidJson(str(error)) from error
    if raw and not is_json:  # whether a body of unknown length is empty shows only now
        raise UnsupportedMediaType()
    return raw


def parse_document(route: Route, raw: bytes) -> Any:
    """The document in a body of JSON, which holds no credential; None if the body is empty.

    Raises InvalidJson and ValidationFailed.
    """
    if route.method == "GET":
        return None
    if not raw:
        if not route.body_may_be_empty:
            raise InvalidJson("the body is empty")
        return None
    document = json_text.parse(raw)
    if _CREDENTIAL_HINT.search(raw):
        _refuse_credentials(document)
    if document is None:  # `null` is refused as elsewhere, and is not an empty body
        JSON.read(None, route.body)
    return document


def read_document(route: Route, environ: Mapping[str, Any]) -> Any:
    """The document in the body. Raises as `read_json_bytes` and `parse_document` do."""
    return parse_document(route, read_json_bytes(route, environ))


def read_body(route: Route, document: Any) -> Any:
    """The wire object of a document. Raises ValidationFailed."""
    if route.method == "GET":
        return None
    return JSON.read({} if document is None else document, route.body)


def _refuse_credentials(document: Any, path: str = "") -> None:
    """A credential in a body would be stored, and shown to others: refuse it, and do not use it."""
    if isinstance(document, dict):
        for name, value in document.items():
            _refuse_credentials(name, path)
            _refuse_credentials(
                value, join_path(path, shorten_name(name)) if path else shorten_name(name)
            )
    elif isinstance(document, list):
        for index, value in enumerate(document):
            _refuse_credentials(value, join_path(path, f"[{index}]"))
    elif isinstance(document, str) and holds_credential(document):
        raise ValidationFailed.at(path, "contains a credential; send it in a header")
