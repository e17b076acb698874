"""The addresses of a simulated chain's contracts, which can be distinguished from all others.

The last four bytes are a mark made from the others. On a real chain, the code shows
a contract; here it must also be known for contracts that are not deployed yet.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from payments_core.addresses import encode_checksum_address
from payments_core.chains.port import AddressSpec, TransferIntent, is_coin_report
from payments_core.chains.typed_data import ZERO_ADDRESS


@lru_cache(maxsize=10_000)
def contract_address(spec: AddressSpec) -> str:
    """The address for a purpose. All simulated EVM chains share it, as CREATE2 makes real ones."""
    seed = f"{spec.environment_id}/{spec.kind}/{spec.owner_id}".encode()
    body = hashlib.sha256(seed).digest()[:16]
    return encode_checksum_address(body + _checksum(body))


def find_payer(intent: TransferIntent) -> str:
    """See Chain."""
    if is_coin_report(intent):
        return ZERO_ADDRESS
    if intent.source.kind != "vault" or intent.escrow_of is not None:
        return intent.source.address
    return contract_address(AddressSpec(intent.environment_id, "escrow", intent.id))


def is_contract(address: str) -> bool:
    """Whether a service derived the address; of others, one in four billion would match."""
    raw = bytes.fromhex(address.removeprefix("0x"))
    return raw[16:] == _checksum(raw[:16])


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(b"simulated contract/" + body).digest()[:4]
