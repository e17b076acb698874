"""The indexes that a database needs for what a collection declares."""

from __future__ import annotations

import attrs

from payments_core.storage.records import Collection

_PRIMARY_KEY = ("partition", "id")


@attrs.frozen
class TableIndex:
    """An index of a table, by the declared name of the first that needs it."""

    name: str
    unique: bool
    columns: tuple[str, ...]


def table_indexes_of(collection: Collection) -> list[TableIndex]:
    """The indexes of a collection's table: of its unique keys, indexes and lookups.

    Those with the same columns are one.

    An index is read from either end, so a declared order needs no separate
    index. A declaration with the columns of the primary key needs none at all.
    """
    declared = [
        *(
            TableIndex(key.name, True, ("partition", *key.columns))  # and nothing behind them
            for key in collection.uniques
        ),
        *(
            TableIndex(index.name, False, ("partition", *index.key, *index.order, "id"))
            for index in collection.indexes
        ),
        *(
            TableIndex(lookup.name, False, (*lookup.columns, "partition", "id"))
            for lookup in collection.lookups
        ),
    ]
    built: dict[tuple[str, ...], TableIndex] = {}
    for one in declared:
        if one.columns != _PRIMARY_KEY:
            built.setdefault(one.columns, one)
    return list(built.values())
