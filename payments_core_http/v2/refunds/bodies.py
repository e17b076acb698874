"""The body of a refund."""

from __future__ import annotations

from payments_core.validation.fields import Address, Amount, Sentence
from payments_core_http.wire.classes import frozen_body


@frozen_body
class CreateRefund:
    """How much to refund and to whom; without these, all that can be refunded, to its sender."""

    amount: Amount | None = None
    destination: Address | None = None
    reason: Sentence | None = None
