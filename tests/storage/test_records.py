"""Declarations and documents: what is refused before any storage sees it."""

from __future__ import annotations

import enum
from functools import partial
from typing import ClassVar

import attrs
import msgspec
import pytest

from payments_core.conformance.storage.records import Letter, NewerLetter, Note
from payments_core.money import Atomic
from payments_core.storage import documents
from payments_core.storage.port import Where
from payments_core.storage.query_semantics import find_primary_keys, select_page, valid_lookup_keys
from payments_core.storage.records import Collection, Index, Lookup, Record, Unique


def test_a_declaration_must_make_sense() -> None:
    for wrong, message in (
        ({"indexes": (Index("one", ("absent",)),)}, "no column"),
        ({"uniques": (Unique("one", ("absent",)),)}, "no column"),
        ({"lookups": (Lookup("one", ("absent",)),)}, "no column"),
        ({"lookups": (Lookup("one", ()),)}, "no columns"),
        ({"columns": {"body": str}}, "its own column"),
        ({"indexes": (Index("one"),), "uniques": (Unique("one", ()),)}, "of one name"),
        (
            {
                "columns": {"a": str},
                "indexes": (Index("one"),),
                "lookups": (Lookup("one", ("a",)),),
            },
            "of one name",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            Collection("things", **wrong)  # type: ignore[arg-type]


def test_a_body_that_is_not_as_declared_is_unreadable() -> None:
    body = documents.encode(documents.stamp(Letter(id="l"), 1))
    document = msgspec.json.decode(body)
    for damage in (
        {**document, "text": 7},
        {**document, "schema": 0, "text": "x"},
        {**document, "schema": 3, "text": 7},
        {key: value for key, value in document.items() if key != "id"},
    ):
        with pytest.raises(documents.UnreadableDocument):
            documents.decode(Letter, msgspec.json.encode(damage))


def test_an_upgrade_runs_once_for_each_schema() -> None:
    body = documents.encode(documents.stamp(Letter(id="l", text="t"), 1))
    letter = documents.decode(NewerLetter, body)
    assert (letter.schema, letter.seal) == (2, "upgraded t")
    again = documents.decode(NewerLetter, documents.encode(letter))
    assert again == letter


def test_amounts_are_digits_in_a_body() -> None:
    letter = documents.stamp(Letter(id="l", amount_atomic=Atomic(10**77)), 1)
    document = msgspec.json.decode(documents.encode(letter))
    assert document["amount_atomic"] == "1" + "0" * 77


def test_what_is_not_json_cannot_be_written_or_read() -> None:
    @attrs.frozen(kw_only=True)
    class Odd(Record):
        collection: ClassVar[Collection] = Collection("odd")
        number: complex = 0j

    with pytest.raises(TypeError):
        documents.encode(Odd(id="o"))
    with pytest.raises((TypeError, documents.UnreadableDocument)):
        documents.decode(Odd, '{"id": "o", "schema": 1, "number": "0j"}')


def test_pages_in_plain_python() -> None:
    rows = {id: {"rank": rank, "size": size} for id, rank, size in (("a", 1, None), ("b", 1, 5))}
    kept = Collection(
        "notes", columns={"rank": int, "size": int}, indexes=(Index("by_rank", ("rank",)),)
    )
    page = partial(select_page, kept, "by_rank", (1,), rows)
    assert page([Where("size", ">", 4)], None, 5, 10) == (["b"], None)
    assert page((), None, 1, 10) == (["a"], ("a",))
    assert Note.collection.index("all").key == ()


def test_located_places_in_plain_python() -> None:
    lookup = Note.collection.lookup("tagged")
    rows = {
        place: {"tag": tag, "size": 1}
        for place, tag in (
            (("p", "b"), "t"),
            (("p", "a"), "t"),
            (("o", "z"), "t"),
            (("o", "y"), ""),
        )
    }
    keys = valid_lookup_keys(
        Note.collection, lookup, [["t", 1], ("t", 1), (None, 1), ("t", 2**63)], 1
    )
    assert keys == [("t", 1)]
    assert find_primary_keys(lookup, keys, rows, (), None, 2) == [("o", "z"), ("p", "a")]
    assert find_primary_keys(lookup, keys, rows, (), ("p", "a"), 2) == [("p", "b")]
    assert find_primary_keys(lookup, keys, rows, [Where("size", ">", 1)], None, 2) == []


def test_a_key_of_an_enumeration_is_its_value() -> None:
    class Name(enum.StrEnum):
        FIRST = "first"

    (key,) = valid_lookup_keys(Note.collection, Note.collection.lookup("named"), [(Name.FIRST,)], 1)
    assert key == ("first",)
    assert type(key[0]) is str
