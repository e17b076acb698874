"""The objects that an older contract changes, by made-up schemas, and what it may not change."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.contracts.changes import Added, Change, Removed, Renamed, Reworded
from payments_core.contracts.versions import Contract, Versions
from payments_core.errors import ValidationFailed
from payments_core_http.older_objects import OlderObjects
from payments_core_http.openapi.document import build_document
from tests.dates import NEWER, OLDER
from tests.http.console import Console

ORDER = {"$ref": "#/components/schemas/Order"}
TEXT = {"type": "string"}


def make_older(schemas: dict[str, Any], changes: dict[str, tuple[Change, ...]]) -> OlderObjects:
    """The objects of a contract in which everything is a body."""
    body = {"oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in schemas]}
    row = {"requestBody": {"content": {"application/json": {"schema": body}}}, "responses": {}}
    document = {"components": {"schemas": schemas}, "paths": {"/v2/orders": {"post": row}}}
    return OlderObjects(document, changes)


def test_a_field_of_a_date_between_is_not_known() -> None:
    schemas = {"Order": {"properties": {"z": {"type": "string"}}}}
    older = make_older(schemas, {"Order": (Renamed("y", "z"), Renamed("x", "y"))})
    assert older.read({"x": "1"}, ORDER) == {"z": "1"}
    for newer in ("y", "z", "w"):
        with pytest.raises(ValidationFailed) as refused:
            older.read({"x": "1", newer: "2"}, ORDER)
        assert [fault.path for fault in refused.value.fields] == [newer]


def test_a_word_that_only_a_newer_date_has_is_refused() -> None:
    schemas = {"Order": {"properties": {"kind": {"enum": ["now", "later"]}}}}
    older = make_older(
        schemas, {"Order": (Reworded("kind", {"now": "soon"}), Renamed("type", "kind"))}
    )
    assert older.read({"type": "soon"}, ORDER) == {"kind": "now"}
    assert older.read({"type": "later"}, ORDER) == {"kind": "later"}
    with pytest.raises(ValidationFailed) as refused:
        older.read({"type": "now"}, ORDER)
    [fault] = refused.value.fields
    assert (fault.path, fault.message) == ("type", "must be one of soon, later")


def test_a_list_that_may_be_null_has_its_items_converted() -> None:
    schemas = {"Order": {"properties": {"z": {"type": "string"}}}}
    older = make_older(schemas, {"Order": (Renamed("x", "z"),)})
    items = {"type": "array", "items": {"$ref": "#/components/schemas/Order"}}
    place = {"anyOf": [items, {"type": "null"}]}
    assert older.render([{"z": "1"}], place) == [{"x": "1"}]
    assert older.read([{"x": "1"}], place) == [{"z": "1"}]
    assert older.render(None, place) is None


def test_a_field_that_only_older_contracts_require_tells_the_form_of_a_body() -> None:
    schemas = {
        "Order": {"properties": {"z": TEXT}, "required": ["z"]},
        "Other": {"properties": {"w": TEXT}, "required": ["w"]},
    }
    older = make_older(schemas, {"Order": (Renamed("x", "z"),)})
    place = {"anyOf": [ORDER, {"$ref": "#/components/schemas/Other"}]}
    assert older.read({"x": "1"}, place) == {"z": "1"}
    assert older.render({"z": "1"}, place) == {"x": "1"}
    assert older.read({"w": "1"}, place) == {"w": "1"}


class Counted(dict[str, Any]):
    """A schema that counts how often its parts are looked at."""

    walks = 0

    def values(self) -> Any:
        self.walks += 1
        return super().values()


def test_a_schema_is_searched_once_for_all_its_values() -> None:
    older = make_older({"Order": {"properties": {"z": TEXT}}}, {"Order": (Renamed("x", "z"),)})
    place = Counted({"type": "array", "items": ORDER})
    for _ in range(3):
        assert older.render([{"z": "1"}], place) == [{"x": "1"}]
    assert place.walks == 1


WORDS = {"type": "string", "enum": ["now", "later"]}


@pytest.mark.parametrize(
    ("fields", "changes", "sentence"),
    [
        ({"z": TEXT}, (Renamed("x", "y"),), "Order: the newer contract has no 'y'"),
        ({"z": TEXT}, (Added("y"),), "Order: the newer contract has no 'y'"),
        ({"z": TEXT}, (Reworded("z", {}),), "Order: the newer contract has no 'enum'"),
        ({"z": WORDS}, (Reworded("z", {"x": "y"}),), "Order: the newer contract has no 'x'"),
        # A name of the oldest date is another field's now.
        (
            {"x": TEXT, "z": TEXT},
            (Added("x"), Renamed("x", "z")),
            "Order: a newer contract uses x for something else",
        ),
        (
            {"x": TEXT, "z": TEXT},
            (Renamed("y", "x"), Removed("x", TEXT, lambda fields: "")),
            "Order: a newer contract uses x for something else",
        ),
        (
            {"x": TEXT, "z": TEXT},
            (Renamed("x", "z"),),
            "Order: the newer contract has another field x",
        ),
        (
            {"z": TEXT},
            (Removed("z", TEXT, lambda fields: ""),),
            "Order: the newer contract has another field z",
        ),
        # A word of the oldest date says something else now, under the same or another name.
        (
            {"z": WORDS},
            (Reworded("z", {"now": "soon"}), Reworded("z", {"later": "now"})),
            "Order: a newer contract uses now for something else",
        ),
        (
            {"z": WORDS},
            (
                Reworded("z", {"now": "soon"}),
                Renamed("x", "z"),
                Reworded("x", {"later": "now"}),
            ),
            "Order: a newer contract uses now for something else",
        ),
        ({"z": WORDS}, (Reworded("z", {"now": "later"}),), "gives two words of a body one"),
    ],
)
def test_a_change_that_could_not_be_kept_is_refused(
    fields: dict[str, Any], changes: tuple[Change, ...], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        make_older({"Order": {"properties": fields}}, {"Order": changes})


FORM = "type says which form the object has, and cannot be changed"


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("AccountDestination", Renamed("kind", "type"), FORM),
        ("AccountDestination", Added("type"), FORM),
        ("AccountDestination", Reworded("type", {"account": "user"}), "has no 'enum'"),
        ("CreateSend", Renamed("kind", "intent"), "intent says which form"),
        ("Option", Renamed("provider", "providerCode"), "providerCode says which form"),
        ("ValidationError", Renamed("fault", "error"), "errors and the legacy interface"),
        ("LegacyValidationError", Renamed("fault", "error"), "errors and the legacy interface"),
        ("AskQuote", Renamed("user", "userId"), "errors and the legacy interface"),
        ("Nothing", Added("x"), "Nothing is not an object of the newest OpenAPI document"),
    ],
)
def test_a_service_does_not_start_with_a_contract_that_it_could_not_keep(
    name: str, change: Change, sentence: str
) -> None:
    versions = Versions((Contract(OLDER, {name: (change,)}), Contract(NEWER)))
    with pytest.raises(ValueError, match=sentence):
        Console(versions=versions)
    with pytest.raises(ValueError, match=sentence):
        build_document(OLDER, versions=versions)
