"""Queries as values, for `read_ahead` and `fetch`: an adapter may wait once for several."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from payments_core.storage.records import Record, Value

Lock = Literal["none", "shared", "exclusive"]


@attrs.frozen
class Get:
    """A record that is about to be read.

    `shared` is for records that will be held, `exclusive` for `get(for_update=True)`. `is_optional`
    says that it is often absent, so that an adapter verifies that at once.
    """

    checked_by_class: ClassVar[bool] = True

    kind: type[Record]
    id: str
    lock: Lock = "none"
    is_optional: bool = False


@attrs.frozen
class Find:
    """A first page that is about to be read, without comparisons."""

    kind: type[Record]
    index: str
    key: tuple[Value, ...]
    limit: int


Read = Get | Find
