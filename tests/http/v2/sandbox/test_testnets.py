"""A sandbox with a testnet beside its simulated chains, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import FixedClock
from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.api_harness import ApiHarness, Bench

TESTNET = 84532
WALLET = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"


@pytest.fixture
def api() -> ApiHarness:
    clock = FixedClock()
    testnet = SimulatedChain(TESTNET, Bench(clock).parts.ports)
    return ApiHarness(
        clock, storage=MemoryStorage(), chains={TESTNET: testnet}, simulated_chains=True
    )


def test_the_state_says_which_chains_are_testnets(api: ApiHarness) -> None:
    chains = api.call("GET", "/v2/sandbox").json["chains"]
    assert [(one["name"], one["networkKind"], one["isTestnet"]) for one in chains] == [
        ("Ethereum", "simulated", False),
        ("Base", "simulated", False),
        ("Polygon", "simulated", False),
        ("Arbitrum", "simulated", False),
        ("Optimism", "simulated", False),
        ("Base Sepolia", "real", True),
    ]
    known = api.call("GET", "/sdk/v1/supported-chains").json["data"]["chains"]
    urls = {one["chainId"]: one["explorerUrl"] for one in known}
    assert urls[TESTNET] == "https://sepolia.basescan.org"
    assert urls[8453] == "https://sandbox.invalid"


CONTROLS: dict[str, tuple[str, dict[str, Any]]] = {
    "transfers": (
        "transfers",
        {"chainId": TESTNET, "assetSymbol": "USDC", "to": WALLET, "amount": "1"},
    ),
    "blocks": ("blocks", {"chainId": TESTNET, "count": 1}),
    "reorgs": ("reorgs", {"chainId": TESTNET, "depth": 1}),
    "clock": ("clock", {"advanceSeconds": 60}),
    "failures": (
        "failures",
        {"dependency": "chain", "operation": "transfer", "times": 1, "chainId": TESTNET},
    ),
    "fund": (
        "accounts/{account}/fund",
        {"chainId": TESTNET, "assetSymbol": "USDC", "amount": "1"},
    ),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_its_controls_are_refused_on_the_testnet(api: ApiHarness, control: str) -> None:
    path, body = CONTROLS[control]
    seen = api.call("POST", f"/v2/sandbox/{path.format(account=api.account_id)}", body)
    assert (seen.status, seen.code) == (422, "capability_not_active")
    named = "a testnet" if control == "clock" else "Base Sepolia"
    assert named in seen.json["error"]["message"]


def test_they_work_on_the_simulated_chains(api: ApiHarness) -> None:
    seen = api.call("POST", "/v2/sandbox/blocks", {"chainId": 8453, "count": 1})
    assert (seen.status, seen.json["name"]) == (200, "Base")
