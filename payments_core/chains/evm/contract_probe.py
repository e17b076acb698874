"""A query to a contract, built so that its revert is not an error.

Nodes report a revert and their own failures by differing texts, and we read none. So the query
consists of a few instructions that run in `eth_call` like those that create a contract: they
call the account, and return the result. Whatever the account does, the node has a result. Nothing
of it is stored: so an account can be deployed first, in the query alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.chains.evm.responses import BadResponse

_GAS = 10_000_000
"""More than enough for a wallet that checks a passkey's curve itself; nodes allow at least this."""

_DEPLOYMENT_GAS = 6_000_000
"""The part of it for a deployment. The rest is enough for the result if the deployment burns this
and the account burns what it gets."""

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


@attrs.frozen
class Deployment:
    """The call that deploys an account: to which contract, and with which calldata."""

    factory: str
    data: bytes = attrs.field(repr=False)


def build_eth_call(
    address: str, data: bytes, deployment: Deployment | None = None
) -> Mapping[str, str]:
    """The `eth_call` that asks the account at an address with this calldata.

    With a deployment, its call is made first unless the address has code already.
    """
    account = bytes.fromhex(address[2:])
    if deployment is None:
        code, behind = _assemble_probe(account), b""
    else:
        before = _assemble_deployment(account, deployment)
        code, behind = before + _assemble_probe(account, before, deployment.data), deployment.data
    return {"data": "0x" + (code + behind + data).hex(), "gas": hex(_GAS)}


def parse_result(returned: bytes) -> ProbeResult:
    """The result of the instructions. Raises BadResponse."""
    if len(returned) != 128:
        raise BadResponse("instructions for four words that returned something else")
    succeeded, word, size, code = (
        int.from_bytes(returned[start : start + 32], "big") for start in range(0, 128, 32)
    )
    return ProbeResult(succeeded == 1, word, size, code != 0)


def _assemble_probe(address: bytes, before: bytes = b"", between: bytes = b"") -> bytes:
    """Call `address` with the bytes after these instructions, and return the result.

    The instructions `before` run first, and the bytes `between` come before those of the call. Four
    words: whether the call succeeded, the first word that it returned, how many bytes it
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
    start = len(before) + 11 + len(behind) + len(between)
    # CODECOPY(0, start, CODESIZE - start), and their number stays on the stack.
    return _push2(start) + bytes((0x80, 0x38, 0x03, 0x80, 0x91, 0x60, 0x00, 0x39)) + behind


def _assemble_deployment(address: bytes, deployment: Deployment) -> bytes:
    """Unless `address` has code, call the factory with the bytes after all instructions.

    What the call returns is ignored: whether the address has code then is what counts.
    """
    length = _push2(len(deployment.data))
    instructions_end = _DEPLOYMENT_BYTES + len(_assemble_probe(address))
    call = (
        length + _push2(instructions_end) + b"\x60\x00\x39"  # CODECOPY(0, end, length)
        b"\x60\x00\x60\x00" + length + b"\x60\x00\x60\x00"
        b"\x73" + bytes.fromhex(deployment.factory[2:])
        + b"\x62" + _DEPLOYMENT_GAS.to_bytes(3, "big")
        + b"\xf1\x50"  # POP(CALL(gas, factory, 0, 0, length, 0, 0))
    )  # fmt: skip
    # JUMPI(behind the call, EXTCODESIZE(address)); JUMPDEST
    behind = 22 + 3 + len(call)
    return b"\x73" + address + b"\x3b\x60" + bytes([behind]) + b"\x57" + call + b"\x5b"


_DEPLOYMENT_BYTES = 73
"""The length of the instructions that deploy."""


def _push2(number: int) -> bytes:
    return b"\x61" + number.to_bytes(2, "big")
