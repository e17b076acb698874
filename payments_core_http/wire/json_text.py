"""JSON as we read it: RFC 8259, strict, with every number's value kept exactly.

Numbers without fraction and exponent become `int`, all others `Decimal`: nothing passes through
binary floating point. `canonicalize` gives the text by which two bodies are compared (contract §4).
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from payments_core.errors import InvalidJson
from payments_core.json_depth import exceeds_depth
from payments_core_http.wire.limits import MAX_DEPTH, MAX_DIGITS

_quote = json.JSONEncoder(ensure_ascii=False).encode


def parse(raw: bytes) -> Any:
    """The document in `raw`. Raises InvalidJson with the reason."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidJson("it is not UTF-8") from None
    if text.startswith("\ufeff"):
        raise InvalidJson("it begins with a byte order mark")
    if exceeds_depth(raw, MAX_DEPTH):
        raise InvalidJson(f"it is nested deeper than {MAX_DEPTH}")
    try:
        document = _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidJson(f"{error.msg} at character {error.pos}") from None
    return document


def canonicalize(document: Any) -> str:
    """RFC 8785's text of a parsed document, but numbers as they were written, not as doubles.

    So `1.0` and `1` differ, and no digit is lost. Strings must hold no lone surrogates.
    """
    if isinstance(document, dict):
        # RFC 8785 sorts by UTF-16 code units, which can differ from Python's order by code points.
        is_plain = all(map(str.isascii, document))
        names = sorted(document, key=None if is_plain else _utf16_code_units)
        return "{" + ",".join([f"{_quote(n)}:{canonicalize(document[n])}" for n in names]) + "}"
    if isinstance(document, list):
        return "[" + ",".join(map(canonicalize, document)) + "]"
    if isinstance(document, str):
        return _quote(document)
    if document is None:
        return "null"
    if isinstance(document, bool):
        return "true" if document else "false"
    return str(document)


def _utf16_code_units(name: str) -> bytes:
    return name.encode("utf-16-be")


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        raise InvalidJson("an object has the same key twice")
    return built


def _parse_integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise InvalidJson("a number has too many digits")
    return int(text)


def _parse_decimal(text: str) -> Decimal:
    if len(text) > MAX_DIGITS:
        raise InvalidJson("a number has too many digits")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise InvalidJson("a number's exponent is out of range") from None


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is not a JSON value")


_decoder = json.JSONDecoder(
    object_pairs_hook=_build_object,
    parse_int=_parse_integer,
    parse_float=_parse_decimal,
    parse_constant=_refuse_constant,
)
