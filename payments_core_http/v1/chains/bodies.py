"""The bodies of balances."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar, Literal

from payments_core.validation.fields import AccountId, Address, PaymentAddress
from payments_core_http.wire.classes import frozen_body


@frozen_body
class ReadBalance:
    """An account's vault, or any address. The balance is of USDC; on EVM, of USDC on Polygon."""

    exactly_one_of: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("userId", "paymentAddress", "address"),
    )

    userId: AccountId | None = None
    paymentAddress: PaymentAddress | None = None
    address: Address | None = None
    chainType: Literal["evm", "solana", "aptos"] = "evm"


@frozen_body
class ReadBalances:
    """An address, on all chains of its type.

    With `amount`, only balances above that number of whole tokens.
    """

    userAddress: Address
    """The address whose balances to read."""
    amount: Decimal = Decimal(0)
    """Only balances above this number of whole tokens."""
