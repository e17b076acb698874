"""What `settle` is asked for, and what the payer must have signed for it. Pure.

Domain and types are made here from the quote and the payer's vault. Those that a client sends are
compared with them, so that it learns which one is wrong, and are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import attrs
from msgspec import Meta

from payments_core.addresses import AddressError, normalize_address
from payments_core.chains.typed_data import (
    SETTLEMENT,
    InvalidTypedData,
    settlement_digest,
)
from payments_core.clock import SECOND, Instant
from payments_core.errors import ActionExpired, FieldError, ValidationFailed
from payments_core.validation.fields import Address, Id, Signature, Uint256Text

SETTLEMENT_NAME = "Money Accounts"
SETTLEMENT_VERSION = "1"

DOMAIN_TYPES = (
    ("name", "string"),
    ("version", "string"),
    ("chainId", "uint256"),
    ("verifyingContract", "address"),
)
MAX_TYPED_FIELDS = 20

TypedName = Annotated[str, Meta(max_length=64)]


@attrs.frozen(kw_only=True)
class SettlementPayload:
    """The message: `deadline` is in Unix seconds, `nonce` any that the payer has not used."""

    quote_id: Id
    nonce: Uint256Text
    deadline: Uint256Text


@attrs.frozen(kw_only=True)
class SettlementDomain:
    """The domain that the payer's wallet was given."""

    name: TypedName
    version: TypedName
    chain_id: Uint256Text
    verifying_contract: Address


@attrs.frozen(kw_only=True)
class TypedField:
    """A field of a type of EIP-712."""

    name: TypedName
    type: TypedName


TypedFields = Annotated[tuple[TypedField, ...], Meta(max_length=MAX_TYPED_FIELDS)]


@attrs.frozen(kw_only=True)
class SettlementTypes:
    """The types that the payer's wallet was given; libraries add `EIP712Domain` themselves."""

    settlement: TypedFields
    domain: TypedFields | None = None


@attrs.frozen(kw_only=True)
class SettlementRequest:
    """What a payer has signed (EIP-712, or ERC-1271), and the signature in hex."""

    payload: SettlementPayload
    signature: Signature = attrs.field(repr=False)
    domain: SettlementDomain
    types: SettlementTypes


def require_before_deadline(payload: SettlementPayload, *, now: Instant) -> None:
    """Raise ActionExpired from the deadline on."""
    deadline = int(payload.deadline) * SECOND
    if now >= deadline:
        raise ActionExpired(deadline, "signed settlement")


def build_digest(request: SettlementRequest, chain_id: int, vault_address: str) -> bytes:
    """The 32 bytes that the payer of a quote on that chain signs. Raises ValidationFailed with all
    that is wrong in the payload, the domain and the types."""
    expected: Mapping[str, Any] = {
        "name": SETTLEMENT_NAME,
        "version": SETTLEMENT_VERSION,
        "chainId": str(chain_id),
        "verifyingContract": vault_address,
    }
    domain = request.domain
    given: Mapping[str, Any] = {
        "name": domain.name,
        "version": domain.version,
        "chainId": domain.chain_id,
        "verifyingContract": _normalized(domain.verifying_contract),
    }
    faults = [
        FieldError(f"domain.{name}", f"must be {expected[name]}")
        for name in expected
        if given[name] != expected[name]
    ]
    faults += [
        FieldError(f"types.{name}", f"must be {_listed(fields)}")
        for name, present, fields in (
            (SETTLEMENT.name, request.types.settlement, SETTLEMENT.fields),
            ("EIP712Domain", request.types.domain, DOMAIN_TYPES),
        )
        if present is not None and tuple((one.name, one.type) for one in present) != fields
    ]
    payload = request.payload
    try:
        digest = settlement_digest(
            name=SETTLEMENT_NAME,
            version=SETTLEMENT_VERSION,
            chain_id=chain_id,
            verifying_contract=vault_address,
            quote_id=payload.quote_id,
            nonce=int(payload.nonce),
            deadline=int(payload.deadline),
        )
    except InvalidTypedData as error:
        name, _, sentence = str(error).partition(" ")
        faults.append(FieldError(f"payload.{name}", sentence))
    if faults:
        raise ValidationFailed(tuple(faults))
    return digest


def _normalized(address: str) -> str:
    """The address in its canonical form; as it is where it has none."""
    try:
        return normalize_address("evm", address)
    except AddressError:
        return address


def _listed(fields: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name} {type}" for name, type in fields)
