"""A limiter that does not answer, or breaks, lets nobody through; nothing else fails by it."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from tests.http.throttling.test_throttling import Gate, details


def test_health_routes_answer_all_the_same() -> None:
    gate = Gate()
    gate.limiter.down = True
    for path in ("/healthz", "/readyz"):
        seen = gate.send("GET", path, auth=None)
        assert (seen.status, "ratelimit-limit" in seen.headers) == (200, False)


def test_a_limiter_that_fails_lets_nobody_through() -> None:
    gate = Gate()
    gate.limiter.down = True
    seen = gate.send()
    found = details(seen)
    assert (found["reason"], found["remaining"], found["retryAfterSeconds"]) == (
        "rate_limiter_unavailable", 0, 1,
    )  # fmt: skip
    assert "rule" not in found
    message = seen.json["error"]["message"]
    assert message.startswith("The service cannot count requests") and "no limit" in message


def test_a_limiter_that_raises_anything_else_lets_nobody_through_either(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    check = gate.limiter.check

    def breaks(policy_checks: Any, now: int) -> NoReturn:
        raise RuntimeError("a fault of the adapter")

    monkeypatch.setattr(gate.limiter, "check", breaks)
    assert [details(gate.send())["reason"] for _ in range(3)] == [
        "rate_limiter_unavailable"
    ] * 3  # fmt: skip
    traced = [one for one in caplog.records if one.exc_info]
    assert len(traced) == 1 and "RuntimeError" in caplog.records[-1].getMessage()
    monkeypatch.setattr(gate.limiter, "check", check)
    assert gate.send().status == 200
    monkeypatch.setattr(gate.limiter, "check", breaks)
    gate.send()
    assert len([one for one in caplog.records if one.exc_info]) == 2


def test_a_path_that_is_not_there_is_reported_though_the_limiter_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate()
    check = gate.limiter.check

    def breaks_as_it_wanders(policy_checks: Any, now: int) -> Any:
        if [
            policy_check.cost
            for policy_check in policy_checks
            if policy_check.key.startswith("abuse")
        ] == [1]:
            raise RuntimeError("a fault of the adapter")
        return check(policy_checks, now)

    monkeypatch.setattr(gate.limiter, "check", breaks_as_it_wanders)
    assert gate.send("GET", "/nowhere").code == "route_not_found"


def test_the_first_policy_of_the_app_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    check = gate.limiter.check

    def fails_for_apps(policy_checks: Any, now: int) -> Any:
        gate.limiter.down = any(
            policy_check.key.startswith("general") for policy_check in policy_checks
        )
        return check(policy_checks, now)

    monkeypatch.setattr(gate.limiter, "check", fails_for_apps)
    found = details(gate.send())
    assert (found["rule"], found["limit"]) == ("general_minute", 500)
    assert found["reason"] == "rate_limiter_unavailable"
