"""The body of a request: how much of it is read, and whether it is JSON (contract §3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from payments_core.credentials.secrets import holds_credential
from payments_core.errors import InvalidJson, ValidationFailed
from payments_core.validation.faults import join_path
from payments_core.validation.metadata import shorten_name
from payments_core_http.errors import PayloadTooLarge, UnsupportedMediaType
from payments_core_http.routing import Route
from payments_core_http.wire import json_text
from payments_core_http.wire.structuring import Reader

MAX_BODY_BYTES = 64 * 1024

_JSON = re.compile(r'application/json(?: *; *charset *= *"?utf-8"?)?', re.ASCII | re.IGNORECASE)
# Characters of a credential, or an escape that may hide one: other bodies need no closer check.
_CREDENTIAL_HINT = re.compile(rb"[srp]k_|cst_|cat_|ops_|whsec_|_secret_|\\u")
_BODY_READER = Reader()


def read_document(route: Route, environ: Mapping[str, Any]) -> Any:
    """The parsed document, which holds no credential; None if the body is empty.

    Raises UnsupportedMediaType, PayloadTooLarge, InvalidJson, ValidationFailed.
    """
    if route.method == "GET":
        return None
    raw = _read_whole(environ)
    if not raw:
        if not route.body_may_be_empty:
            raise InvalidJson("the body is empty")
        return None
    document = json_text.parse(raw)
    if _CREDENTIAL_HINT.search(raw):
        _refuse_credentials(document)
    if document is None:  # `null` is refused as elsewhere, and is not an empty body
        _BODY_READER.read(None, route.body)
    return document


def read_body(route: Route, document: Any) -> Any:
    """The wire object of a document. Raises ValidationFailed."""
    if route.method == "GET":
        return None
    return _BODY_READER.read({} if document is None else document, route.body)


def _read_whole(environ: Mapping[str, Any]) -> bytes:
    length = _declared_length(environ)
    if length == 0:
        return b""
    media_type = environ.get("CONTENT_TYPE", "").strip()
    encoding = environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    if not _JSON.fullmatch(media_type) or encoding not in ("identity", ""):
        # Whether a body of unknown length is empty shows only when it is read.
        if length is not None or _read_up_to(environ, 1):
            raise UnsupportedMediaType()
        return b""
    if length is not None and length > MAX_BODY_BYTES:
        raise PayloadTooLarge(MAX_BODY_BYTES)
    raw = _read_up_to(environ, MAX_BODY_BYTES + 1 if length is None else length)
    if len(raw) > MAX_BODY_BYTES:
        raise PayloadTooLarge(MAX_BODY_BYTES)
    if length is not None and len(raw) < length:
        raise InvalidJson("the body ended before its Content-Length")
    return raw


def _declared_length(environ: Mapping[str, Any]) -> int | None:
    """The body's length; None if only its end shows it (a chunked body)."""
    declared = environ.get("CONTENT_LENGTH", "").strip()
    if declared:
        if not (declared.isascii() and declared.isdigit()) or len(declared) > 18:
            raise ValidationFailed.at("Content-Length", "must be a number of bytes")
        return int(declared)
    # Without a length, a body has an end only if the server says so.
    chunked = environ.get("HTTP_TRANSFER_ENCODING") or environ.get("wsgi.input_terminated")
    return None if chunked else 0


def _read_up_to(environ: Mapping[str, Any], limit_bytes: int) -> bytes:
    """At most so many bytes; servers may deliver them in pieces."""
    pieces, missing = [], limit_bytes
    while missing > 0:
        piece = environ["wsgi.input"].read(missing)
        if not piece:
            break
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


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
