"""How Payments are found for a list: by which index, and which filters are compared row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from payments_core.engine.state_machine import describe_states
from payments_core.payments.record import Payment
from payments_core.payments.transitions import PAYMENT
from payments_core.storage.newest import find_newest
from payments_core.storage.port import Page, Position, Snapshot, Where
from payments_core.storage.records import Value

PaymentStatus = Annotated[str, describe_states(PAYMENT, "a Payment")]


def find_payments(
    snapshot: Snapshot,
    account_id: str | None,
    where: Sequence[Where],
    after: Position | None,
    limit: int,
) -> Page[Payment]:
    """A page of the Payments of one account, or of all, newest first, that satisfy every `where`.

    A Payment that cannot be read is skipped with an alarm.
    """
    index, key, where = _choose_index(account_id, where)
    return find_newest(snapshot, Payment, index, key, where=where, after=after, limit=limit)


def _choose_index(
    account_id: str | None, where: Sequence[Where]
) -> tuple[str, tuple[Value, ...], Sequence[Where]]:
    """The index that has the fewest Payments under its key, the key, and the filters left to
    compare.

    Each index has the newest first, so that a position in one is a position in all.
    """
    references = [item for item in where if (item.column, item.operator) == ("reference", "=")]
    if references:
        rest = [item for item in where if item != references[0]]
        if account_id is not None:
            rest.append(Where("account_id", "=", account_id))
        return "by_reference", (references[0].value,), rest
    if account_id is not None:
        return "by_account", (account_id,), where
    return "by_created", (), where
