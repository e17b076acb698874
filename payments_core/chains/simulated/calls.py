"""The bytes of a simulated transaction."""

from __future__ import annotations

import attrs
import msgspec


@attrs.frozen
class SimulatedCall:
    """What the bytes of a simulated transaction say."""

    chain_id: int
    intent_id: str
    sender: str
    slot: int
    token_address: str
    source: str
    recipient: str
    amount: str
    payer: str | None = None


_DECODER = msgspec.json.Decoder(SimulatedCall)
"""Made once: threads that make one at the same time end the process (`documents.py`)."""


def decode_call(raw: bytes) -> SimulatedCall:
    """What the bytes say; those of an earlier release have no payer."""
    return _DECODER.decode(raw)
