"""The chains that a deployment serves."""

from __future__ import annotations

from payments_core.chains.port import Chain, ChainUnavailable


class ServedChains(dict[int, Chain]):
    """Chains by their number. A chain that is not among them is unavailable, which is not an error:

    work begun while it was configured waits until it is configured again.
    """

    def __missing__(self, chain_id: int) -> Chain:
        raise ChainUnavailable(f"chain {chain_id} is not served")
