"""Transactions of ours: EIP-1559 (type 2), built, signed and read again.

We make no others, so that one field of a transaction never means two things. There is never an
access list, and never a creation: contracts of ours are created by calls.
"""

from __future__ import annotations

from typing import Any

import attrs

from payments_core.addresses import AddressError, canonical, checksummed
from payments_core.chains.port import Signed
from payments_core.chains.signatures import SignatureFault, recovered

_TYPE = b"\x02"
_FIELDS = 12

LONGEST_BYTES = 128 * 1024
"""Geth takes none that is longer into its pool."""

_LIMITS = {
    "chain_id": (1, 2**63),
    "nonce": (0, 2**64 - 2),  # EIP-2681: no account has a higher one
    "value": (0, 2**256 - 1),
    "gas": (21_000, 2**63 - 1),  # less than any transaction needs is refused by every node
    "max_fee": (0, 2**256 - 1),
    "max_priority_fee": (0, 2**256 - 1),
}


class TransactionFault(ValueError):
    """Why something is no transaction of ours."""


@attrs.frozen(kw_only=True)
class Unsigned:
    """What a transaction says, in wei and units of gas; `to` is canonical.

    Raises TransactionFault where a field is out of range, or the priority fee above the whole fee.
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
                raise TransactionFault(f"{name} is out of range")
        if self.max_priority_fee > self.max_fee:
            raise TransactionFault("max_priority_fee is more than max_fee")
        if len(self.data) > LONGEST_BYTES:
            raise TransactionFault("data is too long")
        try:
            is_canonical = canonical("evm", self.to) == self.to
        except AddressError as error:
            raise TransactionFault(f"to {error}") from None
        if not is_canonical:
            raise TransactionFault("to must have its checksum (EIP-55)")


def signing_hash(unsigned: Unsigned) -> bytes:
    """The digest that the sender signs: of chain id, nonce and all else."""
    from eth_utils.crypto import keccak

    return keccak(_TYPE + _encoded(_said(unsigned)))


def signed(unsigned: Unsigned, signature: bytes) -> Signed:
    """The transaction with its signature of 65 bytes: r, s, and 0 or 1.

    Raises TransactionFault for what no node would take: a high s, or numbers not of the curve.
    """
    from eth_utils.crypto import keccak

    _sender(unsigned, signature)
    raw = _raw(unsigned, signature)
    return Signed("0x" + keccak(raw).hex(), raw)


def decoded(raw: bytes, *, chain_id: int) -> tuple[Unsigned, str]:
    """What a signed transaction for this chain says, and who signed it.

    Raises TransactionFault for every other type, chain and encoding, for a high s, an access list
    and a creation.
    """
    from rlp import decode
    from rlp.exceptions import RLPException

    if len(raw) > LONGEST_BYTES:
        raise TransactionFault("it is too long")
    if raw[:1] != _TYPE:
        raise TransactionFault("it is not of type 2 (EIP-1559)")
    try:
        items = decode(raw[1:])
    except (RLPException, RecursionError):  # lists in lists in lists
        raise TransactionFault("it is no RLP") from None
    unsigned, signature = _read(items)
    if unsigned.chain_id != chain_id:
        raise TransactionFault("it is for another chain")
    # What a number has in front, and how its length was told, would make other bytes of the same
    # meaning: there is one way to write it.
    if _raw(unsigned, signature) != raw:
        raise TransactionFault("it is not written canonically")
    return unsigned, _sender(unsigned, signature)


def _read(items: Any) -> tuple[Unsigned, bytes]:
    if isinstance(items, bytes) or len(items) != _FIELDS:
        raise TransactionFault("it does not have twelve fields")
    if list(items[8:9]) != [[]]:
        raise TransactionFault("it has an access list")
    fields = [item for place, item in enumerate(items) if place != 8]
    if not all(isinstance(item, bytes) for item in fields):
        raise TransactionFault("it has a list for a number")
    *numbers, parity, r, s = fields
    chain_id, nonce, max_priority_fee, max_fee, gas, to, value, data = numbers
    if len(to) != 20:
        raise TransactionFault("it is not to an address")
    if parity not in (b"", b"\x01") or len(r) > 32 or len(s) > 32:
        raise TransactionFault("it has no signature")
    unsigned = Unsigned(
        chain_id=int.from_bytes(chain_id, "big"),
        nonce=int.from_bytes(nonce, "big"),
        to=checksummed(to),
        value=int.from_bytes(value, "big"),
        data=data,
        gas=int.from_bytes(gas, "big"),
        max_fee=int.from_bytes(max_fee, "big"),
        max_priority_fee=int.from_bytes(max_priority_fee, "big"),
    )
    return unsigned, r.rjust(32, b"\0") + s.rjust(32, b"\0") + bytes([len(parity)])


def _sender(unsigned: Unsigned, signature: bytes) -> str:
    try:
        return recovered(signing_hash(unsigned), signature)
    except SignatureFault as fault:
        raise TransactionFault(f"its signature {fault}") from None


def _raw(unsigned: Unsigned, signature: bytes) -> bytes:
    r, s = (int.from_bytes(signature[start : start + 32], "big") for start in (0, 32))
    return _TYPE + _encoded([*_said(unsigned), signature[64], r, s])


def _said(unsigned: Unsigned) -> list[Any]:
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


def _encoded(items: list[Any]) -> bytes:
    from rlp import encode

    return bytes(encode(items))
