"""Whose turn it is: callers are distinguished by what a request says before it is looked up."""

from __future__ import annotations

import json
import urllib.request
from base64 import b64encode

import pytest

from payments_core_http import serving
from payments_core_http.authentication import ENVIRONMENT_KEY
from payments_core_http.serving import Callers, build_server
from tests.http.api_harness import ApiHarness
from tests.http.public_shop import BODY, ORIGIN, Shop

PEER = "192.0.2.1"


def basic(text: str) -> str:
    return "Basic " + b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"AUTHORIZATION": basic("app_1:sk_a")}, {"AUTHORIZATION": basic("app_1:sk_b")}),
        ({"AUTHORIZATION": basic("app_1:sk")}, {"AUTHORIZATION": basic("app_1:sk").lower()[:6]
                                               + " " + basic("app_1:sk")[6:]}),
        ({"AUTHORIZATION": "Bearer new"}, {"AUTHORIZATION": "Bearer newer"}),
        ({"X_FORWARDED_FOR": "10.0.0.1, 198.51.100.7"}, {"X_FORWARDED_FOR": "198.51.100.7"}),
        ({}, {"ACCEPT": "*/*"}),
    ],
)  # fmt: skip
def test_the_same_caller_has_one_turn(one: dict[str, str], other: dict[str, str]) -> None:
    assert Callers().name(one, PEER) == Callers().name(other, PEER)


def test_different_callers_have_their_own_turns() -> None:
    found = [
        Callers().name(headers, PEER)
        for headers in (
            {},
            {"X_FORWARDED_FOR": "198.51.100.7"},
            {"AUTHORIZATION": basic("app_1:sk")},
            {"AUTHORIZATION": basic("app_2:sk")},
        )
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("text", ["Basic", "Basic !", "Basic é\xff", " ", "Basic " + "A" * 9_999])
def test_any_header_names_somebody(text: str) -> None:
    assert Callers().name({"AUTHORIZATION": text}, PEER)


def test_tokens_of_an_environment_share_its_turn_once_they_are_known() -> None:
    callers = Callers()
    tokens = [{"AUTHORIZATION": f"Bearer {name}"} for name in ("one", "two", "theirs")]
    for headers, environment in zip(tokens, ["env_1", "env_1", "env_2"], strict=True):
        callers.learn(headers, {ENVIRONMENT_KEY: environment})
    one, two, theirs = (callers.name(headers, PEER) for headers in tokens)
    assert one == two
    assert len({one, theirs, callers.name({}, PEER)}) == 3
    assert callers.name({"AUTHORIZATION": "bearer  one "}, "192.0.2.2") == one


def test_a_bounded_number_of_tokens_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_MAX_TOKENS", 2)
    callers = Callers()
    for name in ("a", "b", "c"):
        callers.learn({"AUTHORIZATION": f"Bearer {name}"}, {ENVIRONMENT_KEY: "env_1"})
    assert callers.name({"AUTHORIZATION": "Bearer c"}, PEER) == "environment env_1"
    assert callers.name({"AUTHORIZATION": "Bearer a"}, PEER) == callers.name({}, PEER)


def test_the_server_learns_whose_a_token_is() -> None:
    api = ApiHarness()
    token = api.access_token(permissions=["payments:read"])
    with build_server(api.app, api.service.parts.ports.identifiers) as server:
        headers = {"Authorization": f"Bearer {token}"}
        asked = urllib.request.Request(f"{server.url}/v2/client/me/payments", headers=headers)
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 200
        named = server._connections.hosted.callers.name({"AUTHORIZATION": f"Bearer {token}"}, PEER)
    assert named.startswith("environment env_")


def test_a_token_that_has_opened_nothing_gets_no_turn_of_the_shop_that_it_names() -> None:
    shop = Shop()
    invented = {"Authorization": "Bearer invented"}
    with build_server(shop.app, shop.service.parts.ports.identifiers) as server:
        given = {**invented, "Origin": ORIGIN, "Idempotency-Key": "k"}
        given["Content-Type"] = "application/json"
        asked = urllib.request.Request(
            server.url + shop.path(), json.dumps(BODY).encode(), given, method="POST"
        )
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 201
        callers = server._connections.hosted.callers
        assert callers.name({"AUTHORIZATION": "Bearer invented"}, PEER) == callers.name({}, PEER)
