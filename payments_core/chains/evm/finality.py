"""When a block of an EVM chain is final: one policy per chain, which a deployment may replace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from payments_core.chains.port import ChainMismatch

Tag = Literal["finalized", "safe"]


@attrs.frozen
class Finality:
    """The condition for a final block: the chain's own tag (`tag`), blocks on top (`depth`), or
    both.

    With both, the lower of the two blocks is the newest final one. Only a depth is for chains
    whose nodes know no tags. A Payment may require more blocks on top, by its payment settings,
    and so by its amount; never fewer.
    """

    tag: Tag | None = "finalized"
    depth: int = attrs.field(default=0, validator=attrs.validators.ge(0))

    def __attrs_post_init__(self) -> None:
        if self.tag is None and self.depth == 0:
            raise ValueError("the finality of a chain needs a tag or a depth")

    def final_height(self, latest: int, tagged: int | None) -> int:
        """The newest final height below the newest block, given that of the tagged block."""
        deep = max(0, latest - self.depth)
        return deep if tagged is None else min(deep, tagged)


# The meaning of "finalized" differs, and so does its delay; on each of these chains it is the
# tag after which its own documentation expects no reorganisation. An operator who settles
# small sums sooner on a rollup uses "safe" there: the data is then on Ethereum, in a block that
# Ethereum might still replace.
FINALITY: Mapping[int, Finality] = {
    # Two epochs, about 13 minutes: a block that could only be replaced by burning a third of all
    # stake. https://ethereum.org/en/developers/docs/apis/json-rpc/ (default block parameter)
    1: Finality("finalized"),
    # The block's data is in a final block of Ethereum, about 20 minutes.
    # https://docs.base.org/base-chain/network-information/transaction-finality
    8453: Finality("finalized"),
    # A milestone that the validators voted for; before PIP-11 finality was a checkpoint on
    # Ethereum, some 512 blocks later.
    # https://github.com/maticnetwork/Polygon-Improvement-Proposals/blob/main/PIPs/PIP-11.md
    137: Finality("finalized"),
    # The sequencer's batch is in a final block of Ethereum.
    # https://docs.arbitrum.io/how-arbitrum-works/reference/finality-and-reorgs
    42161: Finality("finalized"),
    # The block's data is in a final block of Ethereum, typically 20 to 30 minutes.
    # https://docs.optimism.io/stack/transactions/transaction-finality
    10: Finality("finalized"),
}


def finality_of(chain_id: int, overrides: Mapping[int, Finality] | None = None) -> Finality:
    """The policy of a chain, the deployment's before the table's. Raises ChainMismatch."""
    policy = (overrides or {}).get(chain_id) or FINALITY.get(chain_id)
    if policy is None:
        raise ChainMismatch(f"the finality rule of chain {chain_id} is not configured")
    return policy
