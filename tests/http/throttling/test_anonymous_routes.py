"""Routes that a stranger may call: one closes no other (contract §9)."""

from __future__ import annotations

import base64

import pytest

from payments_core.limiters.policies import ROUTE_POLICIES
from payments_core.limiters.port import PolicyCheck
from payments_core_http.routes import ROUTES
from payments_core_http.routing import Route
from tests.http.throttling.test_throttling import Gate, details

WITHOUT_SECRET = {"app_id", "basic_app_id", "sdk_key"}
CREATES_NOTHING = {"/sdk/v1/verify-transfer"}
ANONYMOUS = [route for route in ROUTES if route.credential in WITHOUT_SECRET]
CREATING = [
    route for route in ANONYMOUS if route.method != "GET" and route.path not in CREATES_NOTHING
]


def show(route: Route) -> str:
    return f"{route.method} {route.path}"


def test_there_are_such_routes() -> None:
    assert len(CREATING) >= 5


def test_no_two_of_them_share_what_an_environment_may_create() -> None:
    rules = [route.creation_policy for route in CREATING]
    assert None not in rules
    assert len(set(rules)) == len(rules)
    assert set(rules) == {route.creation_policy for route in ROUTES} - {None}


@pytest.mark.parametrize("route", ANONYMOUS, ids=show)
def test_none_counts_its_requests_for_an_environment_or_an_app(route: Route) -> None:
    rule = route.policy
    assert rule is None or ROUTE_POLICIES[rule].subject in ("address", "address_and_app")


@pytest.mark.parametrize("route", CREATING, ids=show)
def test_an_address_may_send_no_more_to_one_than_to_the_strictest(route: Route) -> None:
    strictest = min(ROUTE_POLICIES[str(one.policy)].limit for one in CREATING)
    assert ROUTE_POLICIES[str(route.policy)].limit == strictest
    assert route.creation_policy is not None
    of_environment = ROUTE_POLICIES[route.creation_policy]
    assert (of_environment.subject, of_environment.kind) == ("environment", "created")


@pytest.mark.parametrize("closed", CREATING, ids=show)
def test_one_that_is_used_up_closes_no_other(closed: Route) -> None:
    """Each is asked with a body that it refuses: only a rate policy answers 429."""
    gate = Gate({"legacy_quotes": 100, "legacy_settlements": 100})
    _, key = gate.service.tenants.create_key(gate.partition, "publishable", "sdk")
    environment = gate.service.tenants.set_rate_limits(
        gate.partition, {str(closed.creation_policy): 1}
    )
    used = f"{closed.creation_policy}:{environment.id}"
    throttle_policy = ROUTE_POLICIES[str(closed.creation_policy)]
    gate.limiter.check([PolicyCheck(used, 1, throttle_policy.window_ms)], gate.clock.now())
    app_id = "Basic " + base64.b64encode(gate.app_row.id.encode()).decode()
    refused = []
    for route in CREATING:
        seen = gate.send(
            "POST",
            route.path.replace("{appId}", gate.app_row.id),
            auth=app_id if route.credential == "basic_app_id" else None,
            body={},
            headers={"x-sdk-key": key} if route.credential == "sdk_key" else {},
        )
        if seen.status == 429:
            refused.append(route)
            if "error" in seen.json and isinstance(seen.json["error"], dict):
                assert details(seen)["rule"] == closed.creation_policy
    assert refused == [closed]
