"""`GET /v2/console/events?after=`: each event once, by cursors that outlive keys."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.console import Console


@pytest.fixture
def console() -> Console:
    return Console()


def poll(console: Console, after: str, **query: str) -> Any:
    given = "&".join(f"{name}={value}" for name, value in {"after": after, **query}.items())
    seen = console.get(f"events?{given}", auth=console.api.basic(console.whole))
    assert seen.status == 200, seen.body
    return seen.json


def test_the_events_come_once_and_the_place_is_kept(console: Console) -> None:
    first = poll(console, "start")
    assert set(first) == {"data", "limit", "hasNextPage", "nextCursor"}
    before = len(first["data"])
    made = [console.happen() for _ in range(3)]
    console.run()
    page = poll(console, first["nextCursor"], limit="2")
    assert (len(page["data"]), page["hasNextPage"], page["limit"]) == (2, True, 2)
    last = poll(console, page["nextCursor"], limit="2")
    assert (len(last["data"]), last["hasNextPage"]) == (1, False)
    read = [*page["data"], *last["data"]]
    assert {event["id"] for event in read} == set(made)
    assert read[0] == console.get(f"events/{read[0]['id']}").json
    nothing = poll(console, last["nextCursor"])
    assert (nothing["data"], nothing["hasNextPage"]) == ([], False)
    assert nothing["nextCursor"] == last["nextCursor"]
    assert len(poll(console, "start")["data"]) == before + 3


def test_the_end_is_where_the_new_events_begin(console: Console) -> None:
    console.happen()
    console.run()
    end = poll(console, "end")
    assert (end["data"], end["hasNextPage"]) == ([], False)
    new = console.happen("account.updated")
    console.run()
    assert [event["id"] for event in poll(console, end["nextCursor"])["data"]] == [new]


def test_a_cursor_belongs_to_its_filters(console: Console) -> None:
    console.happen()
    wanted = console.happen("account.updated")
    console.run()
    page = poll(console, "start", name="account.updated")
    assert [event["id"] for event in page["data"]] == [wanted]
    console.happen()
    console.run()
    assert poll(console, page["nextCursor"], name="account.updated")["data"] == []
    refused = console.get(f"events?after={page['nextCursor']}")
    assert_refused(refused, "after", "is not a cursor of this list")


@pytest.mark.parametrize("after", ["", "now", "evt_" + "x" * 24])
def test_what_is_no_place_is_refused(console: Console, after: str) -> None:
    assert console.get(f"events?after={after}").code == "validation_error"


def test_cursors_of_the_two_orders_do_not_mix(console: Console) -> None:
    for _ in range(2):
        console.happen()
    console.run()
    older = console.get("events?limit=1").json["nextCursor"]
    assert console.get(f"events?after={older}").status == 400
    place = poll(console, "start")["nextCursor"]
    assert console.get(f"events?cursor={place}").status == 400


@pytest.mark.parametrize(
    "other", ["cursor=x", "createdAfter=2026-09-01T00:00:00Z", "createdBefore=2026-09-01T00:00:00Z"]
)
def test_a_place_stands_alone(console: Console, other: str) -> None:
    name = other.partition("=")[0]
    seen = console.get(f"events?after=start&{other}")
    assert_refused(seen, name, "cannot be given together with after")


def test_a_cursor_outlives_its_key(console: Console) -> None:
    place = poll(console, "start")["nextCursor"]
    new = console.happen()
    console.run()
    seen = console.get(f"events?after={place}")  # with the app's secret
    assert [event["id"] for event in seen.json["data"]] == [new]


def assert_refused(seen: Any, path: str, message: str) -> None:
    assert (seen.status, seen.code) == (400, "validation_error"), seen.body
    assert {"path": path, "message": message} in seen.json["error"]["details"]["fields"]
