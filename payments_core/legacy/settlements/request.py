"""What `settle` is asked for, and what the payer must have signed for it. Pure.

Domain and types are made here from the quote and the payer's vault. Those that a client sends are
compared with them, so that it learns which one is wrong, and are not used.
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


def find_form_faults(request: SettlementRequest) -> list[FieldError]:
    """What is wrong whatever the quote is: in the domain's name and version, in the types, and
    numbers that are no uint256."""
    domain, payload, types = request.domain, request.payload, request.types
    constants = (
        ("name", domain.name, SETTLEMENT_NAME),
        ("version", domain.version, SETTLEMENT_VERSION),
    )
    structs = (
        (SETTLEMENT.name, types.settlement, SETTLEMENT.fields),
        ("EIP712Domain", types.domain, DOMAIN_TYPES),
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
    """The 32 bytes that the payer of a quote on that chain signs, for a request of no other faults.

    Raises ValidationFailed where the domain has another chain or vault.
    """
    domain, payload = request.domain, request.payload
    expected = (
        ("chainId", domain.chain_id, str(chain_id)),
        ("verifyingContract", _normalized(domain.verifying_contract), vault_address),
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
    """The address in its canonical form; as it is where it has none."""
    try:
        return normalize_address("evm", address)
    except AddressError:
        return address


def _listed(fields: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name} {type}" for name, type in fields)
