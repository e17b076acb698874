"""Messages of CCTP v2: a header of 148 bytes, and the body of a burn of 228 bytes. Pure.

Source: developers.circle.com/cctp, "Message format". A burn's message has no nonce yet, no executed
finality and no fee: the attestation service fills them in, and signs the whole.
"""

from __future__ import annotations

import attrs

from payments_core.addresses import encode_checksum_address

VERSION = 1
"""The version of the header and of the body in all deployments of CCTP v2."""

HEADER_BYTES = 148
BODY_BYTES = 228
MAX_MESSAGE_BYTES = 8_192
"""Our burns have no hook, so their messages have exactly the two lengths above."""


class MalformedMessage(ValueError):
    """Bytes that are no message of a burn by CCTP v2."""


@attrs.frozen(kw_only=True)
class BurnMessage:
    """An attested burn. Amounts are in the token's smallest unit, `nonce` is 32 bytes in hex.

    `sender` and `handler` are the TokenMessengers of both chains, `depositor` burned, and `caller`
    is who alone may mint; zero is anybody. `expires_at_block` is of the destination chain, 0 is
    never.
    """

    source_domain: int
    destination_domain: int
    nonce: str
    sender: str
    handler: str
    caller: bytes
    min_finality: int
    finality: int
    token: str
    recipient: str
    amount_atomic: int
    depositor: str
    max_fee_atomic: int
    fee_atomic: int
    expires_at_block: int


def parse_message(raw: bytes) -> BurnMessage:
    """The fields of a message. Raises MalformedMessage."""
    if len(raw) != HEADER_BYTES + BODY_BYTES:
        raise MalformedMessage("it is not of the length of a burn without a hook")

    def number(start: int, size: int) -> int:
        return int.from_bytes(raw[start : start + size], "big")

    def address(start: int) -> str:
        word = raw[start : start + 32]
        if any(word[:12]):
            raise MalformedMessage("it names an address that is of no EVM chain")
        return encode_checksum_address(word[12:])

    body = HEADER_BYTES
    if (number(0, 4), number(body, 4)) != (VERSION, VERSION):
        raise MalformedMessage("it is of another version")
    return BurnMessage(
        source_domain=number(4, 4),
        destination_domain=number(8, 4),
        nonce="0x" + raw[12:44].hex(),
        sender=address(44),
        handler=address(76),
        caller=raw[108:140],
        min_finality=number(140, 4),
        finality=number(144, 4),
        token=address(body + 4),
        recipient=address(body + 36),
        amount_atomic=number(body + 68, 32),
        depositor=address(body + 100),
        max_fee_atomic=number(body + 132, 32),
        fee_atomic=number(body + 164, 32),
        expires_at_block=number(body + 196, 32),
    )
