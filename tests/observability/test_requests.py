"""The access log: one line for each request, with what operators need and nothing else."""

from __future__ import annotations

import logging

import pytest

from payments_core.limiters.memory import MemoryLimiter
from payments_core_http.observability.requests import NOOP_OBSERVER
from payments_core_http.throttling import Throttle
from tests.http.api_harness import ApiHarness
from tests.observability.asking import observed
from tests.observability.listening import Log, logging_as_before

ID = "payment_" + "Zz9_" * 6


def requests(log: Log) -> list[dict[str, object]]:
    return [one for one in log.records if one["logger"] == "payments_core_http.access"]


def test_a_request_is_one_line(lines: Log, api: ApiHarness) -> None:
    seen = api.call("GET", f"/v2/things/{ID}?unheard=of", headers={"X-Own": "theirs"})
    [line] = requests(lines)
    assert seen.status == 400
    assert isinstance(line.pop("durationMs"), float)
    line.pop("ts")
    assert line == {
        "level": "INFO",
        "logger": "payments_core_http.access",
        "message": "request",
        "requestId": seen.headers["x-request-id"],
        "method": "GET",
        "route": "/v2/things/{paymentId}",
        "status": 400,
        "environmentId": api.partition,
    }
    assert ID not in lines.text
    assert "unheard" not in lines.text
    assert "theirs" not in lines.text


@pytest.mark.parametrize(
    ("method", "target", "reported"),
    [
        ("GET", "/nowhere/at/all", ("GET", "no route", 404)),
        ("BREW", "/v2/things", ("_OTHER", "/v2/things", 405)),
        ("OPTIONS", "/v2/things", ("OPTIONS", "/v2/things", 204)),
        ("HEAD", "/v2/partners/config", ("HEAD", "/v2/partners/config", 200)),
        ("GET", "/v2/burst", ("GET", "/v2/burst", 500)),
    ],
)
def test_a_request_is_logged_by_its_route(
    lines: Log, api: ApiHarness, method: str, target: str, reported: tuple[str, str, int]
) -> None:
    api.call(method, target, valid=False)
    [line] = requests(lines)
    assert (line["method"], line["route"], line["status"]) == reported


def test_a_replay_is_logged(lines: Log, api: ApiHarness) -> None:
    api.make()
    api.make()
    assert [line.get("replayed", False) for line in requests(lines)] == [False, True]


def test_a_refused_rate_is_logged(lines: Log) -> None:
    api = observed(NOOP_OBSERVER, Throttle(MemoryLimiter()))
    for _ in range(25):
        api.call("GET", "/nowhere")
    reported = [line.get("limited") for line in requests(lines)]
    assert reported[0] is None
    assert reported[-1] == "abuse_blocked"


def test_health_routes_are_asked_too_often_to_be_logged() -> None:
    with logging_as_before():
        log = Log("json", level="INFO")
        api = ApiHarness()
        api.call("GET", "/healthz", auth=None)
        api.call("GET", "/readyz", auth=None)
        assert requests(log) == []


def test_without_the_level_nothing_is_written(api: ApiHarness) -> None:
    with logging_as_before():
        log = Log("json", level="WARNING")
        api.call("GET", "/v2/partners/config")
        assert log.text == ""
        assert not logging.getLogger("payments_core_http.access").isEnabledFor(logging.INFO)
