"""The bodies and queries of Money Accounts."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import attrs
from msgspec import Meta

from payments_core.accounts.record import MAX_WALLETS
from payments_core.accounts.wallet_signatures import Message
from payments_core.addresses import AddressError, identify_chain_type, normalize_address
from payments_core.errors import FieldError
from payments_core.validation.fields import (
    AccountId,
    Address,
    AssetSymbol,
    ChainId,
    PaymentAddress,
    PublicKey,
    Signature,
    Username,
)
from payments_core_http.wire.classes import frozen_body


@frozen_body
class RegisterMoneyAccount:
    """A new Money Account.

    An address given here is not verified; its format shows the chain type.
    """

    username: Username | None = None
    addresses: Annotated[tuple[Address, ...], Meta(max_length=MAX_WALLETS)] = ()
    preferredSettlementChain: ChainId | None = None
    preferredSettlementToken: AssetSymbol | None = None

    def faults(self) -> list[FieldError]:
        """An address that is not valid for any chain type, or that is given twice."""
        found: list[FieldError] = []
        seen: set[tuple[str, str]] = set()
        for place, text in enumerate(self.addresses):
            try:
                chain_type = identify_chain_type(text)
                key = (chain_type, normalize_address(chain_type, text))
            except AddressError as error:
                found.append(FieldError(f"addresses[{place}]", str(error)))
                continue
            if key in seen:
                found.append(FieldError(f"addresses[{place}]", "is given twice"))
            seen.add(key)
        return found


@frozen_body
class AddAddress:
    """A wallet's signature of a message, which links the wallet. A message works once.

    EVM: 65 bytes in hex, by `personal_sign`, or for a contract wallet what its contract accepts
    (ERC-1271), also wrapped (ERC-6492). Solana: 64 bytes in base58 or base64, of the message as it
    is or in the envelope of off-chain messages. Aptos: 64 bytes in hex, of the full message with
    its prefix, and the public key beside them.
    """

    userId: AccountId
    address: Address
    chainType: Literal["evm", "solana", "aptos"]
    signature: Signature = attrs.field(repr=False)
    message: Message
    """The text that the wallet signed."""
    publicKey: PublicKey | None = None


@frozen_body
class ChooseUsername:
    """The username of an account that does not have one yet."""

    userId: AccountId
    username: Username


@frozen_body
class ChoosePreferences:
    """Where the account is to be paid; an absent field stays as it is."""

    userId: AccountId
    preferredSettlementChain: ChainId | None = None
    preferredSettlementToken: AssetSymbol | None = None

    def faults(self) -> list[FieldError]:
        """A body that would change nothing."""
        if self.preferredSettlementChain is None and self.preferredSettlementToken is None:
            return [
                FieldError(
                    "preferredSettlementChain",
                    "is required, unless preferredSettlementToken is given",
                )
            ]
        return []


@frozen_body
class GenerateAddress:
    """The account of the deposit address, and its chain."""

    userId: AccountId
    chainId: ChainId


@frozen_body
class NamedUser:
    """An account by its id or its username."""

    exactly_one_of: ClassVar[tuple[tuple[str, ...], ...]] = (("userId", "username"),)

    userId: AccountId | None = None
    username: Username | None = None
    """The name in the payment address."""


@frozen_body
class AnyNameOfUser:
    """An account by its id, its username or its payment address."""

    exactly_one_of: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("userId", "username", "paymentAddress"),
    )

    userId: AccountId | None = None
    username: Username | None = None
    """The name in the payment address."""
    paymentAddress: PaymentAddress | None = None
    """The payment address, `<username>@<partner id>`."""


@frozen_body
class UserAddress:
    """A wallet address that is linked to an account; its format shows the chain type."""

    address: Address


@frozen_body
class UserPaymentAddress:
    """`<username>@<resolver>`."""

    paymentAddress: PaymentAddress
    """The payment address, `<username>@<partner id>`."""


@frozen_body
class WantedUsername:
    """The username to check."""

    username: Username
    """The name in the payment address."""
