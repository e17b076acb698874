"""The faucet under an idempotency key: one credit per key and retention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from payments_core.engine.idempotency.record import AlreadyResponded, IdempotentRequest, Response
from payments_core.errors import IdempotencyConflict, Unavailable
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import StorageUnavailable
from payments_core.tenants.authorization import Authority
from tests.http.api_harness import Seen
from tests.http.checkout import BASE, Checkout

DAYS = 86_400


@pytest.fixture
def checkout() -> Checkout:
    return Checkout(MemoryStorage())


def fund(checkout: Checkout, amount: str, key: str = "k") -> Seen:
    body = {"chainId": BASE, "assetSymbol": "USDC", "amount": amount}
    path = f"/v2/sandbox/accounts/{checkout.merchant}/fund"
    return checkout.api.call("POST", path, body, key=key)


def balance(checkout: Checkout) -> str:
    return checkout.available(checkout.merchant)[0]


def test_a_key_credits_once_within_its_retention_and_again_after_it(checkout: Checkout) -> None:
    first = fund(checkout, "5")
    checkout.advance(30 * DAYS - 1)
    again = fund(checkout, "5")
    assert again.headers["idempotent-replayed"] == "true"
    assert again.body == first.body
    assert balance(checkout) == "5.00"
    checkout.advance(1)
    after = fund(checkout, "5")
    assert after.status == 200
    assert "idempotent-replayed" not in after.headers
    assert after.json["transactionHash"] != first.json["transactionHash"]
    assert balance(checkout) == "10.00"


def test_after_the_retention_the_key_may_ask_for_another_amount(checkout: Checkout) -> None:
    fund(checkout, "5")
    checkout.advance(30 * DAYS)
    assert fund(checkout, "7").json["amountAtomic"] == "7000000"
    assert balance(checkout) == "12.00"


def test_another_amount_under_the_same_key_is_a_conflict_and_credits_nothing(
    checkout: Checkout,
) -> None:
    fund(checkout, "5")
    seen = fund(checkout, "7")
    assert (seen.status, seen.code) == (409, "idempotency_conflict")
    assert balance(checkout) == "5.00"


def interrupted(checkout: Checkout, amount: str) -> None:
    """The process dies between the credit and its stored answer."""
    committer: Any = checkout.api.service.parts.ports.committer
    commit = committer.commit

    def dies(authority: Any, decide: Any, **more: Any) -> Any:
        if more.get("idempotent"):
            raise Unavailable() from StorageUnavailable("just now")
        return commit(authority, decide, **more)

    committer.commit = dies
    assert fund(checkout, amount).status == 503
    committer.commit = commit


def test_a_retry_after_a_crash_finds_the_credit_and_does_not_repeat_it(checkout: Checkout) -> None:
    interrupted(checkout, "5")
    assert fund(checkout, "5").status == 200
    assert balance(checkout) == "5.00"


def test_another_amount_after_a_crash_is_credited_as_it_says(checkout: Checkout) -> None:
    """The first request was never answered, so its key is not yet used."""
    interrupted(checkout, "5")
    seen = fund(checkout, "7")
    assert (seen.status, seen.json["amountAtomic"]) == (200, "7000000")
    assert balance(checkout) == "12.00"


class TestEmbedded:
    """Those who embed the library ask the sandbox itself, with no pipeline before it."""

    def asked(
        self, checkout: Checkout, fingerprint: str = "f"
    ) -> tuple[Authority, IdempotentRequest]:
        authority = checkout.api.service.tenants.system_authority(checkout.api.partition)
        return authority, IdempotentRequest(
            "k", fingerprint, lambda done: Response(200, b"{}", "v")
        )

    def fund(self, checkout: Checkout, amount: str) -> None:
        authority, idempotent = self.asked(checkout, amount)
        checkout.api.service.acting_as(authority).sandbox.fund(
            checkout.merchant, BASE, "USDC", amount, idempotency_key=idempotent
        )

    def test_a_conflict_credits_nothing(self, checkout: Checkout) -> None:
        self.fund(checkout, "5")
        with pytest.raises(IdempotencyConflict):
            self.fund(checkout, "7")
        assert balance(checkout) == "5.00"

    def test_a_repeated_key_moves_neither_clock_nor_chain(self, checkout: Checkout) -> None:
        sandbox = checkout.api.service.environment(checkout.api.partition).sandbox
        operations: list[Callable[[IdempotentRequest], object]] = [
            lambda once: sandbox.advance_clock(60, idempotency_key=once),
            lambda once: sandbox.mine_blocks(BASE, 7, idempotency_key=once),
            lambda once: sandbox.run(idempotency_key=once),
        ]
        for place, operation in enumerate(operations):
            _, once = self.asked(checkout)
            once.id = f"k-{place}"
            operation(once)
            before = checkout.clock.now(), sandbox.read().heads
            with pytest.raises(AlreadyResponded):
                operation(once)
            assert (checkout.clock.now(), sandbox.read().heads) == before
