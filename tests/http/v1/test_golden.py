"""Every route of the legacy interface answers as it is written in `tests/vectors/v1`."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.openapi.error_responses import errors_of
from payments_core_http.v1.routes import ROUTES
from tests.http.checkout import Checkout
from tests.http.v1.golden import Player, read_files

FILES = read_files()


@pytest.mark.parametrize("file", FILES.values(), ids=FILES.keys())
def test_each_exchange_is_as_it_is_written(file: Any) -> None:
    player = Player(Checkout(MemoryStorage()).api)
    for exchange in file["exchanges"]:
        player.play(exchange)


def test_every_route_has_a_file() -> None:
    assert {f"/sdk/v1/{name}" for name in FILES} == {route.path for route in ROUTES}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_file_has_every_error_that_is_the_routes_own_and_a_success(route: Any) -> None:
    exchanges = FILES[route.path.removeprefix("/sdk/v1/")]["exchanges"]
    mine = [it for it in exchanges if it["method"] == route.method]
    own = {error.code for error in route.errors}
    if route.credential != "none":
        own |= {"unauthorized", "entitlement_required"}
    if route.credential == "server_key":
        own |= {"insufficient_permissions"}
    if route.method != "GET":
        own |= {"invalid_json"}
    own |= {"validation_error"} if route.name != "GET /sdk/v1/supported-chains" else set()
    written = {it["response"].get("code") for it in mine if "response" in it}
    assert written == {None, *own}
    assert own <= {kind.code for kinds in errors_of(route).values() for kind in kinds}
