"""Payments are held and let go by a provider in a process of its own, by webhook and by polling
alone, though `payments worker` is killed at each of its calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from payments_core import KeyRing, PaymentsService, open_storage
from payments_core.addresses import encode_checksum_address
from payments_core.entropy import system_entropy
from payments_core.networks import shipped_networks
from tests.deployment.deployed import deployed_on, shop
from tests.deployment.installed import install
from tests.deployment.played_provider import SEEN_S, Played, PlayedProvider, wait_until

STORAGES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))
CHAIN_ID = 8453
TOKEN = shipped_networks().find_asset(CHAIN_ID, "USDC")
AMOUNT = "25.00"
ATOMIC = 25_000_000
LATE_S = 5.0

ADAPTER = """
from examples.custom_screening.adapter import open_url
from payments_core.chains.outbox import screening

screening.MIN_PAUSE_MS = dict.fromkeys(screening.MIN_PAUSE_MS, {pause_ms})
"""


class Bureau(Played):
    """What happens to its Payments, each to an address of its own."""

    def list_address(self, result: str) -> str:
        """A new address of which the provider says this."""
        address = encode_checksum_address(system_entropy(20))
        self.provider.order(
            "list", type="address", reference=address, chain=CHAIN_ID, result=result
        )
        return address

    def pay(self, address: str) -> str:
        """A Payment to an address, whose escrow has the funds."""
        body = {
            "intent": "receive",
            "amount": AMOUNT,
            "chainId": CHAIN_ID,
            "destination": {"type": "wallet", "address": address},
        }
        payment = self.call("POST", "/v2/payments", body, key=f"pay-{address}")
        funds = {
            "chainId": CHAIN_ID,
            "assetSymbol": "USDC",
            "amount": AMOUNT,
            "to": payment["escrow"]["address"],
        }
        self.call("POST", "/v2/sandbox/transfers", funds, key=f"fund-{address}")
        return str(payment["id"])

    def read(self, payment_id: str) -> Any:
        return self.call("GET", f"/v2/payments/{payment_id}")

    def wait_for(self, payment_id: str, status: str, *labels: str) -> None:
        """Ask until the Payment is there, as seldom as the rate policies want."""
        wanted, seen = (status, list(labels)), None
        deadline = time.monotonic() + SEEN_S
        while seen != wanted:
            assert time.monotonic() < deadline, f"it is {seen}, and not {wanted}"
            time.sleep(0.5)
            payment = self.read(payment_id)
            seen = payment["status"], payment["reconciliation"]["labels"]

    def case_of(self, address: str) -> str:
        [case] = [one["id"] for one in self.provider.cases() if one["reference"] == address]
        return str(case)

    def count_events(self, name: str, payment_id: str) -> int:
        events = self.call("GET", f"/v2/console/events?limit=100&name={name}")["data"]
        return sum(one["payload"]["paymentId"] == payment_id for one in events)

    def balance_of(self, address: str) -> int:
        """What the chain says."""
        ring = KeyRing.parse((self.deployed.folder / "key-ring").read_text())
        storage = open_storage(self.deployed.storage_url)
        with closing(PaymentsService(storage, ring, simulated_chains=True)) as service:
            service.refresh()
            balances = service.chains[CHAIN_ID].balances(TOKEN.address, [address])
            return balances.amounts[address]

    def require_paid_once(self, address: str, payment_id: str) -> None:
        """One transfer, one case, one event for the hold, and no job that is given up."""
        wait_until(lambda: self.balance_of(address) == ATOMIC)
        assert self.case_of(address)
        assert self.count_events("payment.in_review", payment_id) == 1
        assert self.count_events("payment.succeeded", payment_id) == 1
        self.require_nothing_is_left()

    def require_nothing_is_left(self) -> None:
        assert self.deployed.admin("jobs", "parked") == []
        assert self.deployed.admin("notices", "list") == []


@contextmanager
def bureau_on(
    storage: str, folder: Path, monkeypatch: pytest.MonkeyPatch, pause_ms: int
) -> Iterator[Bureau]:
    source = ADAPTER.format(pause_ms=pause_ms)
    install(folder, monkeypatch, source, {"screening:example": "open_url"})
    provider = PlayedProvider("screening", "examples.custom_screening.service")
    with deployed_on(storage, folder) as deployed:
        deployed.configure(**{"providers.screening": {"url": provider.setting}})
        deployed.run("admin", "migrate")
        app, credential = shop(deployed)
        bureau = Bureau(deployed, provider, app["appId"], app["sandboxEnvironmentId"], credential)
        try:
            bureau.start_serve()
            bureau.start_worker()
            yield bureau
        finally:
            bureau.end()
            provider.child.end()


@pytest.mark.parametrize("storage", STORAGES)
def test_a_payment_waits_for_a_review_that_a_webhook_ends(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bureau_on(storage, tmp_path, monkeypatch, 60_000) as bureau:
        bureau.provider.order("faults", webhooks="twice")
        released, confirmed = (bureau.list_address("possible_match") for _ in range(2))
        passing, stopped = bureau.pay(released), bureau.pay(confirmed)
        for payment_id in (passing, stopped):
            bureau.wait_for(payment_id, "accepted", "in_review")
        bureau.provider.order("decide", case=bureau.case_of(released), state="released")
        bureau.wait_for(passing, "succeeded")
        bureau.require_paid_once(released, passing)
        bureau.provider.order("decide", case=bureau.case_of(confirmed), state="confirmed")
        bureau.wait_for(stopped, "action_required", "blocked")
        assert bureau.balance_of(confirmed) == 0
        bureau.require_nothing_is_left()


@pytest.mark.parametrize("storage", STORAGES)
def test_a_payment_waits_while_the_provider_fails_and_is_polled(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bureau_on(storage, tmp_path, monkeypatch, 500) as bureau:
        bureau.provider.order("faults", webhooks="none", is_down=True)
        address = bureau.list_address("possible_match")
        payment_id = bureau.pay(address)
        bureau.wait_for(payment_id, "accepted", "in_review")
        bureau.provider.order("faults", is_down=False, lost_answers=1)
        wait_until(lambda: len(bureau.provider.cases()) == 1)
        bureau.provider.order("faults", nonsense=True)
        bureau.provider.order("decide", case=bureau.case_of(address), state="released")
        time.sleep(1.5)
        assert bureau.read(payment_id)["status"] == "accepted"
        bureau.provider.order("faults", nonsense=False)
        bureau.wait_for(payment_id, "succeeded")
        bureau.require_paid_once(address, payment_id)


@contextmanager
def killed(bureau: Bureau, *, before: bool) -> Iterator[None]:
    """`worker` is killed while the provider answers what the block makes it ask."""
    bureau.provider.order("faults", late_s=LATE_S, is_late_before=before)
    wait = bureau.provider.watch("screen", "received" if before else "done")
    yield
    wait()
    assert bureau.worker is not None
    bureau.worker.kill()
    bureau.provider.order("faults", late_s=0.0)
    bureau.start_worker()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("storage", "pause_ms"),
    [
        pytest.param("postgresql", 60_000, id="webhooks-postgresql", marks=pytest.mark.postgres),
        pytest.param("sqlite", 500, id="polling-sqlite"),
    ],
)
def test_kill_9_at_each_call_pays_once_and_never_what_is_held(
    storage: str, pause_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bureau_on(storage, tmp_path, monkeypatch, pause_ms) as bureau:
        if pause_ms < 60_000:
            bureau.provider.order("faults", webhooks="none")
        for first_before, last_before in ((True, False), (False, True)):
            address = bureau.list_address("possible_match")
            with killed(bureau, before=first_before):
                payment_id = bureau.pay(address)
            bureau.wait_for(payment_id, "accepted", "in_review")
            with killed(bureau, before=last_before):
                bureau.provider.order("decide", case=bureau.case_of(address), state="released")
            bureau.wait_for(payment_id, "succeeded")
            bureau.require_paid_once(address, payment_id)
