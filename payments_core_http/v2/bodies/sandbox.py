"""The sandbox."""

from __future__ import annotations

from typing import Annotated

import attrs
from msgspec import Meta

from payments_core.sandbox.operations import LONGEST_ADVANCE_S, MOST_BLOCKS
from payments_core_http.v2.bodies.types import Amount, AssetSymbol, ChainId


@attrs.frozen(kw_only=True)
class Fund:
    """A credit of the faucet."""

    chainId: ChainId
    assetSymbol: AssetSymbol
    amount: Amount


@attrs.frozen(kw_only=True)
class Mine:
    """Blocks to add to a chain."""

    chainId: ChainId
    count: Annotated[int, Meta(ge=1, le=MOST_BLOCKS)] = 1


@attrs.frozen(kw_only=True)
class Advance:
    """How far to move the clock."""

    advanceSeconds: Annotated[int, Meta(ge=1, le=LONGEST_ADVANCE_S)]
