"""Money Accounts: the accounts of v2, by v1's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from payments_core.accounts.new_wallets import NewWallet
from payments_core.accounts.operations import (
    DEFAULT_SETTLEMENT,
    AccountDetails,
    NewAccount,
)
from payments_core.accounts.record import Settlement
from payments_core.accounts.wallet_signatures import MessageSignature
from payments_core.addresses import identify_chain_type
from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v1.accounts import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def register(
    service: PaymentsService, call: ApiCall[bodies.RegisterMoneyAccount, None]
) -> Response:
    """A new account."""
    body = call.body
    settlement = None
    if body.preferredSettlementChain is not None or body.preferredSettlementToken is not None:
        settlement = Settlement(
            chain_id=body.preferredSettlementChain or DEFAULT_SETTLEMENT.chain_id,
            asset_symbol=body.preferredSettlementToken or DEFAULT_SETTLEMENT.asset_symbol,
        )
    new = NewAccount(
        subject_type="individual",
        username=body.username,
        wallets=[
            NewWallet(address=address, chain_type=identify_chain_type(address))
            for address in body.addresses
        ],
        settlement=settlement,
    )
    return call.run_idempotent(
        lambda idempotent: call.resources.accounts.create(new, idempotency_key=idempotent),
        lambda details: views.MoneyAccountResponse(
            data=views.money_account(details), requestId=call.request_id
        ),
    )


def check_username(
    service: PaymentsService, call: ApiCall[None, bodies.WantedUsername]
) -> Response:
    """Whether a username is available."""
    username = call.query.username
    data = views.UsernameAvailabilityView(
        username=username,
        available=call.resources.accounts.is_handle_free(username),
    )
    return call.respond(views.UsernameAvailabilityResponse(data=data, requestId=call.request_id))


def set_username(service: PaymentsService, call: ApiCall[bodies.ChooseUsername, None]) -> Response:
    """The payment address that the username makes."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.accounts.set_handle(
            body.userId, body.username, once=True, idempotency_key=idempotent
        ),
        lambda details: views.ChosenUsernameResponse(
            data=views.chosen_username(details), requestId=call.request_id
        ),
    )


def add_address(service: PaymentsService, call: ApiCall[bodies.AddAddress, None]) -> Response:
    """The account's addresses, with the one that signed."""
    body = call.body
    wallet = MessageSignature(
        chain_type=body.chainType,
        address=body.address,
        message=body.message,
        signature=body.signature,
        public_key=body.publicKey,
    )
    return call.run_idempotent(
        lambda idempotent: call.resources.wallets.add_by_message(
            body.userId, wallet, idempotency_key=idempotent
        ),
        lambda details: views.LinkedAddressesResponse(
            data=views.linked_addresses(details), requestId=call.request_id
        ),
    )


def set_preferences(
    service: PaymentsService, call: ApiCall[bodies.ChoosePreferences, None]
) -> Response:
    """The account's changed preferences."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.accounts.adjust_settlement(
            body.userId,
            chain_id=body.preferredSettlementChain,
            asset_symbol=body.preferredSettlementToken,
            idempotency_key=idempotent,
        ),
        lambda details: views.PreferencesResponse(
            data=views.preferences(details), requestId=call.request_id
        ),
    )


def generate_address(
    service: PaymentsService, call: ApiCall[bodies.GenerateAddress, None]
) -> Response:
    """The account's deposit address on a chain."""
    issued = call.resources.deposits.issue_address(call.body.userId, call.body.chainId)
    data = views.generated_address(issued.address)
    return call.respond(views.GeneratedAddressResponse(data=data, requestId=call.request_id))


def read_user(service: PaymentsService, call: ApiCall[None, bodies.NamedUser]) -> Response:
    """An account by its id or its username."""
    details = find_user(service, call, call.query.userId, call.query.username)
    return call.respond(
        views.MoneyAccountResponse(data=views.money_account(details), requestId=call.request_id)
    )


def read_address_owner(
    service: PaymentsService, call: ApiCall[None, bodies.UserAddress]
) -> Response:
    """The account that a wallet address is linked to."""
    details = call.resources.accounts.find_by_wallet(call.query.address)
    return call.respond(
        views.AddressOwnerResponse(data=views.address_owner(details), requestId=call.request_id)
    )


def resolve(service: PaymentsService, call: ApiCall[None, bodies.UserPaymentAddress]) -> Response:
    """The account behind a payment address."""
    details = find_user(service, call, None, None, call.query.paymentAddress)
    return call.respond(
        views.ResolvedAddressResponse(
            data=views.resolved_address(details), requestId=call.request_id
        )
    )


def read_kyc(service: PaymentsService, call: ApiCall[None, bodies.AnyNameOfUser]) -> Response:
    """Whether an account is verified."""
    query = call.query
    details = find_user(service, call, query.userId, query.username, query.paymentAddress)
    return call.respond(
        views.KycDoneResponse(data=views.kyc_done(details), requestId=call.request_id)
    )


def find_user(
    service: PaymentsService,
    call: ApiCall[Any, Any],
    user_id: str | None,
    username: str | None,
    payment_address: str | None = None,
) -> AccountDetails:
    """The account by the one of its names that is given. Raises NotFound."""
    if user_id is not None:
        return call.resources.accounts.read(user_id)
    if username is not None:
        return call.resources.accounts.find_by_handle(username)
    assert payment_address is not None
    return call.resources.accounts.find_by_payment_address(payment_address)
