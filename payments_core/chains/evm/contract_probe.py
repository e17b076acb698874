"""A query to a contract, built so that its revert is not an error.

Nodes report a revert and their own failures by differing texts, and we read none. So the query
consists of a few instructions that run in `eth_call` like those that create a contract: they
call the account, and return the result. Whatever the account does, the node has a result.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.chains.evm.responses import BadResponse

_GAS = 10_000_000
"""More than enough for a wallet that checks a passkey's curve itself; nodes allow at least this."""

MAX_CALLDATA_BYTES = 16_384
"""Longer signatures are refused: code for a creation has at most 49,152 bytes (EIP-3860)."""


@attrs.frozen
class ProbeResult:
    """The result of the call; `word` is the first of the `size` bytes that it returned."""

    succeeded: bool
    word: int
    size: int
    has_code: bool

    @property
    def number(self) -> int | None:
        """The one word that a function returned; None if it did anything else."""
        return self.word if self.succeeded and self.has_code and self.size == 32 else None


def build_eth_call(address: str, data: bytes) -> Mapping[str, str]:
    """The `eth_call` that asks the account at an address with this calldata."""
    return {
        "data": "0x" + (_assemble_probe(bytes.fromhex(address[2:])) + data).hex(),
        "gas": hex(_GAS),
    }


def parse_result(returned: bytes) -> ProbeResult:
    """The result of the instructions. Raises BadResponse."""
    if len(returned) != 128:
        raise BadResponse("instructions for four words that returned something else")
    succeeded, word, size, code = (
        int.from_bytes(returned[start : start + 32], "big") for start in range(0, 128, 32)
    )
    return ProbeResult(succeeded == 1, word, size, code != 0)


def _assemble_probe(address: bytes) -> bytes:
    """Call `address` with the bytes after these instructions, and return the result.

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
    # CODECOPY(0, length, CODESIZE - length), and their number stays on the stack.
    return bytes((0x60, length, 0x80, 0x38, 0x03, 0x80, 0x91, 0x60, 0x00, 0x39)) + behind
