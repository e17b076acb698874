"""Bodies of forms: `application/x-www-form-urlencoded`, each field once, in UTF-8."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from payments_core.credentials.secrets import holds_credential
from payments_core.errors import ValidationFailed
from payments_core.validation.metadata import shorten_name
from payments_core_http.errors import UnsupportedFormType
from payments_core_http.wire.body_bytes import BodyIncomplete, declared_length, read_body_bytes
from payments_core_http.wire.limits import MAX_FORM_BYTES, MAX_FORM_FIELDS

_TYPE = re.compile(
    r'application/x-www-form-urlencoded(?: *; *charset *= *"?utf-8"?)?', re.ASCII | re.IGNORECASE
)


def read_fields(environ: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a form; line ends are `\\n`. A credential would be stored, and is refused.

    Raises UnsupportedFormType, PayloadTooLarge, LengthRequired, ValidationFailed.
    """
    if not _TYPE.fullmatch(environ.get("CONTENT_TYPE", "").strip()):
        raise UnsupportedFormType()
    try:
        raw = read_body_bytes(environ, declared_length(environ), MAX_FORM_BYTES)
    except BodyIncomplete as error:
        raise ValidationFailed.at("form", str(error).removeprefix("the body ")) from error
    try:
        pairs = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FORM_FIELDS,
        )
    except ValueError:  # UnicodeError is one
        raise ValidationFailed.at("form", "cannot be read") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice = next(name for name, _ in pairs if [n for n, _ in pairs].count(name) > 1)
        raise ValidationFailed.at(shorten_name(twice), "is given twice")
    for name, value in pairs:
        if holds_credential(name) or holds_credential(value):
            raise ValidationFailed.at(shorten_name(name), "contains a credential")
    return {name: value.replace("\r\n", "\n") for name, value in fields.items()}
