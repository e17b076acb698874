"""What a refund is asked for with."""

from __future__ import annotations

from payments_core.validation.fields import Address, Amount, Sentence
from payments_core_http.wire.classes import frozen_body


@frozen_body
class CreateRefund:
    """How much goes back and to whom; without these, all that can, to whoever sent it."""

    amount: Amount | None = None
    destination: Address | None = None
    reason: Sentence | None = None
