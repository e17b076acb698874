"""The kinds of records of the storage suite: small, one for each promise."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from payments_core.money import Atomic
from payments_core.storage.jobs import Job
from payments_core.storage.records import Collection, Document, Index, Lookup, Record, Unique


@attrs.frozen(kw_only=True)
class Mark(Record):
    """A row that shows that a transaction was committed."""

    collection: ClassVar[Collection] = Collection("suite_marks")


@attrs.frozen(kw_only=True)
class Counter(Record):
    """A number that transactions change."""

    collection: ClassVar[Collection] = Collection("suite_counters")

    total: int = 0


@attrs.frozen(kw_only=True)
class Note(Record):
    """A row to find: with ordered integers and texts, a nullable column, and unique keys."""

    collection: ClassVar[Collection] = Collection(
        "suite_notes",
        columns={
            "group": str,
            "rank": int,
            "name": str,
            "tag": str,
            "size": int,
            "code": str,
            "left": str,
            "right": str,
        },
        indexes=(
            Index("by_rank", ("group",), ("rank",)),
            Index("newest", ("group",), ("rank",), descending=True),
            Index("by_name", ("group",), ("name",)),
            Index("by_name_and_rank", ("group",), ("name", "rank")),
            Index("by_tag", ("tag",), ("rank",)),
            Index("all"),
        ),
        uniques=(Unique("code", ("code",)), Unique("pair", ("left", "right"))),
        lookups=(Lookup("named", ("name",)), Lookup("tagged", ("tag", "size"))),
    )

    group: str = "one"
    rank: int = 0
    name: str = ""
    tag: str | None = None
    size: int | None = None
    code: str | None = None
    left: str | None = None
    right: str | None = None
    text: str = ""


@attrs.frozen(kw_only=True)
class Letter(Record):
    """A document, as an older release knows it."""

    collection: ClassVar[Collection] = Collection("suite_letters", columns={"folder": str})

    folder: str | None = "in"
    text: str = ""
    amount_atomic: Atomic = attrs.field(default=Atomic(0), converter=Atomic)


def _add_seal(document: Document) -> Document:
    return {**document, "seal": f"upgraded {document['text']}"}


@attrs.frozen(kw_only=True)
class NewerLetter(Record):
    """A `Letter`, as the next release knows the document."""

    collection: ClassVar[Collection] = Collection(
        "suite_letters",
        columns={"folder": str},
        schema=2,
        upgrades={1: _add_seal},
        oldest_reader=1,
    )

    seal: str
    folder: str | None = "in"
    text: str = ""
    amount_atomic: Atomic = attrs.field(default=Atomic(0), converter=Atomic)
    details: dict[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Parcel(Record):
    """A row before a migration."""

    collection: ClassVar[Collection] = Collection("suite_parcels", columns={"state": str})

    state: str = "packed"
    weight: int = 0
    label: str | None = None


@attrs.frozen(kw_only=True)
class IndexedParcel(Record):
    """A `Parcel`, with columns, an index, a unique key and a lookup that came later."""

    collection: ClassVar[Collection] = Collection(
        "suite_parcels",
        columns={"state": str, "weight": int, "label": str},
        indexes=(Index("by_state", ("state",), ("weight",)),),
        uniques=(Unique("label", ("label",)),),
        lookups=(Lookup("weighing", ("state", "weight")),),
    )

    state: str = "packed"
    weight: int = 0
    label: str | None = None


@attrs.frozen(kw_only=True)
class TornNote(Record):
    """A row of the notes that no release can read as a note: its `text` is a number."""

    collection: ClassVar[Collection] = Note.collection

    group: str = "one"
    rank: int = 0
    name: str = ""
    tag: str | None = None
    size: int | None = None
    code: str | None = None
    left: str | None = None
    right: str | None = None
    text: int = 0


RECORD_TYPES: tuple[type[Record], ...] = (Mark, Counter, Note, Letter, NewerLetter, Job)
RECORD_TYPES_BEFORE_MIGRATION: tuple[type[Record], ...] = (*RECORD_TYPES, Parcel)
RECORD_TYPES_AFTER_MIGRATION: tuple[type[Record], ...] = (*RECORD_TYPES, IndexedParcel)
