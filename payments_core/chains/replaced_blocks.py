"""Whether a reorg has replaced a block, which alone proves that its transactions are gone."""

from __future__ import annotations

from payments_core.chains.port import Chain


def is_replaced(chain: Chain, number: int, hash: str) -> bool:
    """Whether another block has the height of this one. Raises ChainUnavailable.

    A node without a block there proves nothing: it lags, or has lost an index.
    """
    block = chain.block(number)
    return block is not None and block.hash != hash
