"""The texts of the pages of errors, for a payer."""

from __future__ import annotations

from payments_core.errors import (
    BadInput,
    ConflictError,
    DependencyError,
    DestinationNotAllowed,
    Forbidden,
    InsufficientPermissions,
    LimitReached,
    Missing,
    OptionExpired,
    PaymentExpired,
    PaymentOptionLimitReached,
    PaymentsError,
    ScreeningRefused,
    ServiceUnavailable,
    Unprocessable,
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


_ADDRESS_REFUSED = Words(
    "warn",
    N_("This address cannot be used"),
    N_("Go back and give another address of your own wallet. You were not charged."),
)

_PAGE_CHANGED = Words(
    "warn",
    N_("The page was not up to date"),
    N_("Go back: the page shows what is possible now. Look there before you pay."),
)

_METHOD_UNAVAILABLE = Words(
    "warn",
    N_("This way to pay is not available"),
    N_("Go back and choose another one, or ask the merchant. You were not charged."),
)

_FORM_ERROR_WORDS: tuple[tuple[type[PaymentsError], Words], ...] = (
    (ScreeningRefused, _ADDRESS_REFUSED),
    (DestinationNotAllowed, _ADDRESS_REFUSED),
    (
        PaymentExpired,
        Words(
            "warn",
            N_("The time to pay has ended"),
            N_("Do not send anything now. Go back to see what has happened."),
        ),
    ),
    (InsufficientPermissions, _PAGE_CHANGED),
    (OptionExpired, _PAGE_CHANGED),
    (ConflictError, _PAGE_CHANGED),
    (PaymentOptionLimitReached, _METHOD_UNAVAILABLE),
    (Unprocessable, _METHOD_UNAVAILABLE),
    (
        DependencyError,
        Words(
            "warn",
            N_("The provider does not answer"),
            N_(
                "You were not charged. Go back and try again in a minute, or choose another way to"
                " pay."
            ),
        ),
    ),
    (
        BadInput,
        Words(
            "warn",
            N_("What was entered cannot be used"),
            N_("Go back and check what you have chosen and entered. You were not charged."),
        ),
    ),
)
"""For a form of a page that could be shown: what is wrong is not the link."""


def find_error_words(error: PaymentsError, status: int, *, is_form: bool) -> Words:
    """The text of an error's page by the status of the error; `is_form` if a form was sent."""
    table = (*_FORM_ERROR_WORDS, *_ERROR_WORDS) if is_form else _ERROR_WORDS
    words = next(words for kind, words in table if isinstance(error, kind))
    is_ours = words is _ERROR_WORDS[-1][1]
    return _LINK_NOT_OPENED if is_ours and status < 500 else words
