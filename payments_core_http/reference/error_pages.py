"""A page for each error: what it means, its usual causes, and what to do."""

from __future__ import annotations

import json
from collections.abc import Mapping

from payments_core import errors
from payments_core.errors import PaymentsError
from payments_core_http import errors as wire
from payments_core_http.errors import status_of
from payments_core_http.openapi.error_responses import describe_error, make_error_example
from payments_core_http.reference.error_advice import ADVICE
from payments_core_http.reference.pages import TEMPLATES


def render_page(code: str) -> str:
    """The page about the error with that code."""
    kind = KINDS[code]
    return TEMPLATES.get_template("error.html").render(
        code=code,
        status=status_of(kind),
        meaning=describe_error(kind),
        advice=ADVICE[code],
        example=json.dumps(make_error_example(kind, "nested")["value"], indent=2),
    )


def render_list() -> str:
    """The page that lists all of them."""
    rows = sorted((status_of(kind), code, describe_error(kind)) for code, kind in KINDS.items())
    return TEMPLATES.get_template("errors.html").render(rows=rows)


KINDS: Mapping[str, type[PaymentsError]] = {
    kind.code: kind
    for module in (errors, wire)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, PaymentsError) and "code" in vars(kind)
}
"""The class of each error by its code."""
