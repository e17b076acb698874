"""Times that we stored as the present under a clock that was hours ahead: nothing waits for their
end when it is right again, and nothing rests on their age."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from payments_core.clock import MAX_CLOCK_SKEW_MS, SECOND, Instant, is_ahead
from payments_core.credentials.keyring import KeyRing
from payments_core.errors import OptionLocked, Unauthorized
from payments_core.payments.expiry import UNREAD_ALARM_MS
from payments_core.service import PaymentsService
from tests.service.engine.jobs.test_clocks_that_were_ahead import Ahead
from tests.service.payer import Payer
from tests.service.world import RING, NoTransport, World

JUMP_S = 3 * 3_600
NOW = 1_790_000_000_000


@pytest.mark.parametrize(
    ("ahead_ms", "expected"),
    [(-JUMP_S, False), (MAX_CLOCK_SKEW_MS, False), (MAX_CLOCK_SKEW_MS + 1, True)],
)
def test_a_time_is_ahead_beyond_the_skew_that_clocks_may_have(
    ahead_ms: int, expected: bool
) -> None:
    instant: Instant = NOW + ahead_ms
    assert is_ahead(instant, NOW) == expected


@pytest.mark.parametrize("again", [False, True])
def test_a_submission_locks_no_longer_than_its_time(memory_world: World, again: bool) -> None:
    """Another payer could not choose an option for hours, and the page would show nothing due."""
    world = memory_world
    payer = Payer(world, expires_in_s=86_400)
    chosen, other = payer.select(payer.option()), payer.another()
    if again:
        payer.submit(chosen, "0x" + "cd" * 32)
    world.system.advance(JUMP_S)
    payer.submit(chosen)
    with pytest.raises(OptionLocked):
        payer.select(other)
    world.system.advance(-JUMP_S + (150 if again else 0))
    code = str(world.service.parts.links.build_url(payer.paid())).rpartition("/")[2]
    assert (
        world.service.checkout.read_page(code, mode="sandbox").due_atomic
        == payer.paid().amount_atomic
    )
    assert payer.select(other).option.selection_status == "selected"


def test_an_operators_session_does_not_outlive_its_idle_time(memory_world: World) -> None:
    world = memory_world
    sessions = world.service.operator_sessions
    password = world.service.operators.create(world.environment_id, "ann").password

    def begin() -> Callable[[], object]:
        token = sessions.begin("ann", password, mode="sandbox").token
        return lambda: sessions.authenticate(token, mode="sandbox")

    used = begin()
    world.system.advance(JUMP_S)
    begun = begin()
    begun()
    with pytest.raises(Unauthorized):
        used()
    world.system.advance(-JUMP_S)
    with pytest.raises(Unauthorized):
        begun()
    begin()()


def test_a_chain_that_is_not_scanned_is_reported_in_time(
    memory_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """The last scan seems to be in the future, and would hide for hours that there is none."""
    world = memory_world
    world.run()
    ahead = PaymentsService(
        world.storage,
        KeyRing.parse(RING),
        chains=world.service.chains,
        clock=Ahead(world.clock),
        transport=NoTransport(),
    )
    ahead.parts.scanner("sandbox").wake(8453)
    ahead.worker("sandbox").run_until_idle()
    payment = world.payment(expires_in_s=300).payment
    world.stop_scans()
    world.advance(300 + UNREAD_ALARM_MS // SECOND - 60)
    assert "was not scanned" not in caplog.text
    world.advance(6 * 60)
    assert "ALARM: chain 8453 was not scanned for" in caplog.text
    assert world.paid(payment.id).status == "awaiting_payment"
