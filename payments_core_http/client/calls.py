"""One call of an operation as a value: what is sent, and what the response decodes into.

The generated operations build these; `Connection` and `AsyncConnection` send them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

import attrs
from msgspec import UNSET

from payments_core.evolve import evolve
from payments_core_http.client.structs import Page

T = TypeVar("T")
Item = TypeVar("Item")
PageT = TypeVar("PageT", bound=Page[Any])

Credential = Literal[
    "none", "app_secret", "app_secret_as_bearer", "app_id", "sdk_key", "access_token"
]
"""The credentials of the client that an operation uses; `Call.bearer` may replace them."""


@attrs.frozen(kw_only=True)
class Call(Generic[T]):
    """An operation with its arguments. `path` is the template, filled from `path_arguments`."""

    operation: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    response: type[T]
    credential: Credential
    path_arguments: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    query: Mapping[str, Any] = attrs.field(factory=dict)
    body: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    bearer: str | None = attrs.field(default=None, repr=False)
    takes_key: bool = False
    idempotency_key: str | None = None

    def fill_path(self) -> str:
        """The path with its arguments, each escaped so that it stays one segment."""
        segments = {name: _segment(name, value) for name, value in self.path_arguments.items()}
        return self.path.format_map(segments)


@attrs.frozen(kw_only=True)
class PageCall(Call[PageT], Generic[PageT, Item]):
    """A call that returns one page of a list."""

    def following(self, page: PageT) -> PageCall[PageT, Item] | None:
        """The call of the page after that one; None after the last."""
        cursor = page.next_cursor
        parameter = "cursor" if self.query.get("after") is None else "after"
        if cursor is None or not page.has_next_page or cursor == self.query.get(parameter):
            return None
        return evolve(self, query={**self.query, parameter: cursor})


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the caller gave; None is a value, and is sent as null."""
    return {name: value for name, value in arguments.items() if value is not UNSET}


def _segment(name: str, value: str) -> str:
    # An empty or dotted segment would make another route of the path.
    if value.strip(".") == "":
        raise ValueError(f"{name} must be an id; it is {value!r}")
    return quote(value, safe="")
