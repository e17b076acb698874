"""Accounts: created, read and changed by the partner's backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.accounts.new_wallets import NewWallet
from payments_core.accounts.operations import NewAccount
from payments_core.accounts.record import Settlement
from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v2.accounts import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def create(service: PaymentsService, call: ApiCall[bodies.CreateAccount, None]) -> Response:
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
    return call.run_idempotent(
        lambda idempotent: call.resources.accounts.create(new, idempotency_key=idempotent),
        views.account,
    )


def read(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """An account."""
    return call.respond(views.account(call.resources.accounts.read(call.path["accountId"])))


def list_accounts(service: PaymentsService, call: ApiCall[None, bodies.ListAccounts]) -> Response:
    """Accounts, newest first."""
    page = call.resources.accounts.list(
        external_user_id=call.query.externalUserId,
        after=call.decode_position(),
        limit=call.query.limit,
    )
    return call.respond_page(page, views.account)


def change(service: PaymentsService, call: ApiCall[bodies.ChangeAccount, None]) -> Response:
    """The account with the given fields changed."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.accounts.change(
            call.path["accountId"],
            email=body.email,
            metadata=body.metadata,
            status=body.status,
            idempotency_key=idempotent,
        ),
        views.account,
    )


def set_settlement(service: PaymentsService, call: ApiCall[bodies.Settlement, None]) -> Response:
    """The account with another settlement preference."""
    body = call.body
    settlement = Settlement(chain_id=body.chainId, asset_symbol=body.assetSymbol)
    return call.run_idempotent(
        lambda idempotent: call.resources.accounts.set_settlement(
            call.path["accountId"], settlement, idempotency_key=idempotent
        ),
        views.account,
    )


def set_handle(service: PaymentsService, call: ApiCall[bodies.Handle, None]) -> Response:
    """The account with its username."""
    return call.run_idempotent(
        lambda idempotent: call.resources.accounts.set_handle(
            call.path["accountId"], call.body.username, idempotency_key=idempotent
        ),
        views.account,
    )


def read_capabilities(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """Which bank flows the account may use."""
    account_id = call.path["accountId"]
    return call.respond(
        views.capabilities(account_id, call.resources.accounts.read_capabilities(account_id))
    )


def read_balances(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """What the account's vaults hold."""
    account_id = call.path["accountId"]
    return call.respond(
        views.balances(account_id, call.resources.accounts.read_balances(account_id))
    )


def _settlement(given: bodies.Settlement | None) -> Settlement | None:
    if given is None:
        return None
    return Settlement(chain_id=given.chainId, asset_symbol=given.assetSymbol)
