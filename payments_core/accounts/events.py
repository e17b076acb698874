"""The events of an account, as decisions state them."""

from __future__ import annotations

from payments_core.accounts.record import Account
from payments_core.engine.events import NewEvent


def account_event(name: str, account: Account, api_version: str) -> NewEvent:
    """`account.created` or `account.updated`, with the account as it is after the change."""
    return NewEvent(
        name,
        {
            "accountId": account.id,
            "externalUserId": account.external_user_id,
            "status": account.status,
        },
        api_version,
        account.id,
        account.external_user_id,
    )
