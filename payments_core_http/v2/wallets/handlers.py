"""Wallets: linked by a signature, listed and removed by the partner's backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v2.wallets import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def create_challenge(
    service: PaymentsService, call: ApiCall[bodies.CreateChallenge, None]
) -> Response:
    """A text for the wallet to sign."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.wallets.create_challenge(
            call.path["accountId"],
            body.address,
            body.chainType,
            chain_id=body.chainId,
            idempotency_key=idempotent,
        ),
        views.challenge,
    )


def add(service: PaymentsService, call: ApiCall[bodies.AddWallet, None]) -> Response:
    """The wallet that signed, verified."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.wallets.add(
            call.path["accountId"],
            body.challengeId,
            body.signature,
            public_key=body.publicKey,
            label=body.label,
            idempotency_key=idempotent,
        ),
        views.wallet,
    )


def list_wallets(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The account's wallets, oldest first."""
    page = call.resources.wallets.list(
        call.path["accountId"], after=call.decode_position(), limit=call.query.limit
    )
    return call.respond_page(page, views.wallet)


def remove(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The wallet as it was."""
    return call.run_idempotent(
        lambda idempotent: call.resources.wallets.remove(
            call.path["accountId"],
            call.path["walletId"],
            idempotency_key=idempotent,
        ),
        views.wallet,
    )
