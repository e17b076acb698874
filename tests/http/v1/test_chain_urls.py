"""The URLs of `supported-chains`, which wallets are given."""

from __future__ import annotations

import pytest

from payments_core.chains.port import NetworkKind
from payments_core_http.v1.chains.views import NOWHERE, supported_chain
from tests.shipped import CHAINS


@pytest.mark.parametrize("chain_id", CHAINS)
@pytest.mark.parametrize("kind", ["real", "local", "simulated"])
def test_only_a_real_network_has_the_urls_of_the_real_network(
    chain_id: int, kind: NetworkKind
) -> None:
    entry = CHAINS[chain_id]
    view = supported_chain(entry, kind, is_active=True)
    real = (entry.rpc_url, entry.explorer_url)
    assert (view.rpcUrl, view.explorerUrl) == (real if kind == "real" else (NOWHERE, NOWHERE))
