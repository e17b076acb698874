"""What a refund is asked for with."""

from __future__ import annotations

import attrs

from payments_core_http.v2.payments.bodies import (
    Sentence,
)
from payments_core_http.v2.types import Address, Amount


@attrs.frozen(kw_only=True)
class CreateRefund:
    """How much goes back and to whom; without these, all that can, to whoever sent it."""

    amount: Amount | None = None
    destination: Address | None = None
    reason: Sentence | None = None
