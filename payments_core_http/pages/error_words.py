"""The texts of the pages of errors, for a payer."""

from __future__ import annotations

from payments_core.errors import (
    Forbidden,
    LimitReached,
    Missing,
    PaymentsError,
    ServiceUnavailable,
)
from payments_core_http.errors import RateLimiterUnavailable
from payments_core_http.pages.words import N_, Words

_LINK_NOT_OPENED = Words(
    "end",
    N_("This link cannot be opened"),
    N_("Open the link again as you received it, or ask the merchant for a new one."),
)

_UNAVAILABLE = Words(
    "warn",
    N_("The page cannot be shown at present"),
    N_("Try again in a minute. What you have sent is not lost."),
)

_ERROR_WORDS: tuple[tuple[type[PaymentsError], Words], ...] = (
    (
        Missing,
        Words(
            "end",
            N_("There is no such payment"),
            N_("Check that you have the whole link, or ask the merchant for a new one."),
        ),
    ),
    (
        Forbidden,
        Words(
            "end",
            N_("This payment cannot be shown"),
            N_("The merchant does not offer this page at present. Ask the merchant."),
        ),
    ),
    (RateLimiterUnavailable, _UNAVAILABLE),
    (
        LimitReached,
        Words(
            "warn",
            N_("Too many requests"),
            N_("Wait a minute, then open the link again. Nothing has changed for your payment."),
        ),
    ),
    (ServiceUnavailable, _UNAVAILABLE),
    (
        PaymentsError,
        Words(
            "warn",
            N_("Something went wrong"),
            N_("This is our fault. Try again in a minute; what you have sent is not lost."),
        ),
    ),
)


def find_error_words(error: PaymentsError, status: int) -> Words:
    """The text of an error's page by the status of the error."""
    words = next(words for kind, words in _ERROR_WORDS if isinstance(error, kind))
    is_ours = words is _ERROR_WORDS[-1][1]
    return _LINK_NOT_OPENED if is_ours and status < 500 else words
