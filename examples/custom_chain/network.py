"""The network of the example: what the service knows of the chain."""

from __future__ import annotations

from payments_core import Acceptance, Asset, Network

from .node import CHAIN_ID

NETWORK = Network(
    chain_id=CHAIN_ID,
    name="Ledger",
    tokens=(Asset(CHAIN_ID, "USDC", "0x2222222222222222222222222222222222222222", 6),),
    acceptance=(Acceptance(depth=1, up_to="50.00"), Acceptance(depth=3)),
    block_ms=1_000,
    rpc_url="https://node.example",
    explorer_url="https://explorer.example",
    is_testnet=True,
)
