"""The next release: the present code, with other records, run by the command line as ever.

python -m tests.upgrades.newer serve --config payments.toml

What it changes, before anything else is imported: a Payment has a new field, a new column over it,
another over a field that was there, and an index of both; the index of its sessions is another
one; a field of a payment link has a new name, which this release reads and does not write yet; and
there is a new collection, with routes of its own (`newer_routes.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from payments_core.credentials.secrets import Mode
from payments_core.payments import record
from payments_core.storage.records import Collection, Document, Index, Record, Unique


def _not_screened(document: Document) -> Document:
    return {**document, "screened": "no"}


def _renamed(old: str, new: str) -> Any:
    def rename(document: Document) -> Document:
        return {new if name == old else name: value for name, value in document.items()}

    return rename


_before = record.Payment.collection


@attrs.frozen(kw_only=True)
class Payment(record.Payment):
    """A Payment that says whether it was screened: those of this release were."""

    collection: ClassVar[Collection] = attrs.evolve(
        _before,
        columns={**_before.columns, "screened": str, "updated_at": int},
        indexes=(
            *(index for index in _before.indexes if index.name != "by_session"),
            Index("by_session", key=("session_id",), order=("created_at",)),
            Index("by_screening", key=("screened",), order=("updated_at",)),
        ),
        schema=_before.schema + 1,
        upgrades={**_before.upgrades, _before.schema: _not_screened},
        write_schema=_before.schema + 1,
        oldest_reader=1,
    )

    screened: str = "yes"


@attrs.frozen(kw_only=True)
class PaymentLink(Record):
    """A link whose `payment_id` is called `subject`; the code still knows it by both names."""

    collection: ClassVar[Collection] = Collection(
        "payment_links",
        schema=2,
        upgrades={1: _renamed("payment_id", "subject")},
        downgrades={1: _renamed("subject", "payment_id")},
        write_schema=1,
    )

    subject: str = attrs.field(alias="payment_id")
    mode: Mode

    @property
    def payment_id(self) -> str:
        """As it was called."""
        return self.subject


@attrs.frozen(kw_only=True)
class Screening(Record):
    """Who looked at a Payment: one for each."""

    collection: ClassVar[Collection] = Collection(
        "screenings",
        columns={"payment_id": str},
        indexes=(Index("by_payment", key=("payment_id",)),),
        uniques=(Unique("payment", ("payment_id",)),),
    )

    payment_id: str


def put_records() -> None:
    """Put the records in the places of those before."""
    record.Payment = Payment  # type: ignore[misc]
    record.PaymentLink = PaymentLink  # type: ignore[misc,assignment]
    from payments_core import record_types as present

    present.RECORD_TYPES = kinds()


def kinds() -> tuple[type[Record], ...]:
    """Every kind of record of this release."""
    from payments_core.record_types import RECORD_TYPES

    changed: Mapping[str, type[Record]] = {
        kind.collection.name: kind for kind in (Payment, PaymentLink, Screening)
    }
    return (*(changed.get(kind.collection.name, kind) for kind in RECORD_TYPES), Screening)


if __name__ == "__main__":
    put_records()
    # Only now: what these import takes the records from where they were put.
    from payments_core_http.cli import main
    from tests.upgrades import newer_routes

    newer_routes.put()

    main()
