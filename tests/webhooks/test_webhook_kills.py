"""kill -9 of the worker's process, again and again: no delivery is lost, and repeats are equal.

The service makes events and delivers them to a receiver in another process, over real HTTP. Each
of its processes ends at a random moment among its deliveries; the next one goes on with the same
file. `PAYMENTS_KILL_SEED` repeats a run's moments, as far as time repeats; `PAYMENTS_KILLS` asks
for more of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core.webhooks import verify
from payments_core_http.cli.child_processes import ChildProcess
from tests.webhooks.kill_victim import authority, service_over

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("PAYMENTS_KILLS") or 8)
ENDPOINTS = 8
EVENTS = 25 * KILLS
DELIVERIES = ENDPOINTS * EVENTS
JITTER_S = 0.02
WAIT_S = 60.0
SIGNED_ANEW = {
    "x-service-timestamp", "x-service-signature", "webhook-timestamp", "webhook-signature",
}  # fmt: skip

Received = dict[str, Any]


@pytest.fixture
def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChildProcess]:
    monkeypatch.chdir(ROOT)  # where the children find themselves as modules
    child = ChildProcess("receiver", "tests.webhooks.kill_receiver", [str(tmp_path / "received")])
    yield child
    child.end()


@pytest.mark.slow
@pytest.mark.timeout(60 + 10 * KILLS)
def test_kill_9_of_the_worker_loses_no_delivery_and_changes_no_repeat(
    receiver: ChildProcess, tmp_path: Path
) -> None:
    seed = int(os.environ.get("PAYMENTS_KILL_SEED") or random.randrange(2**32))
    print(f"PAYMENTS_KILL_SEED={seed}")
    chance = random.Random(seed)
    began_s = int(time.time())
    secrets = prepare(tmp_path, f"http://127.0.0.1:{receiver.wait_until_ready()['port']}")
    for life in range(1, KILLS + 1):
        live_and_die(tmp_path, EVENTS * life // (KILLS + 1), receiver, chance)
    live_to_the_end(tmp_path, receiver)
    received = [json.loads(line) for line in (tmp_path / "received").read_text().splitlines()]
    assert_every_event_was_received_and_repeats_are_equal(tmp_path, received)
    assert_every_delivery_is_done(tmp_path, received)
    assert_each_was_signed_at_its_own_time(received, secrets, began_s)


def prepare(folder: Path, url: str) -> dict[str, str]:
    """An app whose endpoints are the receiver's paths; their secrets, by path."""
    (folder / "keys").write_text(KeyRing.generate())
    service = service_over(folder)
    app = service.tenants.create_app("Acme", "acme")
    environment_id = app.environments["sandbox"]
    (folder / "environment").write_text(environment_id)
    mine = authority(service, environment_id)
    secrets = {}
    for number in range(ENDPOINTS):
        path = f"/hook/{number}"
        _, secrets[path] = service.acting_as(mine).webhooks.create(
            url=url + path, subscribed_events=("account.created",)
        )
    service.close()
    return secrets


def live_and_die(folder: Path, events: int, receiver: ChildProcess, chance: random.Random) -> None:
    """One life, killed somewhere among the deliveries that it has to make."""
    left = ENDPOINTS * events - len(pairs(receiver))
    wanted = len(received_so_far(receiver)) + chance.randrange(left)
    victim = ChildProcess("victim", "tests.webhooks.kill_victim", [str(folder), str(events)])
    try:
        victim.wait_until_ready()
        seen = receiver.wait_for(lambda reported: len(reported) > wanted, WAIT_S)
        killer = threading.Timer(chance.uniform(0, JITTER_S), victim.kill)
        killer.start()
        killer.join()
        assert seen, f"it delivered no more\n{victim.read_errors()}"
    finally:
        victim.end()


def live_to_the_end(folder: Path, receiver: ChildProcess) -> None:
    """The last life, which delivers what is left and ends politely."""
    victim = ChildProcess("victim", "tests.webhooks.kill_victim", [str(folder), str(EVENTS)])
    try:
        victim.wait_until_ready()
        done = receiver.wait_for(
            lambda reported: len(reported) > DELIVERIES and len(pairs(receiver)) == DELIVERIES,
            WAIT_S,
        )
        assert done, f"{len(pairs(receiver))} of {DELIVERIES} came\n{victim.read_errors()}"
    finally:
        code = victim.end()
    assert code == 0, victim.read_errors()


def received_so_far(receiver: ChildProcess) -> list[dict[str, Any]]:
    return receiver.read_messages()[1:]  # the first line is its port


def pairs(receiver: ChildProcess) -> set[tuple[str, str]]:
    """Which event has come to which path, repeats aside."""
    return {(facts["path"], facts["event"]) for facts in received_so_far(receiver)}


def assert_every_event_was_received_and_repeats_are_equal(
    folder: Path, received: list[Received]
) -> None:
    events = {event["id"]: event for event in rows(folder, "events")}
    assert len(events) == EVENTS
    made = {account["id"] for account in rows(folder, "accounts")}
    assert {event["account_id"] for event in events.values()} == made
    by_delivery: dict[str, list[Received]] = defaultdict(list)
    by_pair: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in received:
        by_delivery[one["headers"]["x-service-delivery"]].append(one)
        by_pair[one["path"], one["headers"]["x-service-event-id"]].add(
            one["headers"]["x-service-delivery"]
        )
    assert {event for _, event in by_pair} == set(events)
    assert len(by_pair) == DELIVERIES
    assert all(len(ids) == 1 for ids in by_pair.values()), "a repeat under another delivery id"
    assert len(by_delivery) == DELIVERIES
    for same in by_delivery.values():
        assert len({one["path"] for one in same}) == 1
        assert len({hashlib.sha256(one["body"].encode()).digest() for one in same}) == 1
        lasting = [
            {name: text for name, text in one["headers"].items() if name not in SIGNED_ANEW}
            for one in same
        ]
        assert all(headers == lasting[0] for headers in lasting)
        assert json.loads(same[0]["body"])["id"] == same[0]["headers"]["x-service-event-id"]
    repeats = len(received) - len(by_delivery)
    print(f"{len(received)} requests for {len(by_delivery)} deliveries, {repeats} of them repeats")


def assert_every_delivery_is_done(folder: Path, received: list[Received]) -> None:
    deliveries = {row["id"]: row for row in rows(folder, "webhook_deliveries")}
    assert len(deliveries) == DELIVERIES
    assert {row["status"] for row in deliveries.values()} == {"delivered"}
    for one in received:
        row = deliveries[one["headers"]["x-service-delivery"]]
        assert row["event_id"] == one["headers"]["x-service-event-id"]
        assert row["request_body"] == one["body"]
    assert [job for job in rows(folder, "jobs") if job["queue"] == "sandbox.webhooks"] == []


def assert_each_was_signed_at_its_own_time(
    received: list[Received], secrets: dict[str, str], began_s: int
) -> None:
    """In real time, though the sandbox's clock has been moved by a minute in every life."""
    last: dict[str, int] = {}
    for one in received:
        signed_s = int(one["headers"]["x-service-timestamp"])
        assert began_s <= signed_s <= time.time()
        id = one["headers"]["x-service-delivery"]
        assert signed_s >= last.setdefault(id, signed_s)
        last[id] = signed_s
        verify(one["body"].encode(), one["headers"], secrets[one["path"]], now=signed_s)


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """What a table holds, read without any of the service's own code."""
    with closing(sqlite3.connect(folder / "data.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        found = connection.execute(f"SELECT body FROM {table}").fetchall()
    return [json.loads(body) for (body,) in found]
