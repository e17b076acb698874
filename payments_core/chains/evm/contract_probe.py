"""A question to a contract, put so that its revert is no error.

Nodes tell a revert and their own troubles by texts that differ, and we read none. So the question
is put by a few instructions that run in `eth_call` as those that would create a contract: they
call the account, and return what came of it. Whatever the account does, the node has a result.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.chains.evm.responses import BadResponse

_GAS = 10_000_000
"""More than a wallet needs that checks a passkey's curve by itself; nodes allow at least this."""

MAX_CALLDATA_BYTES = 16_384
"""Longer signatures are no: instructions for a creation have at most 49,152 bytes (EIP-3860)."""


@attrs.frozen
class ProbeResult:
    """What came of the call; `word` is the first of the `size` bytes that it returned."""

    succeeded: bool
    word: int
    size: int
    has_code: bool

    @property
    def number(self) -> int | None:
        """The one word that a function returned; None where it did anything else."""
        return self.word if self.succeeded and self.has_code and self.size == 32 else None


def build_eth_call(address: str, data: bytes) -> Mapping[str, str]:
    """What to `eth_call` for what the account at an address answers to this calldata."""
    return {
        "data": "0x" + (_assemble_probe(bytes.fromhex(address[2:])) + data).hex(),
        "gas": hex(_GAS),
    }


def parse_result(returned: bytes) -> ProbeResult:
    """What the instructions returned. Raises BadResponse."""
    if len(returned) != 128:
        raise BadResponse("instructions for four words that returned something else")
    succeeded, word, size, code = (
        int.from_bytes(returned[start : start + 32], "big") for start in range(0, 128, 32)
    )
    return ProbeResult(succeeded == 1, word, size, code != 0)


def _assemble_probe(address: bytes) -> bytes:
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
