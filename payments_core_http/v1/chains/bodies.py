"""The bodies of balances."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar, Literal

from payments_core.validation.fields import AccountId, Address, PaymentAddress
from payments_core_http.wire.classes import frozen_body


@frozen_body
class ReadBalance:
    """Whose balance: an account's vault, or any address. It is of USDC; on EVM, of Polygon's."""

    exactly_one_of: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("userId", "paymentAddress", "address"),
    )

    userId: AccountId | None = None
    paymentAddress: PaymentAddress | None = None
    address: Address | None = None
    chainType: Literal["evm", "solana", "aptos"] = "evm"


@frozen_body
class ReadBalances:
    """Whose balances, on all chains of the address's type, and above how many whole tokens."""

    userAddress: Address
    amount: Decimal = Decimal(0)
