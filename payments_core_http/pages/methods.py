"""The ways to pay for which the page has a part: `templates/methods/` has a file for each.

A row needs a title here, a template by its name, and the files that its script needs in
`routes.py`. A method is shown if the Payment allows it and the service offers it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.checkout.checkout import CheckoutPage
from payments_core.payments.options.methods import METHODS
from payments_core_http.pages.languages import Language
from payments_core_http.pages.words import METHOD_TITLES


@attrs.frozen(kw_only=True)
class MethodPart:
    """A method by its name, which its template has too, and its title as a tab."""

    name: PaymentMethod
    title: str


def list_methods(page: CheckoutPage, language: Language) -> tuple[MethodPart, ...]:
    """The methods of a Payment that is due, in the order of their titles; the first is shown."""
    titles: Mapping[PaymentMethod, str] = METHOD_TITLES
    return tuple(
        MethodPart(name=name, title=language.translate(title))
        for name, title in titles.items()
        if name in page.payment.allowed_methods and METHODS[name].provider is None
    )
