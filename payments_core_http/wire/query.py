"""Query strings: strict, each parameter once, and never a credential (interface, rule 2)."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import parse_qsl

import attrs
import msgspec

from payments_core.errors import FieldError, ValidationFailed
from payments_core.validation.fields import HttpPageLimit
from payments_core.validation.metadata import shorten_name
from payments_core.validation.readers import QUERY
from payments_core_http.routing import Nothing, Route
from payments_core_http.wire.limits import MAX_QUERY_PARAMETERS

DEFAULT_LIMIT = 50
_CREDENTIAL = re.compile(
    r"\b(?:sk|rk|pk)_(?:sandbox|production)_|^(?:cst|cat|ops|whsec)_|^payment_[\w-]+_secret_"
    r"|^(?:basic|bearer)\s",
    re.ASCII | re.IGNORECASE,
)


@attrs.frozen(kw_only=True)
class PageQuery:
    """The parameters of every list; a list's own query adds its filters."""

    limit: HttpPageLimit = DEFAULT_LIMIT
    cursor: Annotated[str, msgspec.Meta(max_length=2_000)] | None = None


def read_query(route: Route, query_string: str) -> Any:
    """The route's query object. Raises ValidationFailed, which names every fault."""
    if not query_string:
        return None if route.query is Nothing else QUERY.read({}, route.query)
    pairs = _parse_pairs(query_string)
    _refuse_credentials(pairs)
    given = dict(pairs)
    if len(given) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValidationFailed(tuple(FieldError(shorten_name(n), "is given twice") for n in twice))
    query = QUERY.read(given, route.query)
    return None if route.query is Nothing else query


def read_page_query(query_string: str) -> dict[str, str]:
    """The parameters of a page, the last of each name. Raises ValidationFailed for a credential.

    Mail programs and networks add their own parameters to links; they are ignored.
    """
    pairs = _parse_pairs(query_string) if query_string else []
    _refuse_credentials(pairs)
    return dict(pairs)


def has_credential(query_string: str) -> bool:
    """Whether a query has a credential, or cannot be read, so that nobody knows."""
    try:
        _refuse_credentials(_parse_pairs(query_string))
    except ValidationFailed:
        return True
    return False


def _parse_pairs(query_string: str) -> list[tuple[str, str]]:
    # WSGI carries bytes as latin-1 characters.
    try:
        text = query_string.encode("latin-1").decode("utf-8")
        return parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_PARAMETERS
        )
    except UnicodeError:
        raise ValidationFailed.at("query", "must be UTF-8") from None
    except ValueError:
        raise ValidationFailed.at("query", "has too many parameters") from None


def _refuse_credentials(pairs: list[tuple[str, str]]) -> None:
    """Refuse a credential in the URL, where logs and histories keep it; it is not repeated here."""
    if any(_CREDENTIAL.search(text) for pair in pairs for text in pair):
        raise ValidationFailed.at("query", "must not contain a credential; send it in a header")
