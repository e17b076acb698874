"""The body of settlements."""

from __future__ import annotations

from typing import Annotated

import attrs
from msgspec import Meta

from payments_core.errors import FieldError
from payments_core.legacy.settlements import request as core
from payments_core.legacy.settlements.request import TypedFields, TypedName
from payments_core.validation.fields import Address, Id, Signature, Uint256Text
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.names import name_faults

Uint256 = Annotated[int, Meta(ge=0)] | Uint256Text
"""Libraries write a uint256 as a number or, since many numbers are too large, as a digit string."""


@frozen_body
class SettlementPayload:
    """The message that was signed; `deadline` is in Unix seconds."""

    quoteId: Id
    nonce: Uint256
    """A number that the signer chooses; it can be used once."""
    deadline: Uint256
    """When the signature expires, in Unix seconds."""


@frozen_body
class SettlementDomain:
    """The domain of the typed data: `Money Accounts`, version 1, and the payer's vault."""

    name: TypedName
    """The domain's name."""
    version: TypedName
    """The domain's version."""
    chainId: Uint256
    verifyingContract: Address
    """The payer's vault."""


@frozen_body
class SettlementTypes:
    """The types of the typed data; libraries add `EIP712Domain` themselves."""

    Settlement: TypedFields
    """The fields of the message."""
    EIP712Domain: TypedFields | None = None
    """The type of the domain; signing libraries add it themselves."""


@frozen_body
class SettleQuote:
    """What the payer of a quote has signed (EIP-712, or ERC-1271), and the signature in hex."""

    payload: SettlementPayload
    """The message that was signed."""
    signature: Signature = attrs.field(repr=False)
    domain: SettlementDomain
    """The domain of the typed data."""
    types: SettlementTypes
    """The types of the typed data."""

    def faults(self) -> list[FieldError]:
        """A domain, types or numbers that no settlement of any quote can have."""
        return name_faults(core.find_form_faults(self.request))

    @property
    def request(self) -> core.SettlementRequest:
        """The request as the core expects it."""
        payload, domain = self.payload, self.domain
        return core.SettlementRequest(
            payload=core.SettlementPayload(
                quote_id=payload.quoteId,
                nonce=str(payload.nonce),
                deadline=str(payload.deadline),
            ),
            signature=self.signature,
            domain=core.SettlementDomain(
                name=domain.name,
                version=domain.version,
                chain_id=str(domain.chainId),
                verifying_contract=domain.verifyingContract,
            ),
            types=core.SettlementTypes(
                settlement=self.types.Settlement, domain=self.types.EIP712Domain
            ),
        )
