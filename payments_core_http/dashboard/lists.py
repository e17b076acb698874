"""Lists: the filters of one, a page of it, and the links to its next page and to its file.

A list names its filters as a table. The form of them is `filters` in `templates/parts.html`; the
file is in `exports.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Generic, Literal, TypeVar
from urllib.parse import quote

import attrs
import msgspec

from payments_core.clock import parse_iso, to_datetime
from payments_core.engine.identifiers import is_identifier
from payments_core.errors import ValidationFailed
from payments_core.storage.port import Page, Position
from payments_core_http.calls import PageCall
from payments_core_http.wire import cursors

R = TypeVar("R")

PAGE_SIZE = 25
MAX_CHARACTERS = 256
"""The length of a text that is searched for; what is longer is cut."""


@attrs.frozen
class Filter:
    """A field of a list's filters: its name in the query, its title, and its kind.

    A `choice` has one of `choices`, or the empty one that is called `every`. An `identifier` has
    the prefix `prefix`. A value that is not one of these is left out, as an empty one is. A field
    that `is_wide` has a line of its own.
    """

    name: str
    title: str
    kind: Literal["choice", "search", "identifier", "day"]
    choices: Sequence[str] = ()
    every: str = ""
    prefix: str = ""
    is_wide: bool = False

    def read(self, call: PageCall) -> str:
        """What the query asks for; empty for everything."""
        text = call.query.get(self.name, "").strip()[:MAX_CHARACTERS]
        if self.kind == "choice" and text not in self.choices:
            return ""
        if self.kind == "identifier" and not is_identifier(text, self.prefix):
            return ""
        return text


DAYS = (Filter("from", "From day (UTC)", "day"), Filter("to", "To day (UTC)", "day"))
"""The days of creation, both inclusive. See read_days."""

Read = Callable[[PageCall, Mapping[str, str], Position | None, int], Page[R]]
"""The page of a list under its filters: it begins after a position, and has at most so many."""


@attrs.frozen
class List(Generic[R]):
    """A page of a list, under the filters that are given."""

    call: PageCall
    fields: Sequence[Filter]
    given: Mapping[str, str]
    page: Page[R]

    @property
    def records(self) -> Sequence[R]:
        """What the page shows."""
        return self.page.records

    @property
    def filters(self) -> Mapping[str, str]:
        """Each filter by its name; empty if it is not given."""
        return {one.name: self.given.get(one.name, "") for one in self.fields}

    @property
    def next_page(self) -> str | None:
        """The query of the next page; None at the end."""
        if self.page.next is None:
            return None
        key_ring = self.call.service.parts.ports.key_ring
        cursor = cursors.encode(key_ring, _name(self.call, self.given), self.page.next)
        return f"?{_write_query({**self.given, 'cursor': cursor})}"

    @property
    def export(self) -> str:
        """The path and the query of the list's file, from the root."""
        path = self.call.route.path.format(**self.call.path)[1:]
        return f"{path}/export" + (f"?{_write_query(self.given)}" if self.given else "")

    @property
    def is_first(self) -> bool:
        """Whether it is the list's first page."""
        return not self.call.query.get("cursor")


def read_list(
    call: PageCall,
    read: Read[R],
    fields: Sequence[Filter] = (),
    *,
    given: Mapping[str, str] | None = None,
    limit: int = PAGE_SIZE,
) -> List[R]:
    """The page that the query asks for. `given` are the filters if they are not of `fields`.

    Raises ValidationFailed for a cursor of another list, and what `read` raises.
    """
    if given is None:
        given = read_filters(call, fields)
    cursor = call.query.get("cursor")
    after = None
    if cursor:
        after = cursors.decode(call.service.parts.ports.key_ring, _name(call, given), cursor)
    return List(call, fields, given, read(call, given, after, limit))


def read_filters(call: PageCall, fields: Sequence[Filter]) -> Mapping[str, str]:
    """The filters that the query gives, by name."""
    return {one.name: text for one in fields if (text := one.read(call))}


def read_days(filters: Mapping[str, str]) -> tuple[datetime | None, datetime | None]:
    """The window of creation from the day `from` to the end of the day `to`, in UTC.

    Raises ValidationFailed.
    """
    return _parse_day(filters, "from"), _parse_day(filters, "to", later_days=1)


def _parse_day(filters: Mapping[str, str], name: str, *, later_days: int = 0) -> datetime | None:
    """The start in UTC of a day, or of a later one. Raises ValidationFailed."""
    if name not in filters:
        return None
    try:
        day = to_datetime(parse_iso(f"{filters[name]}T00:00:00Z"))
        return day + timedelta(days=later_days)
    except (ValueError, OverflowError):
        raise ValidationFailed.at(name, "must be a day such as 2026-09-21") from None


def _name(call: PageCall, given: Mapping[str, str]) -> str:
    """The list and its filters, for which alone a cursor is valid."""
    authority = call.authority
    names = (authority.partition, authority.principal, call.route.path)
    ids = sorted(call.path.items())
    return msgspec.json.encode((names, ids, sorted(given.items()))).decode()


def _write_query(given: Mapping[str, str]) -> str:
    return "&".join(f"{name}={quote(text, safe='')}" for name, text in given.items())
