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
    destination: Address | UnsetType = UNSET
    reason: Sentence | None = None
