"""The query of a report: its period, its form, its page."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from payments_core.books.reports import Day
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.query import PageQuery


@frozen_body
class ReportFields(PageQuery):
    """The fields of a report, except for `from`, of which it has only the sentence."""

    from_: ClassVar[str]
    """The first day of the period, in UTC."""
    to: Day
    """The day after the last one of the period, in UTC; it is not in the period itself."""
    format: Literal["json", "csv"] = "json"
    """With `csv`, the page is a table of the same rows, and `Link` leads to the next page."""


# A field cannot be called `from` in a class statement, and on the wire it is.
ReportPeriod = attrs.make_class(
    "ReportPeriod",
    {"from": attrs.field(type=Day, alias="from_", eq=False, repr=False)},
    bases=(ReportFields,),
    frozen=True,
    kw_only=True,
)
ReportPeriod.__doc__ = (
    "The period is the days `from` to before `to`, in UTC. They must be closed, which a day is ten"
    " minutes after its end; then the report never changes."
)
