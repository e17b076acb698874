"""The bytes of a simulated transaction."""

from __future__ import annotations

import hashlib

import attrs
import msgspec

from payments_core.chains.port import Contract, ModuleIntent, SignedTransaction, TransferIntent

NO_TOKEN = "0x0000000000000000000000000000000000000000"


@attrs.frozen
class SimulatedCall:
    """The decoded bytes of a simulated transaction."""

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
"""Made once: concurrent creation in threads ends the process (`documents.py`)."""


def decode_call(raw: bytes) -> SimulatedCall:
    """The decoded bytes; those of an earlier release have no payer."""
    return _DECODER.decode(raw)


def new_call(
    chain_id: int, intent: TransferIntent, sender: str, slot: int, payer: str
) -> SimulatedCall:
    """The content of an intent's transaction; it names a payer that is not the
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


def new_nothing(environment_id: str, sender: str, slot: int) -> TransferIntent:
    """The intent of a transaction that does nothing, for a slot."""
    itself = Contract("operator", "operator", sender)
    return TransferIntent(f"nothing/{slot}", environment_id, NO_TOKEN, itself, sender, 0)


def sign_call(call: SimulatedCall) -> SignedTransaction:
    """The bytes of a transaction, and their hash."""
    raw = msgspec.json.encode(call)
    return SignedTransaction("0x" + hashlib.sha256(raw).hexdigest(), raw)
