"""All results of a lookup, for any number of keys and rows, skipping damaged rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from payments_core.storage.damaged_records import log_damaged_row
from payments_core.storage.port import MAX_LOCATE_KEYS, LocatedRecord, OnDamaged, Storage
from payments_core.storage.records import R, Value


def locate_all(
    storage: Storage,
    kind: type[R],
    lookup: str,
    keys: Iterable[Sequence[Value]],
    *,
    on_damaged: OnDamaged | None = None,
) -> Iterator[LocatedRecord[R]]:
    """Every record with one of the keys, which are distinct, for work across all tenants.

    A row that cannot be read is skipped with an alarm, and `on_damaged` is called: it is one
    tenant's, and must not block the others. Raises as `Storage.locate`.
    """
    wanted = list(keys)
    for start in range(0, len(wanted), MAX_LOCATE_KEYS):
        batch = wanted[start : start + MAX_LOCATE_KEYS]
        after: tuple[str, str] | None = None
        while True:
            damaged: list[tuple[str, str]] = []
            page = storage.locate(
                kind,
                lookup,
                batch,
                after=after,
                limit=MAX_LOCATE_KEYS,
                on_damaged=lambda *place, into=damaged: into.append(place),
            )
            yield from page
            for partition, id in damaged:
                log_damaged_row(kind, partition, id)
                if on_damaged is not None:
                    on_damaged(partition, id)
            places = [*damaged, *((item.partition, item.record.id) for item in page)]
            if len(places) < MAX_LOCATE_KEYS:
                break
            after = max(places)


@attrs.frozen
class UnreadableRow:
    """A row that cannot be read: the key that leads to it, and its place."""

    key: Sequence[Value]
    partition: str
    id: str


def locate_with_damaged(
    storage: Storage, kind: type[R], lookup: str, keys: Iterable[Sequence[Value]]
) -> tuple[list[LocatedRecord[R]], list[UnreadableRow]]:
    """The records of `locate_all`, and the known facts about the rows that it skipped."""
    wanted = list(keys)
    damaged: list[str] = []
    found = list(
        locate_all(
            storage, kind, lookup, wanted, on_damaged=lambda partition, id: damaged.append(id)
        )
    )
    return found, list(_find_damaged(storage, kind, lookup, wanted)) if damaged else []


def _find_damaged(
    storage: Storage, kind: type[R], lookup: str, keys: Iterable[Sequence[Value]]
) -> Iterator[UnreadableRow]:
    """Look up each key separately, since only the key identifies such a row."""
    for key in keys:
        places: list[tuple[str, str]] = []
        storage.locate(
            kind, lookup, [key], on_damaged=lambda *place, into=places: into.append(place)
        )
        yield from (UnreadableRow(key, partition, id) for partition, id in places)
