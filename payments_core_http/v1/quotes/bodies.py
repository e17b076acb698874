"""The bodies and queries of quotes."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from payments_core.errors import FieldError
from payments_core.money import MAX_DIGITS
from payments_core.quotes.request import RawAmount, TokenName
from payments_core.validation.fields import (
    AccountId,
    Address,
    AssetSymbol,
    ChainId,
    Id,
    PaymentAddress,
)
from payments_core_http.wire.classes import frozen_body


@frozen_body
class AskQuote:
    """The payer, the recipient and the amount in whole tokens of `sourceChainToken`.

    The service reads the number exactly. Without a chain or token, the preference of the payer or
    recipient applies, or else USDC on Base.
    """

    exactly_one_of: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("userId", "sourceAddress"),
        ("destinationUserId", "destinationPaymentAddress", "destinationWalletAddress"),
    )

    amount: Decimal
    userId: AccountId | None = None
    sourceAddress: Address | None = None
    sourceChainId: ChainId | None = None
    sourceChainToken: TokenName = "USDC"
    destinationUserId: AccountId | None = None
    """The recipient by its account."""
    destinationPaymentAddress: PaymentAddress | None = None
    """The recipient by its payment address."""
    destinationWalletAddress: Address | None = None
    """The recipient by its wallet."""
    destinationChainID: ChainId | None = None
    """The chain on which the recipient is paid."""
    destinationToken: AssetSymbol | None = None
    """The token in which the recipient is paid."""

    def faults(self) -> list[FieldError]:
        """A number that no amount of a token can be."""
        if self.amount.is_signed() or abs(self.amount.adjusted()) >= MAX_DIGITS:
            return [FieldError("amount", "must be a positive number that a token can carry")]
        return []

    @property
    def amount_text(self) -> str:
        """The amount as decimal text, without zeros at its end."""
        text = format(self.amount, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text


@frozen_body
class AskDepositAddress:
    """Who is paid, and the input amount, in the token's smallest unit.

    `sourceChainToken` is the symbol or the address of a token.
    """

    paymentAddress: PaymentAddress
    rawAmount: RawAmount
    """The input amount, in the token's smallest unit."""
    sourceAddress: Address
    sourceChainId: ChainId
    sourceChainToken: TokenName


@frozen_body
class VerifyTransfer:
    """The transfer to check: that of a quote, or one to a deposit address."""

    exactly_one_of: ClassVar[tuple[tuple[str, ...], ...]] = (("quoteId", "depositAddress"),)

    quoteId: Id | None = None
    depositAddress: Address | None = None
    chainId: ChainId | None = None

    def faults(self) -> list[FieldError]:
        """A deposit address without its chain, or a quote with one."""
        if self.depositAddress is not None and self.chainId is None:
            return [FieldError("chainId", "is required with depositAddress")]
        if self.quoteId is not None and self.chainId is not None:
            return [FieldError("chainId", "cannot be given together with quoteId")]
        return []
