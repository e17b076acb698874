"""What a dated contract may say of an object, in each of its three directions."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.contracts.changes import (
    Added,
    Change,
    DefaultChanged,
    Removed,
    Renamed,
    Reworded,
)
from payments_core.contracts.versions import CONTRACTS, Contract, Versions

TEXT = {"type": "string"}
WORDS = {"type": "string", "enum": ["open", "closing", "closed"]}

RENAMED = Renamed("older", "newer")
ADDED = Added("size", lambda body: len(body))
REMOVED = Removed("double", {"type": "integer"}, lambda fields: fields["one"] * 2)
REWORDED = Reworded("status", {"closing": "open", "closed": "done"})
DEFAULT = DefaultChanged("seconds", 60)

RENDERED: list[tuple[Change, dict[str, Any], dict[str, Any]]] = [
    (RENAMED, {"a": 1, "newer": 2, "b": 3}, {"a": 1, "older": 2, "b": 3}),
    (RENAMED, {"a": 1}, {"a": 1}),
    (ADDED, {"size": 1, "a": 2}, {"a": 2}),
    (ADDED, {"a": 2}, {"a": 2}),
    (REMOVED, {"one": 4}, {"one": 4, "double": 8}),
    (REMOVED, {"one": 4, "double": 9}, {"one": 4, "double": 9}),
    (REWORDED, {"status": "closing"}, {"status": "open"}),
    (REWORDED, {"status": "closed"}, {"status": "done"}),
    (REWORDED, {"status": "open"}, {"status": "open"}),
    (REWORDED, {"status": None}, {"status": None}),
    (REWORDED, {}, {}),
    (DEFAULT, {"seconds": 5}, {"seconds": 5}),
]
READ: list[tuple[Change, dict[str, Any], dict[str, Any]]] = [
    (RENAMED, {"older": 2}, {"newer": 2}),
    (RENAMED, {}, {}),
    (ADDED, {"a": 2}, {"a": 2, "size": 1}),
    (Added("size"), {"a": 2}, {"a": 2}),
    (REMOVED, {"one": 4, "double": 8}, {"one": 4}),
    (REMOVED, {"one": 4}, {"one": 4}),
    (REWORDED, {"status": "done"}, {"status": "closed"}),
    (REWORDED, {"status": ["done"]}, {"status": ["done"]}),
    (DEFAULT, {}, {"seconds": 60}),
    (DEFAULT, {"seconds": None}, {"seconds": 60}),
    (DEFAULT, {"seconds": 5}, {"seconds": 5}),
]
DESCRIBED: list[tuple[Change, dict[str, Any], dict[str, Any]]] = [
    (
        RENAMED,
        {"properties": {"a": TEXT, "newer": TEXT}, "required": ["a", "newer"]},
        {"properties": {"a": TEXT, "older": TEXT}, "required": ["a", "older"]},
    ),
    (RENAMED, {"properties": {"newer": TEXT}}, {"properties": {"older": TEXT}}),
    (
        ADDED,
        {"properties": {"a": TEXT, "size": TEXT}, "required": ["a", "size"]},
        {"properties": {"a": TEXT}, "required": ["a"]},
    ),
    (ADDED, {"properties": {"a": TEXT, "size": TEXT}}, {"properties": {"a": TEXT}}),
    (
        REMOVED,
        {"properties": {"one": TEXT}, "required": ["one"]},
        {"properties": {"one": TEXT, "double": {"type": "integer"}}, "required": ["one", "double"]},
    ),
    (
        Removed("x", TEXT, lambda fields: 1, required=False),
        {"properties": {}},
        {"properties": {"x": TEXT}},
    ),
    (
        REWORDED,
        {"properties": {"status": WORDS}},
        {"properties": {"status": {"type": "string", "enum": ["open", "done"]}}},
    ),
    (
        DEFAULT,
        {"properties": {"seconds": {"default": 5}}},
        {"properties": {"seconds": {"default": 60}}},
    ),
]


@pytest.mark.parametrize(("change", "newer", "older"), RENDERED)
def test_an_answer_is_made_older(
    change: Change, newer: dict[str, Any], older: dict[str, Any]
) -> None:
    change.render(newer)
    assert list(newer.items()) == list(older.items())


@pytest.mark.parametrize(("change", "older", "newer"), READ)
def test_a_body_is_made_newer(change: Change, older: dict[str, Any], newer: dict[str, Any]) -> None:
    change.read(older)
    assert older == newer


@pytest.mark.parametrize(("change", "newer", "older"), DESCRIBED)
def test_a_schema_is_made_older(
    change: Change, newer: dict[str, Any], older: dict[str, Any]
) -> None:
    given = {**newer, "properties": dict(newer["properties"])}
    change.describe(given)
    assert given == older


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (RENAMED, "newer"),
        (ADDED, "size"),
        (REWORDED, "status"),
        (Reworded("a", {}), "enum"),
        (Reworded("words", {"opened": "open"}), "opened"),
        (DEFAULT, "seconds"),
    ],
)
def test_a_change_of_what_a_schema_does_not_have_is_refused(change: Change, missing: str) -> None:
    with pytest.raises(KeyError, match=missing):
        change.describe({"properties": {"a": TEXT, "words": WORDS}})


@pytest.mark.parametrize("change", [Renamed("a", "b"), Removed("a", TEXT, lambda fields: "")])
def test_an_older_name_that_another_field_has_is_refused(change: Change) -> None:
    with pytest.raises(ValueError, match="the newer contract has another field a"):
        change.describe({"properties": {"a": TEXT, "b": TEXT}})


def test_a_word_is_either_an_older_or_a_newer_one() -> None:
    with pytest.raises(ValueError, match="status: open is both an older and a newer word"):
        Reworded("status", {"closing": "open", "open": "opened"})


FIRST = Contract("2026-01-01", {"Thing": (Renamed("a", "b"),), "Other": (Renamed("x", "y"),)})
SECOND = Contract("2026-02-01", {"Thing": (Renamed("b", "c"),)})
THREE = Versions((FIRST, SECOND, Contract("2026-03-01")))


@pytest.mark.parametrize(
    ("date", "fields"),
    [
        ("2026-03-01", {"c": 1}),
        ("2026-02-01", {"b": 1}),
        ("2026-01-01", {"a": 1}),
        ("2025-01-01", {"a": 1}),  # served no more: as the oldest
        ("2027-01-01", {"c": 1}),  # stored by a later release: as the newest
    ],
)
def test_an_object_goes_through_the_contract_of_each_date(
    date: str, fields: dict[str, Any]
) -> None:
    stored = {"c": 1}
    assert THREE.render("Thing", stored, date) == fields
    assert stored == {"c": 1}


def test_an_object_that_does_not_differ_stays_as_it_is() -> None:
    assert THREE.render("Other", {"y": 1}, "2026-02-01") == {"y": 1}
    assert THREE.render("Unknown", {"y": 1}, "2026-01-01") == {"y": 1}


def test_the_newest_contract_differs_from_none() -> None:
    assert CONTRACTS[-1].changes == {}
    with pytest.raises(ValueError, match="newest"):
        Versions((Contract("2026-01-01"), SECOND))
