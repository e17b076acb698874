"""Wallets: linked by a signature, listed and removed by the partner's backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Answer
from payments_core_http.calls import Call
from payments_core_http.v2.wallets import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def challenge(service: PaymentsService, call: Call[bodies.CreateChallenge, None]) -> Answer:
    """A text for the wallet to sign."""
    body = call.body
    return call.once(
        lambda idempotent: service.wallets.challenge(
            call.authority,
            call.path["accountId"],
            body.address,
            body.chainType,
            idempotent=idempotent,
        ),
        views.challenge,
    )


def add(service: PaymentsService, call: Call[bodies.AddWallet, None]) -> Answer:
    """The wallet that signed, verified."""
    body = call.body
    return call.once(
        lambda idempotent: service.wallets.add(
            call.authority,
            call.path["accountId"],
            body.challengeId,
            body.signature,
            public_key=body.publicKey,
            label=body.label,
            idempotent=idempotent,
        ),
        views.wallet,
    )


def list_wallets(service: PaymentsService, call: Call[None, PageQuery]) -> Answer:
    """The account's wallets, oldest first."""
    page = service.wallets.list(
        call.authority, call.path["accountId"], after=call.position(), limit=call.query.limit
    )
    return call.listed(page, views.wallet)


def remove(service: PaymentsService, call: Call[None, None]) -> Answer:
    """The wallet as it was."""
    return call.once(
        lambda idempotent: service.wallets.remove(
            call.authority, call.path["accountId"], call.path["walletId"], idempotent=idempotent
        ),
        views.wallet,
    )
