"""The chains of the registry, and what addresses hold on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v1.accounts.handlers import find_user
from payments_core_http.v1.chains import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def list_chains(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The chains of the registry."""
    data = views.SupportedChainsView(
        chains=tuple(
            views.supported_chain(
                entry,
                service.find_network_kind(entry.chain_id),
                is_active=entry.chain_id in service.chains,
            )
            for entry in service.networks.values()
        )
    )
    return call.respond(views.SupportedChainsResponse(data=data, requestId=call.request_id))


def read_balance(service: PaymentsService, call: ApiCall[bodies.ReadBalance, None]) -> Response:
    """What an account's vault, or any address, holds of USDC."""
    body = call.body
    if body.address is not None:
        found = call.resources.legacy.read_balance(body.chainType, body.address)
    else:
        details = find_user(service, call, body.userId, None, body.paymentAddress)
        found = call.resources.legacy.read_vault_balance(body.chainType, details)
    data = views.address_balance(found)
    return call.respond(views.AddressBalanceResponse(data=data, requestId=call.request_id))


def read_balances(service: PaymentsService, call: ApiCall[None, bodies.ReadBalances]) -> Response:
    """What an address holds on every chain of its type."""
    query = call.query
    found = call.resources.legacy.read_balances(query.userAddress, above=query.amount)
    data = views.address_holdings(found)
    return call.respond(views.AddressHoldingsResponse(data=data, requestId=call.request_id))
