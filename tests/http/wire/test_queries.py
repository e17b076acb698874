"""Query strings and list cursors."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core.errors import ValidationFailed
from payments_core_http.wire import cursors
from tests.http.api_harness import ApiHarness


def get(api: ApiHarness, query: str) -> Any:
    return api.call("GET", f"/v2/things?{query}")


@pytest.fixture
def full(api: ApiHarness) -> ApiHarness:
    for number in range(5):
        assert api.make({"name": "abcde"[number]}, key=str(number)).status == 201
    return api


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("colour=red", ["colour"]),
        ("limit=0", ["limit"]),
        ("limit=101", ["limit"]),
        ("limit=x&open=yes&a=1&b=2", ["limit", "open", "a", "b"]),
        ("limit=+5", ["limit"]),
        ("limit=1.0", ["limit"]),
        ("limit=", ["limit"]),
        ("limit=%EF%BC%91", ["limit"]),
        ("limit=" + "9" * 5_000, ["limit"]),
        ("limit=1&limit=2", ["limit"]),
        ("name=a%00", ["name"]),
        ("name=%ff", ["query"]),
        ("name=\xff", ["query"]),
        ("cursor=", ["cursor"]),
        ("cursor=nonsense", ["cursor"]),
        ("cursor=" + "A" * 2_001, ["cursor"]),
        ("cursor=%C3%A9", ["cursor"]),
        ("&".join(f"x{n}=1" for n in range(51)), ["query"]),
        ("=1", [""]),
        ("flag", ["flag"]),
    ],
)
def test_a_wrong_query_names_its_parameters(api: ApiHarness, query: str, paths: list[str]) -> None:
    seen = get(api, query)
    assert (seen.status, seen.code) == (400, "validation_error")
    assert list(seen.faults) == paths


def test_a_route_without_parameters_takes_none(api: ApiHarness) -> None:
    seen = api.call("GET", "/v2/partners/config?limit=1")
    assert list(seen.faults) == ["limit"]
    assert list(api.make(key="k").headers) and api.call("GET", "/v2/partners/config").status == 200


@pytest.mark.parametrize("place", ["name={}", "{}=1", "appSecret={}", "x=Basic%20{}"])
def test_a_credential_in_the_url_is_refused_and_not_repeated(api: ApiHarness, place: str) -> None:
    for secret in (
        api.secret,
        "pk_sandbox_" + "A" * 51,
        "cat_" + "A" * 40,
        "whsec_" + "A" * 43 + "=",
        api.payment_secret("payment_" + "A" * 24),
    ):
        seen = get(api, place.format(secret))
        assert (seen.status, list(seen.faults)) == (400, ["query"])
        assert secret.encode() not in seen.body


def test_a_credential_in_the_url_does_not_authenticate(api: ApiHarness) -> None:
    assert api.call("GET", f"/v2/things?authorization={api.secret}", auth=None).status == 401


def test_a_list_goes_on_where_it_ended(full: ApiHarness) -> None:
    names, cursor, pages = [], "", 0
    while cursor is not None:
        seen = get(full, "limit=2" + (f"&cursor={cursor}" if cursor else "")).json
        assert list(seen) == ["data", "limit", "hasNextPage", "nextCursor"]
        assert (seen["limit"], seen["hasNextPage"]) == (2, seen["nextCursor"] is not None)
        names += [item["name"] for item in seen["data"]]
        cursor, pages = seen["nextCursor"], pages + 1
    assert names == list("abcde") and pages == 3


def test_fifty_is_the_default(full: ApiHarness) -> None:
    seen = get(full, "").json
    assert (seen["limit"], len(seen["data"]), seen["nextCursor"]) == (50, 5, None)


def test_the_limit_may_change_on_the_way(full: ApiHarness) -> None:
    cursor = get(full, "limit=1").json["nextCursor"]
    assert len(get(full, f"limit=3&cursor={cursor}").json["data"]) == 3


def test_a_cursor_is_good_only_for_its_own_list(full: ApiHarness) -> None:
    cursor = get(full, "limit=1").json["nextCursor"]
    assert list(get(full, f"cursor={cursor}&open=true").faults) == ["cursor"]
    assert list(get(full, f"cursor={cursor}&name=a").faults) == ["cursor"]
    other = ApiHarness()
    assert list(get(other, f"cursor={cursor}").faults) == ["cursor"]


def test_every_changed_character_is_noticed(full: ApiHarness) -> None:
    cursor = get(full, "limit=1").json["nextCursor"]
    for index, character in enumerate(cursor):
        changed = cursor[:index] + ("A" if character != "A" else "B") + cursor[index + 1 :]
        assert list(get(full, f"cursor={changed}").faults) == ["cursor"]


def test_a_cursor_survives_a_new_master_key() -> None:
    old, new = KeyRing.generate(name="k1"), KeyRing.generate(name="k2")
    cursor = cursors.encode(KeyRing.parse(old), "scope", ("a", 7, None, "id"))
    assert cursors.decode(KeyRing.parse(f"{new} {old}"), "scope", cursor) == ("a", 7, None, "id")
    with pytest.raises(ValidationFailed):
        cursors.decode(KeyRing.parse(new), "scope", cursor)
