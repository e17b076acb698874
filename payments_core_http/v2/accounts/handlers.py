"""Accounts: created, read and changed by the partner's backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.accounts.operations import NewAccount, NewWallet
from payments_core.accounts.record import Settlement
from payments_core.engine.idempotency.record import Answer
from payments_core_http.calls import Call
from payments_core_http.v2.accounts import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def create(service: PaymentsService, call: Call[bodies.CreateAccount, None]) -> Answer:
    """A new account with its vaults."""
    body = call.body
    new = NewAccount(
        external_user_id=body.externalUserId,
        subject_type=body.subjectType,
        username=body.username,
        email=body.email,
        wallets=[
            NewWallet(address=item.address, chain_type=item.chainType, label=item.label)
            for item in body.wallets
        ],
        settlement=_settlement(body.settlement),
        metadata=body.metadata,
    )
    return call.once(
        lambda idempotent: service.accounts.create(call.authority, new, idempotent=idempotent),
        views.account,
    )


def read(service: PaymentsService, call: Call[None, None]) -> Answer:
    """An account."""
    return call.answer(views.account(service.accounts.get(call.authority, call.path["accountId"])))


def list_accounts(service: PaymentsService, call: Call[None, bodies.ListAccounts]) -> Answer:
    """Accounts, newest first."""
    page = service.accounts.list(
        call.authority,
        external_user_id=call.query.externalUserId,
        after=call.position(),
        limit=call.query.limit,
    )
    return call.listed(page, views.account)


def change(service: PaymentsService, call: Call[bodies.ChangeAccount, None]) -> Answer:
    """The account with what was given changed."""
    body = call.body
    return call.once(
        lambda idempotent: service.accounts.update(
            call.authority,
            call.path["accountId"],
            email=body.email,
            metadata=body.metadata,
            status=body.status,
            idempotent=idempotent,
        ),
        views.account,
    )


def set_settlement(service: PaymentsService, call: Call[bodies.Settlement, None]) -> Answer:
    """The account with another settlement preference."""
    body = call.body
    settlement = Settlement(chain_id=body.chainId, asset_symbol=body.assetSymbol)
    return call.once(
        lambda idempotent: service.accounts.set_settlement(
            call.authority, call.path["accountId"], settlement, idempotent=idempotent
        ),
        views.account,
    )


def set_handle(service: PaymentsService, call: Call[bodies.Handle, None]) -> Answer:
    """The account with its username."""
    return call.once(
        lambda idempotent: service.accounts.set_username(
            call.authority, call.path["accountId"], call.body.username, idempotent=idempotent
        ),
        views.account,
    )


def capabilities(service: PaymentsService, call: Call[None, None]) -> Answer:
    """What of the bank flows the account may use."""
    details = service.accounts.get(call.authority, call.path["accountId"])
    return call.answer(views.capabilities(details.account))


def balances(service: PaymentsService, call: Call[None, None]) -> Answer:
    """What the account's vaults hold."""
    account_id = call.path["accountId"]
    return call.answer(
        views.balances(account_id, service.vaults.balances(call.authority, account_id))
    )


def _settlement(given: bodies.Settlement | None) -> Settlement | None:
    if given is None:
        return None
    return Settlement(chain_id=given.chainId, asset_symbol=given.assetSymbol)
