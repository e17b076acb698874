"""Whose turn it is: callers are told apart by what a request says before it is looked up."""

from __future__ import annotations

from base64 import b64encode

import pytest

from payments_core_http.server.turns import name_caller

PEER = "192.0.2.1"


def basic(text: str) -> str:
    return "Basic " + b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"AUTHORIZATION": basic("app_1:sk_a")}, {"AUTHORIZATION": basic("app_1:sk_b")}),
        ({"AUTHORIZATION": basic("app_1:sk")}, {"AUTHORIZATION": basic("app_1:sk").lower()[:6]
                                               + " " + basic("app_1:sk")[6:]}),
        ({"AUTHORIZATION": "Bearer t"}, {"AUTHORIZATION": "bearer  t "}),
        ({"X_FORWARDED_FOR": "10.0.0.1, 198.51.100.7"}, {"X_FORWARDED_FOR": "198.51.100.7"}),
        ({}, {"ACCEPT": "*/*"}),
    ],
)  # fmt: skip
def test_the_same_caller_has_one_turn(one: dict[str, str], other: dict[str, str]) -> None:
    assert name_caller(one, PEER) == name_caller(other, PEER)


def test_different_callers_have_their_own_turns() -> None:
    found = [
        name_caller(headers, PEER)
        for headers in (
            {},
            {"X_FORWARDED_FOR": "198.51.100.7"},
            {"AUTHORIZATION": basic("app_1:sk")},
            {"AUTHORIZATION": basic("app_2:sk")},
            {"AUTHORIZATION": "Bearer app_1"},
            {"AUTHORIZATION": "Bearer other"},
        )
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("text", ["Basic", "Basic !", "Basic é\xff", " ", "Basic " + "A" * 9_999])
def test_any_header_names_somebody(text: str) -> None:
    assert name_caller({"AUTHORIZATION": text}, PEER)
