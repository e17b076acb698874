"""Whether this release may run beside the last one; and that this check finds each fault."""

from __future__ import annotations

import json
from typing import Any, Literal

import attrs
import pytest

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.records import Collection, Index, Lookup, Record, Unique
from tests.upgrades import newer
from tests.upgrades.forms import faults, form_of, latest


def test_this_release_may_run_beside_the_one_before() -> None:
    forms = latest()
    if forms is None:
        pytest.skip("no release is out yet, so there is none to run beside")
    assert list(faults(json.loads(forms.read_text()), RECORD_TYPES)) == []


def test_the_release_that_tests_run_beside_this_one_may_do_so_but_for_its_changed_index() -> None:
    before = json.loads(json.dumps({kind.collection.name: form_of(kind) for kind in RECORD_TYPES}))
    assert list(faults(before, RECORD_TYPES)) == []
    assert list(faults(before, newer.kinds())) == [
        "payments: by_session is made of something else; give it another name"
    ]


@attrs.frozen(kw_only=True)
class Line:
    """A part of a document."""

    text: str


@attrs.frozen(kw_only=True)
class LongerLine:
    """The same with a field more."""

    text: str
    note: str = ""


class Fields:
    """Ways in which a document's fields may change."""

    status: Any = (Literal["open", "closed"], "open")
    more_status: Any = (Literal["open", "closed", "frozen"], "open")
    lines: Any = (tuple[Line, ...], ())
    longer_lines: Any = (tuple[LongerLine, ...], ())
    text: Any = (str, "")
    nullable: Any = (str | None, None)


def kind(fields: dict[str, Any], **declared: Any) -> type[Record]:
    """A kind of record with those fields, each a type and a default."""
    space: dict[str, Any] = {
        "__annotations__": {name: type_ for name, (type_, _) in fields.items()},
        **{name: default for name, (_, default) in fields.items()},
    }
    made: Any = attrs.frozen(kw_only=True)(type("Made", (Record,), space))
    made.collection = Collection("made", **declared)
    return made  # type: ignore[no-any-return]


PLACE = {"columns": {"place": str, "rank": int}, "indexes": (Index("by_place", ("place",)),)}
PLAIN = {"place": Fields.text, "rank": (int, 0)}
ADDED = {"schema": 2, "oldest_reader": 1}
READ_ONLY = {"schema": 2, "downgrades": {1: dict}, "write_schema": 1}


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        # The fields of documents.
        (kind({}), kind({}), ""),
        (kind({}), kind({"note": Fields.text}), "raise the schema above 1"),
        (kind({}), kind({"note": Fields.text}, **ADDED), ""),
        (kind({}), kind({"note": Fields.text}, schema=2), "by `write_schema`"),
        (kind({"note": Fields.text}), kind({}, **ADDED), "misread or lose note"),
        (kind({"note": Fields.text}), kind({}, **READ_ONLY), ""),
        (kind({"note": Fields.text}), kind({"note": Fields.nullable}, **ADDED), "lose note"),
        (kind({"a": Fields.status}), kind({"a": Fields.more_status}), "raise the schema"),
        (kind({"a": Fields.status}), kind({"a": Fields.more_status}, **ADDED), "lose a"),
        (kind({"a": Fields.status}), kind({"a": Fields.more_status}, **READ_ONLY), ""),
        (kind({"a": Fields.lines}), kind({"a": Fields.longer_lines}, **ADDED), "lose a"),
        (kind({"a": Fields.lines}), kind({"a": Fields.longer_lines}, **READ_ONLY), ""),
        # The next release after one that reads the new form writes it.
        (kind({}, **READ_ONLY), kind({}, schema=2), ""),
        # Columns, and what is over them.
        (kind(PLAIN, **PLACE), kind(PLAIN, **PLACE, lookups=(Lookup("near", ("rank",)),)), ""),
        (kind(PLAIN, **PLACE), kind(PLAIN, columns={"place": str}), ""),
        (kind(PLAIN, **PLACE), kind(PLAIN, columns={"rank": int}), "by the column place"),
        (
            kind(PLAIN, **PLACE),
            kind(PLAIN, **{**PLACE, "indexes": (Index("by_place", ("place",), ("rank",)),)}),
            "give it another name",
        ),
        (
            kind(PLAIN, **PLACE),
            kind(PLAIN, **{**PLACE, "indexes": (), "uniques": (Unique("by_place", ("place",)),)}),
            "give it another name",
        ),
    ],
)
def test_what_two_releases_side_by_side_would_break_on_is_found(
    before: type[Record], after: type[Record], fault: str
) -> None:
    found = list(faults({"made": form_of(before)}, [after]))
    assert len(found) == bool(fault), found
    assert not fault or fault in found[0]


def test_a_collection_that_is_gone_is_found() -> None:
    assert list(faults({"made": form_of(kind({}))}, ())) == [
        "made: the release before still writes to it; keep it for one more"
    ]
