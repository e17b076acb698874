"""Links from the project's admin to the dashboard of the payments.

The dashboard has its own log-in, which `manage.py payments admin operators create` makes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.utils.html import format_html

from payments_core_http.django.process import get_service

Column = Callable[[Any], str | None]

EMPTY = "-"


def payment_link(field: str, *, description: str = "payment") -> Column:
    """A column for `list_display` or `readonly_fields`, which links a row to its Payment's page.

    `field` is the attribute of the model that holds the Payment's id, or nothing.

    >>> class OrderAdmin(admin.ModelAdmin):
    ...     list_display = ("number", payment_link("payment_id"))
    """

    def link(row: Any) -> str | None:
        payment_id = getattr(row, field)
        if not payment_id:
            return None
        url = f"{get_service().settings.public_url}/dashboard/payments/{payment_id}"
        shown: str = format_html('<a href="{}">{}</a>', url, payment_id)
        return shown

    column: Column = admin.display(link, description=description, ordering=field, empty_value=EMPTY)
    return column
