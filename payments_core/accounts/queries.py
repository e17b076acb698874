"""Records of an existing account, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.accounts.record import Account
from payments_core.errors import NotFound
from payments_core.storage.port import Page, Position, Snapshot, Storage, Where
from payments_core.storage.records import R, Value
from payments_core.tenants.authorization import Authority


def list_for_account(
    storage: Storage,
    authority: Authority,
    account_id: str,
    kind: type[R],
    *,
    index: str = "by_account",
    key: Sequence[Value] = (),
    where: Sequence[Where] = (),
    after: Position | None = None,
    limit: int = 50,
) -> Page[R]:
    """The account's records of a kind, in the order of the index. Raises NotFound.

    `key` is the part of the index key after the account's id. Damaged rows are skipped.
    """

    def load(snapshot: Snapshot) -> Page[R]:
        if snapshot.get(Account, account_id) is None:
            raise NotFound("account")
        return snapshot.find(
            kind,
            index,
            (account_id, *key),
            where=where,
            after=after,
            limit=limit,
            skip_damaged=True,
        )

    return storage.read(authority.partition, load)
