"""The URL of the CCTP router."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.adapters import keep_accepted
from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.networks import shipped_networks
from payments_core.port_loader import open_router
from payments_core.routers.cctp.deployments import DEPLOYMENTS
from payments_core.routers.cctp.router import CctpRouter
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from tests.chains.evm.nodes import ADMIN
from tests.routers.cctp.world import SIGNER

SECRET = "a-secret-in-a-path"


def chains(*numbers: int) -> dict[int, EvmChain]:
    """Chains whose nodes nobody asks."""
    return {
        number: EvmChain(NodeQuorum(["http://127.0.0.1:9"], number), Deployment(ADMIN), SIGNER)
        for number in numbers
    }


def open_url(url: str, *numbers: int, storage: Storage | None = None) -> CctpRouter:
    opened: Any = open_router(
        url, chains=chains(*numbers), storage=storage or MemoryStorage(), networks=None
    )
    assert isinstance(opened, CctpRouter)
    return opened


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?transfer=standard&max_fee_ppm=100",
        "?transfer=fast&max_fee_ppm=200&offer_minutes=5&grace_minutes=1&smallest_return_atomic=0",
    ],
)
def test_a_url_opens_the_router_and_shows_nothing_of_it(query: str) -> None:
    router = open_url(f"cctp:https://iris.example/{SECRET}{query}", 8453, 137)
    assert SECRET not in repr(router)
    assert router.key_name == "cctp_router"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("cctp:ftp://{}", "must begin with http"),
        ("cctp:", "must begin with http"),
        ("cctp:https://{}?transfer=slow", "standard or fast"),
        ("cctp:https://{}?transfer=fast", "needs max_fee_ppm"),
        ("cctp:https://{}?max_fee_ppm=100001", "at most"),
        ("cctp:https://{}?max_fee_ppm=-1", "whole number"),
        ("cctp:https://{}?offer_minutes=0", "at least 1"),
        ("cctp:https://{}?grace_minutes=0", "at least 1"),
        ("cctp:https://{}?fee=1", "no parameter fee"),
        ("cctp:https://{}?transfer=fast&transfer=fast", "twice"),
    ],
)
def test_a_url_that_means_nothing_is_refused_without_its_address(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        open_url(url.format(SECRET), 8453, 137)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("numbers", [(), (8453,), (8453, 84532), (84532,)])
def test_two_chains_are_needed_between_which_it_routes(numbers: tuple[int, ...]) -> None:
    """A mainnet reaches no testnet."""
    with pytest.raises(ValueError, match="two served chains"):
        open_url("cctp:https://iris.example", *numbers)


def test_every_chain_of_the_table_has_usdc_and_reaches_those_of_its_kind() -> None:
    networks = shipped_networks()
    for number, one in DEPLOYMENTS.items():
        assert networks.find_asset(number, "USDC").decimals == 6
        reached = {other for other, its in DEPLOYMENTS.items() if one.reaches(its)}
        testnet = networks[number].is_testnet
        assert reached == {
            other
            for other in DEPLOYMENTS
            if other != number and networks[other].is_testnet == testnet
        }


def test_an_adapter_gets_only_what_it_names() -> None:
    offered = {"chains": 1, "storage": 2}

    def bare(url: str) -> None: ...

    def some(url: str, *, storage: object) -> None: ...

    def more(url: str, **rest: object) -> None: ...

    assert keep_accepted(bare, offered) == {}
    assert keep_accepted(some, offered) == {"storage": 2}
    assert keep_accepted(more, offered) == offered
