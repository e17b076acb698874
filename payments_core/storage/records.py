"""Records, and the collection that each kind of record declares.

A record is a frozen attrs class. Its class attribute `collection` names the table, the columns
that indexes need, the indexes and the unique keys. Adapters learn all they need from it, so a
new resource changes no adapter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.field_views import viewed_fields

Value = str | int | None
Attention = Literal["needed"]
"""The value of a column `attention`, in records that wait for a person; null in all others."""

Document = dict[str, Any]
Upgrade = Callable[[Document], Document]

RESERVED_COLUMNS = frozenset({"partition", "id", "version", "body"})
"""Columns that every table has."""

MAX_COLUMN_CHARACTERS = 500
"""Longer texts do not fit into an index of every database."""

_INTEGER = range(-(2**63), 2**63)


@attrs.frozen(cache_hash=True)
class Index:
    """Finds the records whose `key` columns equal given values, ordered by `order`, then by id.

    The partition comes before the key in every index. Order columns are never null.
    """

    name: str
    key: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    descending: bool = False


@attrs.frozen
class Unique:
    """No two records of a partition share these columns; a record with a null among them is exempt.

    `is_fixed` says that no record ever changes its columns. If one may, a commit's records are
    replaced in order: a key may move from one to another, and an adapter that replaces both in
    one statement would find it taken.
    """

    name: str
    columns: tuple[str, ...]
    is_fixed: bool = False


@attrs.frozen
class Lookup:
    """Finds records of any partition whose `columns` equal given values.

    Its index begins with the columns and not with the partition. It is not unique.
    """

    name: str
    columns: tuple[str, ...]


@attrs.frozen
class Collection:
    """One kind of stored record.

    `columns` maps a column to `str` or `int`; its value is the record's attribute of that name, or
    the field behind it if that is a view (`field_views.py`).

    `schema` is the record's schema in this release. `upgrades[n]` turns a document of schema n into
    one of schema n + 1, where that takes more than the defaults of added fields; `downgrades[n]`
    reverses a step, losing nothing that this release writes.
    New documents are stored in the schema `write_schema`, by default the present one: a form that
    the previous release cannot read is read by one release, and written by the next. A document in
    a later schema stays in it. `oldest_reader` is the lowest schema whose releases read this
    release's documents correctly, by default `write_schema` itself: they miss only fields that they
    keep. docs/explanation/upgrades.md has the rules.

    `takes_over` names collections that no record declares any more, whose rows become rows of this
    one in `migrate`; the function turns any document of theirs into one of this collection.
    """

    name: str
    columns: Mapping[str, type[str | int]] = attrs.field(factory=dict)
    indexes: tuple[Index, ...] = ()
    uniques: tuple[Unique, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    schema: int = 1
    upgrades: Mapping[int, Upgrade] = attrs.field(factory=dict)
    downgrades: Mapping[int, Upgrade] = attrs.field(factory=dict)
    takes_over: Mapping[str, Upgrade] = attrs.field(factory=dict)
    write_schema: int = attrs.field()
    oldest_reader: int = attrs.field()
    _ordered: frozenset[str] = attrs.field(init=False, repr=False, eq=False)
    _indexes: Mapping[str, Index] = attrs.field(init=False, repr=False, eq=False)

    @write_schema.default
    def _default_write_schema(self) -> int:
        return self.schema

    @oldest_reader.default
    def _default_oldest_reader(self) -> int:
        return self.write_schema

    def __attrs_post_init__(self) -> None:
        self._require_schemas()
        ordered = frozenset(column for index in self.indexes for column in index.order)
        object.__setattr__(self, "_ordered", ordered)
        object.__setattr__(self, "_indexes", {index.name: index for index in self.indexes})
        names = [item.name for item in self.indexes] + [item.name for item in self.uniques]
        names += [item.name for item in self.lookups]
        used = {c for i in self.indexes for c in (*i.key, *i.order)}
        used |= {c for u in self.uniques for c in u.columns}
        used |= {c for lookup in self.lookups for c in lookup.columns}
        if missing := used - set(self.columns):
            raise ValueError(f"{self.name}: no column {sorted(missing)}")
        if taken := RESERVED_COLUMNS & set(self.columns):
            raise ValueError(f"{self.name}: storage has its own column {sorted(taken)}")
        if len(set(names)) != len(names):
            raise ValueError(f"{self.name}: two indexes of one name")
        if bare := [item.name for item in self.lookups if not item.columns]:
            raise ValueError(f"{self.name}: a lookup of no columns {bare}")

    def _require_schemas(self) -> None:
        if not 1 <= self.oldest_reader <= self.write_schema <= self.schema:
            raise ValueError(f"{self.name}: oldest_reader <= write_schema <= schema")
        steps = set(range(self.write_schema, self.schema))
        if missing := steps - set(self.downgrades):
            raise ValueError(f"{self.name}: no downgrade to schema {sorted(missing)}")

    @property
    def is_replaced_in_any_order(self) -> bool:
        """Whether several of its records may be replaced at once."""
        return all(unique.is_fixed for unique in self.uniques)

    def index(self, name: str) -> Index:
        """The index of that name."""
        return self._indexes[name]

    def lookup(self, name: str) -> Lookup:
        """The lookup of that name."""
        return next(lookup for lookup in self.lookups if lookup.name == name)

    def values(self, record: Record) -> tuple[Value, ...]:
        """The record's column values, in the order of `columns`.

        Raises ValueError for a value that some adapter could not store exactly, so that all
        refuse the same: the wrong type, a text that is too long or contains U+0000, an integer
        beyond 64 bits, a null in an order column.
        """
        if not fits_column(record.id):
            raise ValueError(f"{self.name}: the id is too long, or contains U+0000")
        found: list[Value] = []
        fields = viewed_fields(type(record))
        for column, kind in self.columns.items():
            value = getattr(record, fields.get(column, column))
            # True for nearly all. `fits_column`, written out: a record has up to ten columns.
            if value is None:
                fits = column not in self._ordered
            elif type(value) is str:
                fits = kind is str and len(value) <= MAX_COLUMN_CHARACTERS and "\0" not in value
            else:
                fits = kind is int and type(value) is int and value in _INTEGER
            found.append(value if fits else self._check_value(column, kind, value))
        return tuple(found)

    def row(self, record: Record) -> dict[str, Value]:
        """The values of a record's columns, by the names of the columns."""
        return dict(zip(self.columns, self.values(record), strict=True))

    def _check_value(self, column: str, kind: type[str | int], value: Value) -> Value:
        """The value as its column has it. Raises ValueError, as `values` does."""
        if value is None:
            raise ValueError(f"{self.name}: {column} orders an index and cannot be null")
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"{self.name}: {column} contains a {type(value).__name__}")
        if not fits_column(value):
            wrong = "is too long, or contains U+0000" if kind is str else "is beyond 64 bits"
            raise ValueError(f"{self.name}: {column} {wrong}")
        return kind(value)


@attrs.frozen(kw_only=True, slots=False)
class Record:
    """The fields that storage itself needs. A base class of data, not of behaviour.

    `version` is 0 until stored, 1 after `insert`, and rises by one with each `replace`.
    `_unknown` carries fields that a newer release wrote, so that an older one keeps them.
    """

    collection: ClassVar[Collection]
    checked_by_class: ClassVar[bool] = True

    id: str
    version: int = attrs.field(default=0, repr=False)
    schema: int = attrs.field(default=0, repr=False)
    _unknown: Mapping[str, Any] = attrs.field(factory=dict, repr=False, alias="unknown")

    def __init_subclass__(cls) -> None:
        cls.__repr__ = brief_repr  # type: ignore[method-assign]  # attrs then makes none


def fits_column(value: str | int) -> bool:
    """Whether a column can hold the value; if not, no row has it."""
    if isinstance(value, str):
        return len(value) <= MAX_COLUMN_CHARACTERS and "\0" not in value
    return value in _INTEGER


R = TypeVar("R", bound=Record)
RecordTypes = Sequence[type[Record]]


def group_by_collection(records: Sequence[Record]) -> Iterator[tuple[Collection, list[Record]]]:
    """The records of each kind together."""
    found: dict[type[Record], list[Record]] = defaultdict(list)
    for record in records:
        found[type(record)].append(record)
    for kind, of_kind in found.items():
        yield kind.collection, of_kind
