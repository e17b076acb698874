"""Wallets that are linked by a signature."""

from __future__ import annotations

from typing import Annotated, Literal

import attrs
from msgspec import Meta

from payments_core.addresses import AddressError, normalize_address
from payments_core.errors import FieldError
from payments_core.validation.fields import Address, Label, PublicKey, Signature
from payments_core_http.wire.classes import frozen_body

ChallengeId = Annotated[str, Meta(min_length=1, max_length=64)]


@frozen_body
class CreateChallenge:
    """The wallet that is to sign."""

    address: Address
    chainType: Literal["evm", "solana", "aptos"]

    def faults(self) -> list[FieldError]:
        """An address that is not valid for its chain type."""
        try:
            normalize_address(self.chainType, self.address)
        except AddressError as error:
            return [FieldError("address", str(error))]
        return []


@frozen_body
class AddWallet:
    """The wallet's signature of a challenge.

    EVM: 65 bytes in hex, by `personal_sign`, or for a contract wallet what its contract accepts
    (ERC-1271), in up to 4,096 bytes of hex. Solana: 64 bytes in base58 or base64, by
    `signMessage`. Aptos: 64 bytes in hex, by `signMessage` with the challenge's `message` and
    `nonce`, and the public key beside them.
    """

    challengeId: ChallengeId
    signature: Signature = attrs.field(repr=False)
    publicKey: PublicKey | None = None
    label: Label | None = None
