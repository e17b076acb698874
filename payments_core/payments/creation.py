"""The first form of every new Payment, of any intent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from payments_core.clock import Instant
from payments_core.engine.identifiers import IdSequence
from payments_core.networks import Asset
from payments_core.payments.record import CreatedBy, Destination, Payment
from payments_core.tenants.authorization import Authority, Caller

CREATORS: Mapping[Caller, CreatedBy] = {
    "server": "server",
    "trusted": "server",
    "operator": "server",
    "client": "client",
    "public": "public",
}
"""The creator of a Payment, for each caller that may create one."""


@attrs.frozen
class Payee:
    """The recipient, the amount and the asset."""

    asset: Asset
    amount_atomic: int
    destination: Destination


class PartnerNotes(Protocol):
    """A partner's own data on a Payment."""

    @property
    def reference(self) -> str | None:
        """The partner's own id."""

    @property
    def description(self) -> str | None:
        """A text for people."""

    @property
    def metadata(self) -> Mapping[str, Any] | None:
        """Any JSON object."""


def draft_payment(
    authority: Authority,
    payee: Payee,
    notes: PartnerNotes,
    id_sequence: IdSequence,
    *,
    now: Instant,
) -> Payment:
    """A Payment before its first state, which the table chooses (`lifecycle.create`).

    It receives, belongs to the recipient, expires at once, and has no escrow: its caller replaces
    what differs for its intent.
    """
    asset, destination = payee.asset, payee.destination
    return Payment(
        id=id_sequence.issue("payment"),
        status="",
        status_version=0,
        account_id=destination.account_id,
        external_user_id=destination.external_user_id,
        chain_id=asset.chain_id,
        asset_symbol=asset.symbol,
        token_address=asset.address,
        decimals=asset.decimals,
        amount_atomic=payee.amount_atomic,
        destination=destination,
        escrow_address=None,
        allowed_methods=(),
        session_id=id_sequence.issue("ses"),
        reference=notes.reference,
        description=notes.description,
        metadata=notes.metadata,
        api_version=authority.api_version,
        created_by=CREATORS[authority.requirement.caller],
        expires_at_ms=now,
        monitoring_expires_at_ms=now,
        created_at_ms=now,
        updated_at_ms=now,
    )
