"""What counts when strangers create Payments, and what they cannot take from a shop's payers
(contract §9).
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from payments_core.limiters.port import Limiter, PolicyCheck
from payments_core_http.throttling import Throttle
from tests.http.api_harness import Seen
from tests.http.public_shop import BODY, ORIGIN, SETTINGS
from tests.http.throttling.test_throttling import Gate, details, rates


class ShopGate(Gate):
    """A gate whose app has its public checkout open, and payers at many addresses."""

    def __init__(
        self, by_rule: dict[str, int] | None = None, limiter: Limiter | None = None
    ) -> None:
        super().__init__(by_rule, limiter=limiter)
        assert self.send("PUT", "/v2/partners/payment-settings", body=SETTINGS).status == 200
        self.keys = count()

    def create(self, address: str, origin: str = ORIGIN, **more: Any) -> Seen:
        more = {"body": BODY, "key": f"k{next(self.keys)}", "auth": None, **more}
        path = f"/v2/public/apps/{self.app_row.id}/payments"
        headers = {"Origin": origin}
        return self.send("POST", path, headers=headers, environ={"REMOTE_ADDR": address}, **more)


def test_a_wrong_origin_at_many_addresses_keeps_no_payer_out() -> None:
    gate = ShopGate()
    refused = [
        gate.create(f"198.51.100.{address}", "https://evil.example").code
        for address in range(70)
        for _ in range(10)
    ]
    assert set(refused) == {"origin_not_allowed"}
    assert gate.create("203.0.113.50").status == 201


def test_what_was_made_counts_for_the_environment_and_nothing_else_does() -> None:
    gate = ShopGate({"public_creation_minute": 2})
    assert gate.create("198.51.100.1", body={"amount": 5}).code == "validation_error"
    assert (
        gate.create("198.51.100.2", body={**BODY, "amount": "0.01"}).code == "amount_out_of_range"
    )
    assert gate.create("198.51.100.3", key=None).code == "idempotency_key_required"
    first = gate.create("198.51.100.4", key="again")
    assert (first.status, rates(first)[:2]) == (201, ("2", "1"))
    again = gate.create("198.51.100.5", key="again")
    assert again.headers["idempotent-replayed"] == "true"
    assert gate.create("198.51.100.6").status == 201
    seen = gate.create("198.51.100.7")
    found = details(seen)
    assert (found["rule"], found["limit"], found["reason"]) == (
        "public_creation_minute", 2, "rate_limit_exceeded",
    )  # fmt: skip
    assert rates(seen)[:2] == ("2", "0")
    gate.clock.advance(found["retryAfterSeconds"])
    assert gate.create("198.51.100.8").status == 201


def test_creations_use_nothing_of_the_partners_quota_nor_the_partner_of_theirs() -> None:
    gate = ShopGate({"sensitive_minute": 2, "partner_app_minute": 3})
    for address in range(5):
        assert gate.create(f"198.51.100.{address}").status == 201
    assert gate.write().status != 429
    assert gate.write().code == "rate_limited"
    assert gate.create("203.0.113.50").status == 201


def test_six_hundred_a_minute_by_default_and_an_environment_may_set_its_own() -> None:
    gate = ShopGate()
    gate.service.tenants.set_rate_limits(gate.partition, {"public_creation_minute": 1})
    assert gate.create("198.51.100.1").status == 201
    assert details(gate.create("198.51.100.2"))["limit"] == 1
    gate.service.tenants.set_rate_limits(gate.partition, {})
    assert gate.create("198.51.100.3").status == 201
    for _ in range(598):
        gate.limiter.check(
            [PolicyCheck(f"public_creation_minute:{gate.partition}", 600, 60_000)],
            gate.clock.real_now(),
        )
    assert details(gate.create("198.51.100.4"))["limit"] == 600


@pytest.mark.parametrize(
    ("cost", "body", "code"),
    [(1, BODY, "rate_limited"), (-1, {**BODY, "amount": "0.01"}, "amount_out_of_range")],
)
def test_a_limiter_that_fails_to_count_admits_nobody_and_to_give_back_changes_no_answer(
    monkeypatch: pytest.MonkeyPatch, cost: int, body: Any, code: str
) -> None:
    gate = ShopGate()
    check = gate.limiter.check

    def fails_at_that_cost(policy_checks: Any, now: int) -> Any:
        gate.limiter.down = any(
            policy_check.key.startswith("public_creation_minute") and policy_check.cost == cost
            for policy_check in policy_checks
        )
        return check(policy_checks, now)

    monkeypatch.setattr(gate.limiter, "check", fails_at_that_cost)
    assert gate.create("198.51.100.1", body=body).code == code


def test_requests_of_one_moment_do_not_pass_the_limit_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them has looked before any of them has made its Payment."""
    gate = ShopGate({"public_creation_minute": 2})
    meeting = threading.Barrier(6)
    look = Throttle.check_creations

    def look_and_meet(*given: Any) -> None:
        look(*given)
        meeting.wait(30)

    monkeypatch.setattr(Throttle, "check_creations", look_and_meet)
    with ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(gate.create, f"198.51.100.{number}") for number in range(6)]
        seen = sorted(one.result().status for one in waiting)
    assert seen == [201] * 2 + [429] * 4


def test_a_refused_creation_is_given_back_in_the_window_in_which_it_counted() -> None:
    """A window may end between two readings of a clock that does not stand."""
    gate = ShopGate({"public_creation_minute": 1})
    at: list[tuple[int, int]] = []
    check = gate.limiter.check

    def note(policy_checks: Any, now: int) -> Any:
        at.extend(
            (one.cost, now) for one in policy_checks if one.key.startswith("public_creation_minute")
        )
        return check(policy_checks, now)

    stands = gate.clock.real_now

    def runs() -> int:
        gate.clock.advance(30)
        return stands()

    gate.limiter.check = note  # type: ignore[method-assign]
    gate.clock.real_now = runs  # type: ignore[method-assign]
    body = {**BODY, "amount": "0.01"}
    assert gate.create("198.51.100.1", body=body).code == "amount_out_of_range"
    counted = dict(at)
    assert counted[1] == counted[-1]


class TestNetworksOfIPv6:
    """A /64 counts as one address; a /48 has eight times as much (contract §9)."""

    def test_addresses_of_one_48_create_eighty_payments_a_minute(self) -> None:
        gate = ShopGate()
        seen = [
            gate.create(f"2001:db8:7:{network:x}::1").status
            for network in range(20)
            for _ in range(10)
        ]
        assert seen.count(201) == 80
        assert details(gate.create("2001:db8:7:ff::1"))["rule"] == "public_creation"
        assert gate.create("2001:db8:8::1").status == 201

    def test_a_48_may_send_eight_times_as_much_as_an_address(self) -> None:
        gate = Gate({"ip_minute": 2})

        def send(network: int) -> Seen:
            return gate.send(environ={"REMOTE_ADDR": f"2001:db8:7:{network:x}::1"})

        assert rates(send(0))[:2] == ("2", "1")
        assert [send(0).status, send(0).status] == [200, 429]
        assert [send(network).status for network in range(1, 14)] == [200] * 13
        seen = send(15)
        assert ("rule" in details(seen), rates(seen)[:2]) == (False, ("16", "0"))
        assert gate.send(environ={"REMOTE_ADDR": "2001:db8:8::1"}).status == 200

    def test_links_are_looked_up_from_a_48_eight_times_as_often(self) -> None:
        gate = Gate({"payment_link": 1})
        seen = [
            gate.send(
                "POST", "/v2/public/payment-links/unknown/exchange", auth=None,
                environ={"REMOTE_ADDR": f"2001:db8:7:{network:x}::1"},
            ).status
            for network in range(10)
        ]  # fmt: skip
        assert seen == [404] * 8 + [429] * 2

    def test_a_48_that_asks_for_many_unknown_paths_is_blocked(self) -> None:
        gate = Gate()

        def wander(network: int) -> Seen:
            environ = {"REMOTE_ADDR": f"2001:db8:7:{network:x}::1"}
            return gate.send("GET", "/wp-admin", environ=environ)

        assert {wander(network).code for network in range(161)} == {"route_not_found"}
        assert details(wander(4000))["reason"] == "abuse_blocked"
        assert gate.send(environ={"REMOTE_ADDR": "2001:db8:8::1"}).status == 200
