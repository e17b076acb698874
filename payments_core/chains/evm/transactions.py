"""Our transactions: EIP-1559 (type 2), built, signed and read again.

We make no others, so that one field of a transaction never means two things. There is never an
access list, and never a creation: our contracts are created by calls.
"""

from __future__ import annotations

from typing import Any

import attrs

from payments_core.addresses import AddressError, encode_checksum_address, normalize_address
from payments_core.chains.port import SignedTransaction
from payments_core.chains.rotated_signer import OperatorSigner
from payments_core.chains.signatures import SignatureError, recover_signer_from_bytes

_TYPE = b"\x02"
_FIELDS = 12

MAX_TRANSACTION_BYTES = 128 * 1024
"""The maximum length that geth accepts into its pool."""

_LIMITS = {
    "chain_id": (1, 2**63),
    "nonce": (0, 2**64 - 2),  # EIP-2681: no account has a higher one
    "value": (0, 2**256 - 1),
    "gas": (21_000, 2**63 - 1),  # every node refuses less gas than any transaction needs
    "max_fee": (0, 2**256 - 1),
    "max_priority_fee": (0, 2**256 - 1),
}


class InvalidTransaction(ValueError):
    """Bytes or fields that are not a transaction of ours."""


@attrs.frozen(kw_only=True)
class UnsignedTransaction:
    """The fields of a transaction, in wei and units of gas; `to` is canonical.

    Raises InvalidTransaction if a field is out of range, or the priority fee above the whole
    fee.
    """

    chain_id: int
    nonce: int
    to: str
    value: int
    data: bytes
    gas: int
    max_fee: int
    max_priority_fee: int

    def __attrs_post_init__(self) -> None:
        for name, (least, most) in _LIMITS.items():
            number = getattr(self, name)
            if type(number) is not int or not least <= number <= most:
                raise InvalidTransaction(f"{name} is out of range")
        if self.max_priority_fee > self.max_fee:
            raise InvalidTransaction("max_priority_fee is more than max_fee")
        if len(self.data) > MAX_TRANSACTION_BYTES:
            raise InvalidTransaction("data is too long")
        try:
            is_canonical = normalize_address("evm", self.to) == self.to
        except AddressError as error:
            raise InvalidTransaction(f"to {error}") from None
        if not is_canonical:
            raise InvalidTransaction("to must have its checksum (EIP-55)")


def signing_hash(unsigned: UnsignedTransaction) -> bytes:
    """The digest that the sender signs: of chain id, nonce and all other fields."""
    from eth_hash.auto import keccak

    return keccak(_TYPE + _encode(_to_fields(unsigned)))


def sign_transaction(
    signer: OperatorSigner, key_name: str, unsigned: UnsignedTransaction
) -> SignedTransaction:
    """The transaction, signed with a key of the signer. Raises as the signer does."""
    return attach_signature(unsigned, signer.sign(key_name, signing_hash(unsigned)))


def attach_signature(unsigned: UnsignedTransaction, signature: bytes) -> SignedTransaction:
    """The transaction with its signature of 65 bytes: r, s, and 0 or 1.

    Raises InvalidTransaction for signatures that no node accepts: a high s, or numbers not of the
    curve.
    """
    from eth_hash.auto import keccak

    _recover_sender(unsigned, signature)
    raw = _serialize(unsigned, signature)
    return SignedTransaction("0x" + keccak(raw).hex(), raw)


def decode_signed(raw: bytes, *, chain_id: int) -> tuple[UnsignedTransaction, str]:
    """The fields of a signed transaction for this chain, and its signer.

    Raises InvalidTransaction for every other type, chain and encoding, for a high s, an access list
    and a creation.
    """
    from rlp import decode
    from rlp.exceptions import RLPException

    if len(raw) > MAX_TRANSACTION_BYTES:
        raise InvalidTransaction("it is too long")
    if raw[:1] != _TYPE:
        raise InvalidTransaction("it is not of type 2 (EIP-1559)")
    try:
        items = decode(raw[1:])
    except (RLPException, RecursionError):  # lists in lists in lists
        raise InvalidTransaction("it is not RLP") from None
    unsigned, signature = _parse_fields(items)
    if unsigned.chain_id != chain_id:
        raise InvalidTransaction("it is for another chain")
    # Leading zeros of a number, or another form of its length, would make other bytes of the same
    # meaning: only one form is accepted.
    if _serialize(unsigned, signature) != raw:
        raise InvalidTransaction("its encoding is not canonical")
    return unsigned, _recover_sender(unsigned, signature)


def _parse_fields(items: Any) -> tuple[UnsignedTransaction, bytes]:
    if isinstance(items, bytes) or len(items) != _FIELDS:
        raise InvalidTransaction("it does not have twelve fields")
    if list(items[8:9]) != [[]]:
        raise InvalidTransaction("it has an access list")
    fields = [item for place, item in enumerate(items) if place != 8]
    if not all(isinstance(item, bytes) for item in fields):
        raise InvalidTransaction("it has a list for a number")
    *numbers, parity, r, s = fields
    chain_id, nonce, max_priority_fee, max_fee, gas, to, value, data = numbers
    if len(to) != 20:
        raise InvalidTransaction("it is not to an address")
    if parity not in (b"", b"\x01") or len(r) > 32 or len(s) > 32:
        raise InvalidTransaction("it has no signature")
    unsigned = UnsignedTransaction(
        chain_id=int.from_bytes(chain_id, "big"),
        nonce=int.from_bytes(nonce, "big"),
        to=encode_checksum_address(to),
        value=int.from_bytes(value, "big"),
        data=data,
        gas=int.from_bytes(gas, "big"),
        max_fee=int.from_bytes(max_fee, "big"),
        max_priority_fee=int.from_bytes(max_priority_fee, "big"),
    )
    return unsigned, r.rjust(32, b"\0") + s.rjust(32, b"\0") + bytes([len(parity)])


def _recover_sender(unsigned: UnsignedTransaction, signature: bytes) -> str:
    try:
        return recover_signer_from_bytes(signing_hash(unsigned), signature)
    except SignatureError as fault:
        raise InvalidTransaction(f"its signature {fault}") from None


def _serialize(unsigned: UnsignedTransaction, signature: bytes) -> bytes:
    r, s = (int.from_bytes(signature[start : start + 32], "big") for start in (0, 32))
    return _TYPE + _encode([*_to_fields(unsigned), signature[64], r, s])


def _to_fields(unsigned: UnsignedTransaction) -> list[Any]:
    """The fields in the order of EIP-1559."""
    return [
        unsigned.chain_id,
        unsigned.nonce,
        unsigned.max_priority_fee,
        unsigned.max_fee,
        unsigned.gas,
        bytes.fromhex(unsigned.to[2:]),
        unsigned.value,
        unsigned.data,
        [],  # the access list
    ]


def _encode(items: list[Any]) -> bytes:
    from rlp import encode

    return bytes(encode(items))
