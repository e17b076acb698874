"""The request of `settle`, and the text that the payer must have signed. Pure.

Domain and types are made here from the quote and the payer's vault. Those of a client are
compared with them, so that the client learns which one is wrong, but are not used.
"""

from __future__ import annotations

from typing import Annotated

import attrs
from msgspec import Meta

from payments_core.addresses import AddressError, normalize_address
from payments_core.chains.typed_data import SETTLEMENT, settlement_digest
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
    """The domain given to the payer's wallet."""

    name: TypedName
    version: TypedName
    chain_id: Uint256Text
    verifying_contract: Address


@attrs.frozen(kw_only=True)
class TypedField:
    """A field of a type of EIP-712."""

    name: TypedName
    """The field's name."""
    type: TypedName
    """The field's type in Solidity."""


TypedFields = Annotated[tuple[TypedField, ...], Meta(max_length=MAX_TYPED_FIELDS)]


@attrs.frozen(kw_only=True)
class SettlementTypes:
    """The types given to the payer's wallet; libraries add `EIP712Domain` themselves."""

    settlement: TypedFields
    domain: TypedFields | None = None


@attrs.frozen(kw_only=True)
class SettlementRequest:
    """The payer's signed data (EIP-712, or ERC-1271), and the signature in hex."""

    payload: SettlementPayload
    signature: Signature = attrs.field(repr=False)
    domain: SettlementDomain
    types: SettlementTypes


def require_before_deadline(payload: SettlementPayload, *, now: Instant) -> None:
    """Raise ActionExpired from the deadline on."""
    deadline = int(payload.deadline) * SECOND
    if now >= deadline:
        raise ActionExpired(deadline, "signed settlement")


def find_form_faults(request: SettlementRequest) -> list[FieldError]:
    """The errors that do not depend on the quote: in the domain's name and version, the types, and
    numbers that are not uint256."""
    domain, payload, types = request.domain, request.payload, request.types
    constants = (
        ("name", domain.name, SETTLEMENT_NAME),
        ("version", domain.version, SETTLEMENT_VERSION),
    )
    structs = (
        ("settlement", types.settlement, SETTLEMENT.fields),
        ("domain", types.domain, DOMAIN_TYPES),
    )
    numbers = (("nonce", payload.nonce), ("deadline", payload.deadline))
    return [
        *(
            FieldError(f"payload.{name}", "must be an integer of up to 256 bits")
            for name, text in numbers
            if int(text) >= 1 << 256
        ),
        *(
            FieldError(f"domain.{name}", f"must be {constant}")
            for name, given, constant in constants
            if given != constant
        ),
        *(
            FieldError(f"types.{name}", f"must be {_listed(fields)}")
            for name, given, fields in structs
            if given is not None and tuple((one.name, one.type) for one in given) != fields
        ),
    ]


def build_digest(request: SettlementRequest, chain_id: int, vault_address: str) -> bytes:
    """The 32 bytes that the payer of a quote on that chain signs, for a request without other
    errors.

    Raises ValidationFailed if the domain has another chain or vault.
    """
    domain, payload = request.domain, request.payload
    expected = (
        ("chain_id", domain.chain_id, str(chain_id)),
        ("verifying_contract", _normalized(domain.verifying_contract), vault_address),
    )
    faults = tuple(
        FieldError(f"domain.{name}", f"must be {value}")
        for name, given, value in expected
        if given != value
    )
    if faults:
        raise ValidationFailed(faults)
    return settlement_digest(
        name=SETTLEMENT_NAME,
        version=SETTLEMENT_VERSION,
        chain_id=chain_id,
        verifying_contract=vault_address,
        quote_id=payload.quote_id,
        nonce=int(payload.nonce),
        deadline=int(payload.deadline),
    )


def _normalized(address: str) -> str:
    """The address in its canonical form; unchanged if it is not valid."""
    try:
        return normalize_address("evm", address)
    except AddressError:
        return address


def _listed(fields: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name} {type}" for name, type in fields)
