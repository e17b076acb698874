"""ERC-1271: whether a contract accepts a signature."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.chains.evm import contract_probe as questions

MAGIC = 0x1626BA7E << 224
"""What `isValidSignature(bytes32,bytes)` returns for yes: its own selector, in front."""

_SELECTOR = bytes.fromhex("1626ba7e")


def build_eth_call(address: str, digest: bytes, signature: bytes) -> Mapping[str, str] | None:
    """The `eth_call`; None if no contract need be asked."""
    if len(signature) > questions.MAX_CALLDATA_BYTES:
        return None
    padded = signature + bytes(-len(signature) % 32)
    words = (digest, (64).to_bytes(32, "big"), len(signature).to_bytes(32, "big"))
    return questions.build_eth_call(address, _SELECTOR + b"".join(words) + padded)


def accepts(returned: bytes) -> bool | None:
    """Whether the result means yes; None if no contract is there.

    Raises BadResponse.
    """
    answer = questions.parse_result(returned)
    if not answer.has_code:
        return None
    return answer.succeeded and answer.size >= 32 and answer.word == MAGIC
