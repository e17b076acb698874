"""Simulated money stays in the sandbox: what serves which mode."""

from __future__ import annotations

import pytest

from payments_core_http.app import create_app
from tests.service.world import BASE, World


@pytest.mark.parametrize("mode", ["production", "sandbox ", "", "live"])
def test_simulated_chains_serve_the_sandbox_alone(memory_world: World, mode: str) -> None:
    service = memory_world.service
    with pytest.raises(ValueError, match=r"simulated chains|must be one of"):
        create_app(service, mode=mode)
    with pytest.raises(ValueError, match=r"simulated chains|must be one of"):
        service.worker(mode)


def test_the_refusal_says_what_is_missing(memory_world: World) -> None:
    with pytest.raises(ValueError, match="other modes need `chains`"):
        memory_world.service.worker("production")


def test_chains_of_ones_own_serve_production(memory_world: World) -> None:
    service = memory_world.restarted(chains={BASE: memory_world.chain})
    assert create_app(service, mode="production")
    assert service.worker("production").run_until_idle() == 1  # a look at the one chain


def test_the_sandbox_is_served_either_way(memory_world: World) -> None:
    for chains in (None, {BASE: memory_world.chain}):
        service = memory_world.restarted(chains=chains)
        assert create_app(service, mode="sandbox")
        assert service.worker("sandbox")
