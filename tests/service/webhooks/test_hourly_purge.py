"""The worker purges by itself: nobody needs to run a command (contract §4)."""

from __future__ import annotations

from payments_core.clock import DAY, HOUR
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
