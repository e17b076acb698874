"""Prints the causes of each error, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from docs.markdown import code
from payments_core.errors import PaymentsError
from payments_core_http.errors import status_of
from payments_core_http.openapi.error_responses import describe_error
from payments_core_http.reference.error_advice import ADVICE


def sections(kinds: Iterable[type[PaymentsError]]) -> Iterator[str]:
    """A section for each error."""
    for kind in kinds:
        advice = ADVICE[kind.code]
        yield f"## {code(kind.code)}"
        yield f"{status_of(kind)}. {describe_error(kind)}"
        yield "Common causes:\n\n" + "\n".join(f"- {cause}" for cause in advice.causes)
        again = "may succeed later" if advice.retry else "fails again"
        yield "What to do:\n\n" + "\n".join(
            f"- {step}" for step in (*advice.remedy, f"The same request {again}.")
        )
