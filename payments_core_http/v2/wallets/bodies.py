"""Wallets that are linked by a signature."""

from __future__ import annotations

from typing import Annotated, Literal

import attrs
from msgspec import Meta

from payments_core.accounts.challenges import find_chain_faults
from payments_core.addresses import AddressError, normalize_address
from payments_core.errors import FieldError
from payments_core.validation.fields import Address, ChainId, Label, PublicKey, Signature
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.names import name_faults

ChallengeId = Annotated[str, Meta(min_length=1, max_length=64)]


@frozen_body
class CreateChallenge:
    """The wallet that is to sign.

    For a contract wallet, `chainId` names the EVM chain on which its contract is to accept the
    signature. Without it, every EVM chain that the service serves is asked.
    """

    address: Address
    chainType: Literal["evm", "solana", "aptos"]
    chainId: ChainId | None = None

    def faults(self) -> list[FieldError]:
        """An address that is not valid for its chain type, and a chain for another type."""
        faults = name_faults(find_chain_faults(self.chainType, self.chainId))
        try:
            normalize_address(self.chainType, self.address)
        except AddressError as error:
            faults.append(FieldError("address", str(error)))
        return faults


@frozen_body
class AddWallet:
    """The wallet's signature of a challenge.

    EVM: 65 bytes in hex, by `personal_sign`, or for a contract wallet what its contract accepts
    (ERC-1271), in up to 4,096 bytes of hex; for one that is not deployed yet, wrapped with the call
    that deploys it (ERC-6492). Solana: 64 bytes in base58 or base64, by
    `signMessage`. Aptos: 64 bytes in hex, by `signMessage` with the challenge's `message` and
    `nonce`, and the public key beside them.
    """

    challengeId: ChallengeId
    signature: Signature = attrs.field(repr=False)
    publicKey: PublicKey | None = None
    label: Label | None = None
