"""The bytes of a simulated transaction."""

from __future__ import annotations

import attrs
import msgspec

from payments_core.chains.port import ModuleIntent, TransferIntent


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
    module: ModuleIntent | None = None


_DECODER = msgspec.json.Decoder(SimulatedCall)
"""Made once: threads that make one at the same time end the process (`documents.py`)."""


def decode_call(raw: bytes) -> SimulatedCall:
    """What the bytes say; those of an earlier release have no payer."""
    return _DECODER.decode(raw)


def new_call(
    chain_id: int, intent: TransferIntent, sender: str, slot: int, payer: str
) -> SimulatedCall:
    """What the bytes of an intent's transaction are to say; they name a payer that is not the
    source."""
    return SimulatedCall(
        chain_id,
        intent.id,
        sender,
        slot,
        intent.token_address,
        intent.source.address,
        intent.recipient,
        str(intent.amount_atomic),
        None if payer == intent.source.address else payer,
        intent.module,
    )
