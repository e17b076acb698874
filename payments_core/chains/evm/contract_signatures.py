"""ERC-1271: whether a contract accepts a signature, asked so that its revert is no error.

Nodes tell a revert and their own troubles by texts that differ, and we read none. So the question
is put by a few instructions that run in `eth_call` as those that would create a contract: they
call the account, and return what came of it. Whatever the account does, the node has a result.
"""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.chains.evm.answers import BadAnswer

MAGIC = 0x1626BA7E << 224
"""What `isValidSignature(bytes32,bytes)` returns for yes: its own selector, in front."""

_SELECTOR = bytes.fromhex("1626ba7e")
_GAS = 10_000_000
"""More than a wallet needs that checks a passkey's curve by itself; nodes allow at least this."""

MOST_BYTES = 16_384
"""Longer signatures are no: instructions for a creation have at most 49,152 bytes (EIP-3860)."""


def question(address: str, digest: bytes, signature: bytes) -> Mapping[str, str] | None:
    """What to `eth_call`; None for what no contract need be asked."""
    if len(signature) > MOST_BYTES:
        return None
    padded = signature + bytes(-len(signature) % 32)
    words = (digest, (64).to_bytes(32, "big"), len(signature).to_bytes(32, "big"))
    asked = _SELECTOR + b"".join(words) + padded
    code = _instructions(bytes.fromhex(address[2:]))
    return {"data": "0x" + (code + asked).hex(), "gas": hex(_GAS)}


def accepts(returned: bytes) -> bool | None:
    """Whether what the instructions returned means yes; None: no contract is there.

    Raises BadAnswer.
    """
    if len(returned) != 128:
        raise BadAnswer("instructions for four words that returned something else")
    succeeded, word, size, code = (
        int.from_bytes(returned[start : start + 32], "big") for start in range(0, 128, 32)
    )
    if not code:
        return None
    return succeeded == 1 and size >= 32 and word == MAGIC


def _instructions(address: bytes) -> bytes:
    """Call `address` with the bytes behind these instructions, and return what came of it.

    Four words: whether the call succeeded, the first word that it returned, how many bytes it
    returned, and how many bytes of code the address has. The first byte is zero, as of no code
    that may not be created (EIP-3541).
    """
    push = b"\x73" + address
    behind = (
        b"\x60\x20\x60\x20\x82\x60\x00" + push + b"\x5a\xfa"
        # STATICCALL(GAS, address, 0, as many as copied, 32, 32)
        b"\x60\x00\x52"  # MSTORE(0, whether it succeeded)
        b"\x3d\x60\x40\x52"  # MSTORE(64, RETURNDATASIZE)
        + push + b"\x3b\x60\x60\x52"  # MSTORE(96, EXTCODESIZE(address))
        b"\x60\x80\x60\x00\xf3"  # RETURN(0, 128)
    )  # fmt: skip
    length = 10 + len(behind)
    # CODECOPY(0, length, CODESIZE - length), and how many that are stays on the stack.
    return bytes((0x60, length, 0x80, 0x38, 0x03, 0x80, 0x91, 0x60, 0x00, 0x39)) + behind
