"""Contract wallets over HTTP: how long a signature may be, and a chain that does not answer."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import Checkout
from tests.http.seen import Seen
from tests.http.v2.accounts.test_account_routes import Partner
from tests.service.faults import FaultyChain

ADDRESS = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


@pytest.fixture
def payer(checkout: Checkout) -> Partner:
    return Partner(checkout)


def asked_of(payer: Partner) -> str:
    body = {"address": ADDRESS, "chainType": "evm"}
    return str(payer.call("POST", "/wallets/challenge", body).json["challengeId"])


@pytest.mark.parametrize("size", [4_096, 4_097, 20_000])
def test_a_contracts_signature_may_have_4096_bytes(payer: Partner, size: int) -> None:
    body = {"challengeId": asked_of(payer), "signature": "0x" + "00" * size}
    seen = payer.call("POST", "/wallets", body)
    [message] = seen.faults.values()
    assert (seen.status, set(seen.faults)) == (400, {"signature"})
    assert ("nor accepted by a contract" in message) == (size <= 4_096)
    assert "00" * 100 not in seen.body.decode()


def test_a_challenge_names_a_served_evm_chain(payer: Partner) -> None:
    def ask(**more: Any) -> Seen:
        body = {"address": ADDRESS, "chainType": "evm", **more}
        return payer.call("POST", "/wallets/challenge", body)

    assert ask().json["chainId"] is None
    seen = ask(chainId=10)
    assert (seen.status, seen.json["chainId"]) == (201, 10)
    assert "Chain: Optimism (10)" in seen.json["message"]
    assert (ask(chainId=56).status, ask(chainId=56).code) == (422, "unsupported_chain")
    assert ask(chainId="10").faults.keys() == {"chainId"}
    seen = ask(chainType="aptos", address="0x1g", chainId=10)
    assert seen.faults.keys() == {"address", "chainId"}


def test_a_wallet_shows_the_chains_on_which_its_contract_has_proven_it(payer: Partner) -> None:
    class Contract(FaultyChain):
        def check_contract_signature(self, address: str, *_: bytes) -> bool | None:
            return address == ADDRESS or None

    service = payer.api.service
    service.chains[10] = Contract(  # type: ignore[index]
        service.chains[10], at=0, fault=lambda call: call(), until=-1
    )
    seen = payer.call("POST", "/wallets", {"challengeId": asked_of(payer), "signature": "0x12"})
    assert (seen.status, seen.json["verified"]) == (201, True)
    assert seen.json["verifiedChainIds"] == [10]
    [listed] = payer.call("GET", "/wallets").json["data"]
    assert listed == seen.json


def test_a_chain_that_does_not_answer_is_worth_a_retry(checkout: Checkout, payer: Partner) -> None:
    failure = {"dependency": "chain", "operation": "any", "times": 1}
    assert checkout.api.call("POST", "/v2/sandbox/failures", failure).status < 300
    body = {"challengeId": asked_of(payer), "signature": "0x12"}
    seen = payer.call("POST", "/wallets", body)
    assert (seen.status, seen.code) == (424, "dependency_failed")
    assert seen.json["error"]["details"] == {
        "dependency": "chain",
        "retryable": True,
        "requestId": seen.json["error"]["details"]["requestId"],
        "docUrl": seen.json["error"]["details"]["docUrl"],
    }
    assert payer.call("POST", "/wallets", body).status == 400
