"""The routes by resource, and the name of each operation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from payments_core_http.observability import health
from payments_core_http.routes import GENERATIONS, ROUTES
from payments_core_http.routing import Route

TITLE_OF = {
    "OWN": "With a client token: the own account",
    "PAYER": "With a client token: paying",
    "LEGACY_ACCOUNTS": "Legacy v1: Money Accounts",
    "LEGACY_CHAINS": "Legacy v1: chains and balances",
    "LEGACY_QUOTES": "Legacy v1: quotes",
}
"""The titles of tuples of routes whose names say too little."""

Resource = tuple[str, tuple[Route, ...]]

_READING_VERBS = ("read", "list", "check")


def list_resources() -> Iterable[Resource]:
    """The routes by resource: each tuple that a generation's `routes.py` gathers, and a title."""
    yield "Health", health.ROUTES
    named = {
        rows: TITLE_OF.get(name, name.replace("_", " ").capitalize())
        for tables in GENERATIONS
        for name, rows in vars(tables).items()
        if name.isupper() and name != "ROUTES"
    }
    if left := set(ROUTES).difference(*named):
        raise ValueError(f"in no resource's tuple: {[route.name for route in left]}")
    for rows in sorted(named, key=lambda rows: ROUTES.index(rows[0])):
        yield named[rows], rows


def group_by_resource(routes: Sequence[Route]) -> list[Resource]:
    """Group some routes by resource; those that no resource has are under `Others`."""
    wanted = set(routes)
    found = [
        (title, tuple(row for row in rows if row in wanted)) for title, rows in list_resources()
    ]
    known = {row for _, rows in found for row in rows}
    others = tuple(row for row in routes if row not in known)
    return [(title, rows) for title, rows in (*found, ("Others", others)) if rows]


def operation_id(route: Route) -> str:
    """The name of a route's operation: the row's own, or otherwise its handler's with its resource.

    `accounts.create` makes `createAccount`, `accounts.set_handle` makes `setAccountHandle`.
    """
    if route.operation is not None:
        return route.operation
    words = route.handler.__name__.strip("_").split("_")
    noun = "".join(map(str.capitalize, _singular(resource_name(route.handler)).split("_")))
    if route.method == "GET" and words[0] not in _READING_VERBS:
        words.insert(0, "read")
    rest = "".join(map(str.capitalize, words[1:]))
    if _singular(rest).lower() == noun.lower():
        return words[0] + rest
    return words[0] + noun + rest


def resource_name(defined: Any) -> str:
    """The folder of a resource of v2 in which a thing lives, or the file if there is only one."""
    folder, module = str(defined.__module__).split(".")[-2:]
    return module if folder == "v2" else folder


def _singular(noun: str) -> str:
    return noun.removesuffix("s")
