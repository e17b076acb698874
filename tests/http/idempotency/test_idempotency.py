"""One effect and one answer per key, however often a request comes (contract §4)."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import attrs
import pytest

from payments_core.clock import DAY, FixedClock
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.engine.idempotency.single_flight import SingleFlight
from payments_core.errors import IdempotencyInProgress
from tests.http.api_harness import ApiHarness, Seen, Thing, real_time
from tests.recorded_waits import RecordedWaits


def stored(api: ApiHarness) -> list[Thing]:
    return api.service.things.all(api.partition)


def test_a_retry_is_answered_with_the_same_bytes_and_no_second_effect(api: ApiHarness) -> None:
    first = api.make(key="k")
    again = api.make(key="k")
    assert (first.status, again.status) == (201, 201)
    assert first.body == again.body
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert len(stored(api)) == 1


def test_the_same_body_in_another_spelling_is_the_same_request(api: ApiHarness) -> None:
    one = api.call("POST", "/v2/things", raw=b'{"name":"a","note":"\\u0041"}', key="k")
    two = api.call("POST", "/v2/things", raw=b' {"note" : "A", "name": "a"} ', key="k")
    assert one.body == two.body


def test_another_body_is_a_conflict(api: ApiHarness) -> None:
    api.make({"name": "a"}, key="k")
    seen = api.make({"name": "b"}, key="k")
    assert (seen.status, seen.code) == (409, "idempotency_conflict")
    assert len(stored(api)) == 1


def test_a_number_written_otherwise_is_another_body(api: ApiHarness) -> None:
    body = '{"name": "a", "metadata": {"n": %s}}'
    for number, code in (("1", None), ("1.0", "idempotency_conflict"), ("1", None)):
        seen = api.call("POST", "/v2/things", raw=(body % number).encode(), key="k")
        assert (seen.code if seen.status >= 400 else None) == code


def test_another_route_or_id_is_a_conflict(api: ApiHarness) -> None:
    one, two = api.make(key="1").json["id"], api.make(key="2").json["id"]
    assert api.call("POST", f"/v2/things/{one}/close", key="k").status == 200
    assert api.call("POST", f"/v2/things/{two}/close", key="k").code == "idempotency_conflict"
    assert api.make(key="k").code == "idempotency_conflict"
    assert api.call("PATCH", f"/v2/things/{one}", {"name": "a"}, key="1").status == 409


def test_a_required_key_is_asked_for(api: ApiHarness) -> None:
    seen = api.call("POST", "/v2/things", {"name": "a"})
    assert (seen.status, seen.code) == (400, "idempotency_key_required")


def test_an_accepted_key_may_be_left_out(api: ApiHarness) -> None:
    id = api.make().json["id"]
    assert api.call("POST", f"/v2/things/{id}/close").status == 200
    assert api.call("POST", f"/v2/things/{id}/close").code == "invalid_state"


@pytest.mark.parametrize("key", ["", "x" * 257, "é", "a\tb", "a\n", "\x7f"])
def test_a_malformed_key_is_refused(api: ApiHarness, key: str) -> None:
    seen = api.make(key=key, valid=False)
    assert (seen.status, list(seen.faults)) == (400, ["Idempotency-Key"])


@pytest.mark.parametrize("key", ["x" * 256, '"quoted"', "a, b", " ~"])
def test_a_key_is_opaque(api: ApiHarness, key: str) -> None:
    assert api.make(key=key).status == 201
    assert api.make(key=key).headers["idempotent-replayed"] == "true"


def test_quotes_belong_to_a_key(api: ApiHarness) -> None:
    assert api.make(key="a").body != api.make(key='"a"').body


def test_a_rotated_key_of_the_same_app_does_not_break_a_retry(api: ApiHarness) -> None:
    first = api.make(key="k")
    _, secret = api.service.tenants.create_key(api.partition, "standard", "second")
    again = api.make(key="k", auth=api.basic(secret))
    assert again.body == first.body


def test_another_environment_has_its_own_keys(api: ApiHarness) -> None:
    api.make(key="k")
    other = ApiHarness()
    assert "idempotent-replayed" not in other.make(key="k").headers


def test_a_failure_stores_nothing(api: ApiHarness) -> None:
    id = api.make(key="1").json["id"]
    path = f"/v2/things/{id}/close"

    def fail() -> None:
        raise RuntimeError("no")

    api.service.things.before = fail
    assert api.make(key="k").status == 500
    api.service.things.before = lambda: None
    assert api.make(key="k").status == 201
    assert api.call("POST", path, key="c").status == 200
    assert api.call("POST", path, key="d").status == 409
    assert api.call("POST", path, key="d").status == 409


def test_the_caller_is_authorized_again_before_a_replay(api: ApiHarness) -> None:
    api.make(key="k")
    api.service.tenants.revoke_key(api.partition, api.key.id)
    assert api.make(key="k").status == 401


def test_a_key_is_forgotten_after_thirty_days() -> None:
    clock = FixedClock()
    api = ApiHarness(clock)
    first = api.make(key="k")
    clock.advance(30 * DAY / 1000 - 1)
    assert api.make(key="k").body == first.body
    clock.advance(1)
    assert api.make(key="k").body != first.body


def test_nothing_stored_reveals_the_key_or_the_secret(api: ApiHarness) -> None:
    api.make(key="a-very-special-key")
    page = api.service.parts.ports.storage.read(
        api.partition, lambda tx: tx.find(StoredResponse, "by_expiry")
    )
    [answer] = page.records
    text = repr(attrs.asdict(answer))
    assert "a-very-special-key" not in text and "name" not in text


def test_get_ignores_a_key(api: ApiHarness) -> None:
    assert api.call("GET", "/v2/things", key="x" * 999).status == 200


def test_sixteen_threads_with_one_key_make_one_effect() -> None:
    api = ApiHarness(real_time(), threads=16)
    barrier = threading.Barrier(16)

    def attempt(_: int) -> Seen:
        barrier.wait()
        return api.make(key="k", valid=False)

    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(attempt, range(16)))
    assert len(stored(api)) == 1
    answers = {s.body for s in seen if s.status == 201}
    assert len(answers) == 1
    for other in (s for s in seen if s.status != 201):
        assert (other.status, other.code) == (409, "idempotency_in_progress")
        assert other.headers["retry-after"] == "1"
        assert other.json["error"]["details"]["retryAfterSeconds"] == 1


class Slow:
    """An operation that waits inside until it is let go."""

    def __init__(self, api: ApiHarness) -> None:
        self.inside = threading.Event()
        self.go = threading.Event()
        self.failures = 0
        api.service.things.before = self

    def __call__(self) -> None:
        self.inside.set()
        assert self.go.wait(10)
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the first one fails")


def test_a_quarter_of_the_threads_wait_and_the_others_are_sent_away_at_once() -> None:
    api = ApiHarness(real_time(), threads=4)
    slow = Slow(api)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(api.make, key="k", valid=False)
        assert slow.inside.wait(10)
        others = [pool.submit(api.make, key="k", valid=False) for _ in range(3)]
        refused = [answer_of(future) for future in others if _done_soon(future)]
        while len(refused) < 2:
            refused = [answer_of(future) for future in others if _done_soon(future)]
        slow.go.set()
        answers = [future.result(10) for future in (first, *others)]
    assert sorted(seen.status for seen in answers) == [201, 201, 409, 409]
    assert len({seen.body for seen in answers if seen.status == 201}) == 1
    assert len(stored(api)) == 1


def _done_soon(future: Any) -> bool:
    try:
        future.result(0.02)
    except TimeoutError:
        return False
    return True


def answer_of(future: Any) -> Seen:
    seen: Seen = future.result()
    return seen


def test_a_waiter_runs_itself_when_the_first_failed() -> None:
    api = ApiHarness(real_time(), threads=4)
    slow = Slow(api)
    slow.failures = 1
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(api.make, key="k", valid=False)
        assert slow.inside.wait(10)
        second = pool.submit(api.make, key="k", valid=False)
        assert not _done_soon(second)
        slow.go.set()
        assert first.result(10).status == 500
        assert second.result(10).status == 201
    assert len(stored(api)) == 1


class TestFlights:
    """The table itself."""

    def test_a_wait_ends(self) -> None:
        flights = SingleFlight(4, wait_s=0.01)
        with (
            flights.acquire("k"),
            pytest.raises(IdempotencyInProgress) as caught,
            flights.acquire("k"),
        ):
            pass
        assert caught.value.retry_after_s == 1

    def test_too_few_threads_never_wait(self) -> None:
        flights = SingleFlight(3, wait_s=60)
        with flights.acquire("k"), pytest.raises(IdempotencyInProgress), flights.acquire("k"):
            pass

    def test_other_keys_are_free(self) -> None:
        flights = SingleFlight(1)
        with flights.acquire("a"), flights.acquire("b"):
            pass

    def test_nothing_is_left_behind_by_failures(self) -> None:
        flights = SingleFlight(4, wait_s=0.01)
        for _ in range(10):
            with pytest.raises(ZeroDivisionError), flights.acquire("k"):
                raise ZeroDivisionError
            with (
                flights.acquire("k"),
                pytest.raises(IdempotencyInProgress),
                flights.acquire("k"),
            ):
                pass
        assert flights._under_way == {}
        assert flights._free_seats == 1

    def test_a_request_that_waits_for_an_identical_one_says_so(self) -> None:
        waits = RecordedWaits()
        flights = SingleFlight(4, waits=waits)

        def follow() -> int:
            with flights.acquire("k"):
                return waits.waiting

        with flights.acquire("k"):
            following = waits.start(follow)
            waits.expect()
        assert following.result(10) == 0
        assert flights._under_way == {}

    @pytest.mark.parametrize("comes", [False, True])
    def test_an_interrupted_wait_lets_the_next_in(self, comes: bool) -> None:
        waits, holding = RecordedWaits(), ExitStack()
        flights = SingleFlight(8, waits=waits)
        holding.enter_context(flights.acquire("k"))

        def follow() -> int:
            with flights.acquire("k"):
                return waits.waiting

        def be_interrupted() -> None:
            waits.expect()  # this one
            following.append(waits.start(follow))
            waits.expect()
            if comes:
                holding.close()  # the turn comes at the last moment
            raise KeyboardInterrupt

        following: list[Future[int]] = []
        assert type(waits.start(follow, be_interrupted).exception(10)) is KeyboardInterrupt
        holding.close()
        assert following[0].result(10) == 0
        assert flights._under_way == {}
        assert flights._free_seats == 2
