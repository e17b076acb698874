"""When a failed delivery is attempted again: the backoff, and Retry-After, to the second."""

from __future__ import annotations

import pytest

from payments_core.clock import SECOND, FixedClock
from payments_core.webhooks.transports.port import TransportResult
from tests.webhooks.delivery_case import BACKOFF_S, DAY_S, Case
from tests.webhooks.webhook_bench import Bench, Wire


@pytest.mark.parametrize("limit", [1, 3, 10, 12])
def test_the_backoff_is_the_interfaces_up_to_the_configured_limit(limit: int) -> None:
    case = Case(max_attempts=limit)
    waits, sent_at = [], []
    for _ in range(limit):
        sent_at.append(case.bench.clock.now())
        case.attempt(TransportResult(503))
        if case.delivery.next_attempt_at_ms is not None:
            waits.append((case.delivery.next_attempt_at_ms - case.bench.clock.now()) // SECOND)
    assert waits == BACKOFF_S[: limit - 1]
    assert (case.delivery.status, case.delivery.attempts) == ("abandoned", limit)
    assert len(case.wire.sent) == limit
    case.assert_over()
    assert case.bench.settings.delivery_policy()["maxAttempts"] == limit


class Ahead(FixedClock):
    """A sandbox clock that was advanced by a day: dates of the world are a day behind it."""

    def now(self) -> int:
        return super().now() + DAY_S * SECOND


# The clock's real time is Mon, 21 Sep 2026 14:13:20 GMT.
RETRY_AFTER = {
    "0": 1,
    "1": 1,
    "7": 7,
    " 7 ": 7,
    "0000000007": 7,
    "3599": 3599,
    "3600": 3600,
    "3601": 3600,
    "99999999999999999999": 3600,
    "9" * 4000: 3600,
    "Mon, 21 Sep 2026 14:14:20 GMT": 60,
    "Monday, 21-Sep-26 14:14:20 GMT": 60,
    "Mon Sep 21 14:14:20 2026": 60,
    "Mon, 21 Sep 2026 15:13:20 GMT": 3600,
    "Mon, 21 Sep 2026 15:13:21 GMT": 3600,
    "Fri, 31 Dec 9999 23:59:59 GMT": 3600,
    "Mon, 21 Sep 2026 14:13:20 GMT": 1,  # now
    "Mon, 21 Sep 2026 14:13:19 GMT": 1,  # past
    "Thu, 01 Jan 1970 00:00:00 GMT": 1,
    "": 30,  # from here on it cannot be read, and the table stands
    "-1": 30,
    "-0": 30,
    "+7": 30,
    "7.5": 30,
    "7s": 30,
    "7, 9": 30,
    "1e2": 30,
    "0x10": 30,
    "٧": 30,
    "soon": 30,
    "Mon, 21 Sep 2026 14:14:20": 30,
    "Mon, 21 Sep 2026 14:14:20 +0000": 30,
    "Mon, 31 Feb 2026 14:14:20 GMT": 30,
    "Mon, 21 Sep 2026 24:14:20 GMT": 30,
    "2026-09-21T14:14:20Z": 30,
    "\x00": 30,
    "Mon, 21 Sep 2026 14:14:20 GMT" * 100: 30,
}


@pytest.mark.parametrize("clock", [FixedClock, Ahead], ids=["real", "advanced"])
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_replaces_the_wait_on_a_retryable_response(
    clock: type[FixedClock], status: int
) -> None:
    for text, wait_s in RETRY_AFTER.items():
        wire = Wire([TransportResult(status, retry_after=text)])
        bench = Bench(clock=clock(), wire=wire)
        endpoint = bench.endpoint()
        bench.happen()
        bench.run()
        (delivery,) = bench.stored(endpoint)
        assert delivery.status == "failed"
        assert delivery.next_attempt_at_ms is not None
        waits = (delivery.next_attempt_at_ms - bench.clock.now()) / SECOND
        assert (text[:40], waits) == (text[:40], wait_s)
        bench.clock.advance(wait_s - 0.001)
        bench.run()
        assert len(wire.sent) == 1
        bench.clock.advance(0.001)
        bench.run()
        assert len(wire.sent) == 2


def test_retry_after_neither_spares_an_attempt_nor_stays() -> None:
    case = Case(max_attempts=4)
    for answer, wait_s in (
        (TransportResult(503, retry_after="5"), 5),
        (TransportResult(503), 60),  # the second failed attempt's own wait, not the first's
        (TransportResult(503, retry_after="7200"), 3600),
    ):
        case.attempt(answer)
        assert case.delivery.next_attempt_at_ms == case.bench.clock.now() + wait_s * SECOND
    case.attempt(TransportResult(503, retry_after="5"))
    assert case.delivery.status == "abandoned"
    case.assert_over()
