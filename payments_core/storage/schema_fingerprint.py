"""A digest of a database schema's source: a start compares it in a millisecond."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

import attrs

from payments_core.storage.records import Record


def compute_fingerprint(record_types: Iterable[type[Record]], own: Mapping[str, str]) -> str:
    """A digest of the collections, and of the adapter's `own` indexes by name."""
    declared = {
        kind.collection.name: [
            {column: type_.__name__ for column, type_ in kind.collection.columns.items()},
            [attrs.astuple(index) for index in kind.collection.indexes],
            [(unique.name, unique.columns) for unique in kind.collection.uniques],
            [attrs.astuple(lookup) for lookup in kind.collection.lookups],
            sorted(kind.collection.takes_over),
        ]
        for kind in record_types
    }
    text = json.dumps([declared, dict(own)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
