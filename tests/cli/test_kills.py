"""kill -9 of the sandbox at random points of the demo: nothing is lost and nothing happens twice.

Every round is a whole demo in the same sandbox, with one kill between two steps or in the middle
of one; the sandbox starts again on the same port and data, and the step is tried again with the
same idempotency keys. `PAYMENTS_KILL_SEED` repeats a run's points, as far as time repeats.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_core_http.cli.api_client import ApiClient, NoResponse
from payments_core_http.cli.child_processes import ReceiverChild, SandboxChild
from payments_core_http.cli.demo.scenario import DemoContext, DemoState, require_status
from payments_core_http.cli.demo.steps import CHAIN_ID, EVENTS, STATUSES, STEPS, select_verified
from tests.cli.ledger_file import LedgerFile

POINTS = int(os.environ.get("PAYMENTS_KILLS") or 8)
TRIES = 3
WEIGHTS = [{"authorize": 3, "watch": 6}.get(step.name, 1) for step in STEPS]
"""The money moves in these."""

CREATION = [step.name for step in STEPS].index("create-payment")
PAID = [step.name for step in STEPS].index("watch")
"""Behind this step the Payment has succeeded."""

LEASES_END_S = 61


class Victim:
    """A sandbox that is killed and started again, on one port and one folder."""

    def __init__(self, data: Path) -> None:
        self.child = SandboxChild(data)
        self.dead = threading.Event()
        self.ready_s: list[float] = []
        self.killed_at = 0.0
        self.rested_s: list[float] = []

    def kill(self) -> None:
        self.child.kill()
        self.killed_at = time.monotonic()
        self.dead.set()

    def restart(self) -> None:
        self.child = SandboxChild(self.child.data, self.child.port)
        self.ready_s.append(self.child.ready_s)
        self.dead.clear()


@attrs.frozen
class Point:
    """Where a round's kill falls: before a step, `after_s` seconds into it, or, from that step
    on, when the receiver has its `delivery`th delivery and the sandbox may not know it yet."""

    step: int
    after_s: float | None = None
    delivery: int | None = None

    @classmethod
    def draw(cls, chance: random.Random, durations: list[float]) -> Point:
        """A random one; money moves in the middle, so most of them fall there."""
        if chance.random() < 0.3:
            return cls(CREATION, delivery=chance.randint(1, len(EVENTS)))
        [step] = chance.choices(range(len(STEPS)), WEIGHTS)
        if chance.random() < 0.3:
            return cls(step)
        return cls(step, after_s=chance.uniform(0, 1.2) * durations[step])

    def __str__(self) -> str:
        if self.delivery is not None:
            return f"at delivery {self.delivery}"
        when = "before" if self.after_s is None else f"{1000 * self.after_s:.0f} ms into"
        return f"{when} {STEPS[self.step].name}"

    def killer(self, victim: Victim, receiver: ReceiverChild) -> threading.Thread:
        """What does it; join it to be sure that it is done."""
        before = len(receiver.read_deliveries())

        def kill() -> None:
            if self.delivery is not None:
                wanted = before + self.delivery
                receiver.wait_for(lambda deliveries: len(deliveries) >= wanted, 60)
            victim.kill()

        return threading.Timer(self.after_s or 0, kill)


@pytest.fixture
def receiver() -> Iterator[ReceiverChild]:
    child = ReceiverChild()
    yield child
    child.end()


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    victim = Victim(tmp_path / "sandbox-data")
    yield victim
    if not victim.dead.is_set():
        victim.child.end()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_kill_9_anywhere_loses_nothing_and_repeats_nothing(
    victim: Victim, receiver: ReceiverChild
) -> None:
    seed = int(os.environ.get("PAYMENTS_KILL_SEED") or random.randrange(2**32))
    print(f"PAYMENTS_KILL_SEED={seed}")
    chance = random.Random(seed)
    stage = DemoContext(ApiClient(victim.child.base_url), receiver)
    durations: list[float] = []
    rounds = [play(victim, stage, "undisturbed", None, durations)]
    for number in range(POINTS):
        point = Point.draw(chance, durations)
        print(f"{number + 1:2}: kill -9 {point}")
        rounds.append(play(victim, stage, f"{seed:x}-{number}", point, []))
    assert victim.child.end() == 0
    print(f"restarts took {min(victim.ready_s):.2f} to {max(victim.ready_s):.2f} s")
    print(f"{len(victim.rested_s)} Payments were under way: they succeeded within")
    print(f"{max(victim.rested_s, default=0):.1f} s of kill -9, by a sandbox that started again")
    assert len(victim.ready_s) == POINTS
    ledger = LedgerFile.read(victim.child.data / "payments.db")
    deliveries = receiver.read_deliveries()
    for known in rounds:
        assert_paid_once(ledger, known)
        assert_every_event_was_delivered(ledger, known, deliveries)
    assert_repeats_are_equal(deliveries)
    assert len(ledger.tables["payments"]) == len(rounds)
    assert len(ledger.tables["accounts"]) == 2 * len(rounds)
    assert ledger.parked_jobs() == []


def play(
    victim: Victim, stage: DemoContext, run: str, point: Point | None, durations: list[float]
) -> DemoState:
    """Go through every step, with the kill at its point; returns what is known at the end."""
    facts = victim.child.facts
    known = DemoState(
        run=run,
        app_id=facts["appId"],
        app_secret=facts["appSecret"],
        environment_id=facts["environmentId"],
    )
    killer, round_began = None, time.monotonic()
    for number, step in enumerate(STEPS):
        if point is not None and number == point.step:
            killer = point.killer(victim, stage.receiver)
            killer.start()
            if point.after_s is None and point.delivery is None:
                killer.join()
        began = time.monotonic()
        known = completed(victim, step.run, stage, known, killer)
        durations.append(time.monotonic() - began)
        if number == PAID and round_began < victim.killed_at:
            victim.rested_s.append(time.monotonic() - victim.killed_at)
    if killer is not None:
        killer.join()
        if victim.dead.is_set():  # everything was done just before
            victim.restart()
    repeat_and_archive(stage, known)
    return known


def completed(
    victim: Victim,
    run: Callable[[DemoContext, DemoState], DemoState],
    stage: DemoContext,
    known: DemoState,
    killer: threading.Thread | None,
) -> DemoState:
    """Run a step until it is done, starting the sandbox again where it was killed."""
    for _ in range(TRIES):
        try:
            return run(stage, known)
        except NoResponse:
            assert killer is not None, victim.child.read_errors()
            killer.join()
            assert victim.dead.is_set(), "it did not answer, and was not killed"
            victim.restart()
    raise AssertionError("the step was never done")


def repeat_and_archive(stage: DemoContext, known: DemoState) -> None:
    """Let the deliveries whose worker was killed come again, and then close the endpoint."""
    for method, path, body in (
        ("POST", "/v2/sandbox/clock", {"advanceSeconds": LEASES_END_S}),
        ("PATCH", f"/v2/console/webhooks/{known.webhook_id}", {"status": "archived"}),
    ):
        require_status(
            stage.client.call(method, path, body, authorization=known.backend_authorization), 200
        )


def assert_paid_once(ledger: LedgerFile, known: DemoState) -> None:
    payment = ledger.payment(known.payment_id)
    assert [entry["status"] for entry in payment["timeline"]] == list(STATUSES)
    alice, bob = ledger.vault(known.alice_id, CHAIN_ID), ledger.vault(known.bob_id, CHAIN_ID)
    escrow = payment["escrow_address"]
    assert sorted(ledger.transfers(escrow)) == sorted(
        [(alice, escrow, 25_000_000), (escrow, bob, 25_000_000)]
    )
    assert len(ledger.transfers(alice)) == 2  # the faucet's and the Payment's
    assert (ledger.balance(alice), ledger.balance(escrow), ledger.balance(bob)) == (
        75_000_000,
        0,
        25_000_000,
    )
    statuses = [
        row["status"] for row in ledger.tables["receipts"] if row["payment_id"] == payment["id"]
    ]
    assert statuses == ["verified"]


def assert_every_event_was_delivered(
    ledger: LedgerFile, known: DemoState, deliveries: list[dict[str, Any]]
) -> None:
    events = ledger.events(known.payment_id)
    assert Counter(event["name"] for event in events) == Counter(EVENTS)
    received = {facts["eventId"] for facts in select_verified(deliveries, known)}
    assert received == {event["id"] for event in events}


def assert_repeats_are_equal(deliveries: list[dict[str, Any]]) -> None:
    """A retry keeps its delivery id, its event id and its body; and nothing was refused."""
    assert [facts for facts in deliveries if not facts["verified"]] == []
    seen: dict[tuple[str, str], tuple[str, str]] = {}
    for facts in deliveries:
        sent = (facts["deliveryId"], facts["bodySha256"])
        assert seen.setdefault((facts["path"], facts["eventId"]), sent) == sent
    print(f"{len(deliveries)} deliveries, {len(deliveries) - len(seen)} of them repeats")
