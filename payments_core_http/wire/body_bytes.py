"""The bytes of a request's body, and whether it has one: no request is taken to have none because
its length is unknown or nothing could be read.

A server reports a length, or says how the request was sent. In HTTP/1 a request without
Content-Length and Transfer-Encoding has no body (RFC 9112 §6.3). Chunks and HTTP/2 need no length:
only the end of the body shows it. But an empty read is no proof: uWSGI does not decode chunks, and
granian and a2wsgi take a client that has disconnected for the end of the body.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from payments_core.errors import ValidationFailed
from payments_core_http.errors import LengthRequired, PayloadTooLarge

_log = logging.getLogger("payments_core_http")


class BodyIncomplete(Exception):
    """The client has disconnected within its body, or the server cannot read it."""


def declared_length(environ: Mapping[str, Any]) -> int | None:
    """The body's length; 0 also if the server says that there is none, and None if only its end
    shows it.

    Raises ValidationFailed, and LengthRequired if there is a media type and no way to find the end.
    """
    declared = str(environ.get("CONTENT_LENGTH") or "").strip()
    if declared:
        if not (declared.isascii() and declared.isdigit()) or len(declared) > 18:
            raise ValidationFailed.at("Content-Length", "must be a number of bytes")
        if int(declared) or not environ.get("HTTP_TRANSFER_ENCODING"):
            return int(declared)
        return None  # chunks have a length of their own (RFC 9112 §6.3)
    if _ends_by_itself(environ) or environ.get("wsgi.input_terminated"):
        return None
    # Such an input has no end: a read may wait for ever. A gateway that hides how the request was
    # sent passes on its media type.
    if environ.get("CONTENT_TYPE"):
        raise LengthRequired()
    return 0


def read_body_bytes(environ: Mapping[str, Any], length: int | None, limit_bytes: int) -> bytes:
    """The whole body of this `declared_length`; empty only if the server says that there is none.

    Raises PayloadTooLarge, LengthRequired and BodyIncomplete.
    """
    if length is not None and length > limit_bytes:
        raise PayloadTooLarge(limit_bytes)
    raw = _read_up_to(environ, limit_bytes + 1 if length is None else length)
    if len(raw) > limit_bytes:
        raise PayloadTooLarge(limit_bytes)
    if length is not None and len(raw) < length:
        raise BodyIncomplete("the body ended before its Content-Length")
    if length is None and not raw and _ends_by_itself(environ) and not _is_bare_delete(environ):
        raise LengthRequired()
    return raw


def _ends_by_itself(environ: Mapping[str, Any]) -> bool:
    """Whether the request may have a body without a length: in chunks, or after HTTP/1."""
    is_http1 = str(environ.get("SERVER_PROTOCOL", "")).upper().startswith("HTTP/1")
    return bool(environ.get("HTTP_TRANSFER_ENCODING")) or not is_http1


def _is_bare_delete(environ: Mapping[str, Any]) -> bool:
    """Whether nothing suggests a body: clients send no length with DELETE (RFC 9110 §8.6)."""
    suggests = environ.get("HTTP_TRANSFER_ENCODING") or environ.get("CONTENT_TYPE")
    return environ.get("REQUEST_METHOD") == "DELETE" and not suggests


def _read_up_to(environ: Mapping[str, Any], limit_bytes: int) -> bytes:
    """At most so many bytes; servers may deliver them in pieces."""
    pieces, missing = [], limit_bytes
    while missing > 0:
        try:
            piece = environ["wsgi.input"].read(missing)
        except Exception as error:  # each server has its own for a client that has disconnected
            _log.info("a body could not be read: %s", type(error).__name__)
            raise BodyIncomplete("the body could not be read to its end") from error
        if not piece:
            break
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)
