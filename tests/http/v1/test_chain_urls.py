"""The URLs of `supported-chains`, which wallets are given."""

from __future__ import annotations

from typing import get_args

import attrs
import pytest

from payments_core.chains.port import NetworkKind
from payments_core_http.v1.chains.views import NOWHERE, supported_chain
from tests.shipped import CHAINS


@pytest.mark.parametrize("chain_id", CHAINS)
@pytest.mark.parametrize("kind", get_args(NetworkKind))
def test_only_a_public_network_has_the_urls_of_the_registry(
    chain_id: int, kind: NetworkKind
) -> None:
    entry = CHAINS[chain_id]
    view = supported_chain(entry, kind, is_active=True)
    real = (entry.rpc_url, entry.explorer_url)
    is_public = kind in ("real", "testnet")
    assert (view.rpcUrl, view.explorerUrl) == (real if is_public else (NOWHERE, NOWHERE))


def test_a_network_without_an_explorer_has_a_url_that_leads_nowhere() -> None:
    entry = attrs.evolve(CHAINS[8453], explorer_url=None)
    assert supported_chain(entry, "real", is_active=True).explorerUrl == NOWHERE
