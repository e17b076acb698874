"""Following a list of a sandbox: each entry as it comes, the older first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

MAX_LIMIT = 100
"""The most that a page of a list has."""

POLL_S = 1.0
"""How often new entries are asked for: 60 of the 500 reads a minute."""

MAX_KNOWN = 20_000

ListPage = Callable[[str | None], Any]
"""A page of the list, newest first, from a cursor on."""


def follow(list_page: ListPage, known: Iterable[str]) -> Iterator[Any]:
    """Each entry whose id is not known, as it comes, the older first.

    A look reads on until a page has an entry that is known. One that is stored late, behind others
    that are known, is found as long as it is among the newest.
    """
    seen = dict.fromkeys(known)
    while True:
        time.sleep(POLL_S)
        new: list[Any] = []
        cursor = None
        while True:
            page = list_page(cursor)
            found = [entry for entry in page["data"] if entry["id"] not in seen]
            new += found
            cursor = page["nextCursor"]
            if cursor is None or len(found) < len(page["data"]):
                break
        seen.update(dict.fromkeys(entry["id"] for entry in reversed(new)))
        for id in list(seen)[:-MAX_KNOWN]:
            del seen[id]
        yield from reversed(new)
