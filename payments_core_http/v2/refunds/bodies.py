"""The body of a refund."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from payments_core.validation.fields import Address, Amount, Sentence
from payments_core_http.wire.classes import frozen_body


@frozen_body
class CreateRefund:
    """How much to refund and to whom; without these, all that can be refunded, to its sender.

    A null `amount` or `destination` is refused: it may be a value that was lost.
    """

    amount: Amount | UnsetType = UNSET
    """How much to refund; if absent, all that can be refunded."""
    destination: Address | UnsetType = UNSET
    """The address to refund to; if absent, the payer's address."""
    reason: Sentence | None = None
    """Your reason."""
