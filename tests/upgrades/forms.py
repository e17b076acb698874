"""What a release stores, as data, and whether the next one may run beside it.

python -m tests.upgrades.forms > tests/upgrades/released/0.1.0.json

is part of making a release: the forms that the next one is compared with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import attrs

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.records import Collection, Record

RELEASED = Path(__file__).parent / "released"
_OWN = frozenset({"id", "version", "schema", "_unknown"})

Form = Mapping[str, Any]


def form_of(kind: type[Record]) -> Form:
    """What a collection's rows look like: the document's fields, the columns, what is over them."""
    collection = kind.collection
    return {
        "schema": collection.schema,
        "fields": {
            name: reported for name, reported in described(kind).items() if name not in _OWN
        },
        "columns": {name: type_.__name__ for name, type_ in collection.columns.items()},
        "found_by": found_by(collection),
    }


def found_by(collection: Collection) -> dict[str, list[Any]]:
    """The indexes, unique keys and lookups, by their names: what each is made of."""
    found: dict[str, list[Any]] = {}
    for index in collection.indexes:
        found[index.name] = ["index", *index.key, list(index.order), index.descending]
    for unique in collection.uniques:
        found[unique.name] = ["unique", *unique.columns]
    for lookup in collection.lookups:
        found[lookup.name] = ["lookup", *lookup.columns]
    return found


@cache
def described(type_: Any) -> Any:
    """A type as JSON: a class by its fields, a literal by its values, the rest by its name."""
    if isinstance(type_, type) and attrs.has(type_):
        hints = get_type_hints(type_)
        return {field.name: described(hints[field.name]) for field in attrs.fields(type_)}
    if get_origin(type_) is Literal:
        return ["one of", *sorted(get_args(type_))]
    if get_origin(type_) is not None:
        origin = getattr(get_origin(type_), "__name__", str(get_origin(type_)))
        return [origin, *("..." if one is ... else described(one) for one in get_args(type_))]
    return getattr(type_, "__name__", str(type_))


def faults(before: Mapping[str, Form], kinds: Iterable[type[Record]]) -> Iterator[str]:
    """Why these kinds may not run beside a release of those forms; nothing where they may."""
    now = {kind.collection.name: kind for kind in kinds}
    for name, old in before.items():
        if name not in now:
            yield f"{name}: the release before still writes to it; keep it for one more"
            continue
        yield from (f"{name}: {fault}" for fault in _faults(old, now[name]))


def _faults(old: Form, kind: type[Record]) -> Iterator[str]:
    collection, new = kind.collection, form_of(kind)
    same = new["fields"] == old["fields"]
    if not same and collection.schema <= old["schema"]:
        yield f"its documents changed; raise the schema above {old['schema']}"
    if collection.oldest_reader > old["schema"]:
        readable = old["schema"]
        yield f"the release before reads up to schema {readable}; write that, by `write_schema`"
    if collection.write_schema > old["schema"]:  # so the release before reads it as it is
        for field, reported in old["fields"].items():
            if new["fields"].get(field) != reported:
                yield f"the release before would misread or lose {field}; write the old form yet"
    used = json.dumps(list(old["found_by"].values()))
    for column, type_ in old["columns"].items():
        if new["columns"].get(column) != type_ and f'"{column}"' in used:
            yield f"the release before finds rows by the column {column}"
    for index, made_of in old["found_by"].items():
        if new["found_by"].get(index, made_of) != made_of:
            yield f"{index} is made of something else; give it another name"


def latest() -> Path | None:
    """The forms of the last release; None before the first."""
    return max(RELEASED.glob("*.json"), key=lambda path: _numbers(path.stem), default=None)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


if __name__ == "__main__":
    print(json.dumps({kind.collection.name: form_of(kind) for kind in RECORD_TYPES}, indent=1))
