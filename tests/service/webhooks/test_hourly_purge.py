"""The worker purges by itself: nobody needs to run a command (contract §4)."""

from __future__ import annotations

import logging

import pytest

from payments_core.clock import DAY, HOUR, SECOND
from payments_core.engine.hourly_purge import PURGE, RETRY_MS, HourlyPurge
from payments_core.engine.idempotency.record import IdempotentRequest, Response, StoredResponse
from payments_core.storage.jobs import Job
from payments_core.storage.port import StorageUnavailable
from tests.service.world import World


def test_old_events_are_deleted_by_the_worker(memory_world: World) -> None:
    old = {event.id for event in memory_world.events()}
    assert old
    memory_world.run()
    memory_world._move(memory_world.clock.now() + 89 * DAY)
    memory_world.run()
    assert old <= {event.id for event in memory_world.events()}
    memory_world._move(memory_world.clock.now() + (DAY + 2 * HOUR))
    memory_world.run()
    assert not old & {event.id for event in memory_world.events()}


class Steps:
    """A step that fails with an error, if it has one, and a step that counts its runs."""

    error: Exception | None = None
    is_more = False
    runs = 0

    def fail(self, partition: str) -> bool:
        if self.error is not None:
            raise self.error
        return self.is_more

    def count(self, partition: str) -> bool:
        self.runs += 1
        return False


@pytest.mark.parametrize(
    ("error", "level"),
    [(RuntimeError("a secret"), logging.CRITICAL), (StorageUnavailable(), logging.WARNING)],
)
def test_a_step_that_fails_stops_no_other_and_is_tried_again(
    memory_world: World, caplog: pytest.LogCaptureFixture, error: Exception, level: int
) -> None:
    world = memory_world
    ports, steps = world.service.parts.ports, Steps()
    answered = IdempotentRequest(
        "answer", "print", lambda _: Response(201, b"x", "2026-09-09"), retention_ms=HOUR
    )
    world.resources.webhooks.create(url="https://example.com/hook", idempotency_key=answered)
    purge = HourlyPurge(ports, (steps.fail, steps.count))

    def run_at(now: int) -> int:
        """How many milliseconds later the job that is due now runs again."""
        world._move(now)
        [claimed] = [
            one
            for one in world.storage.claim(
                "sandbox.timers", now, lease_ms=SECOND, limit=9, lane_concurrency=9
            )
            if one.job.kind == PURGE
        ]
        purge.run(claimed)
        return world.get(Job, claimed.job.id).due_at - now

    steps.error = error
    now = world.clock.now() + DAY
    assert run_at(now) == RETRY_MS
    answers = world.storage.read(
        world.environment_id, lambda snapshot: snapshot.find(StoredResponse, "by_expiry")
    )
    assert answers.records == ()
    assert steps.runs == 1
    [line] = [one for one in caplog.records if "hourly purge" in one.getMessage()]
    assert line.levelno == level
    assert line.getMessage().startswith("ALARM: ") == (level == logging.CRITICAL)
    assert world.environment_id in line.getMessage()
    assert "a secret" not in line.getMessage()
    steps.error, steps.is_more = None, True
    now += RETRY_MS
    assert run_at(now) == SECOND
    steps.is_more = False
    assert run_at(now + SECOND) == HOUR
    assert steps.runs == 3
