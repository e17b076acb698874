"""Stored Payments of earlier builds in the present form."""

from __future__ import annotations

from heapq import merge

from payments_core.networks import pin_token
from payments_core.storage.records import Document


def join_option_ids(document: Document) -> Document:
    """Vault options and others had a list each. Ids sort by the time when they were made."""
    rest = {name: value for name, value in document.items() if name != "direct_option_ids"}
    lists = (document.get(name, ()) for name in ("option_ids", "direct_option_ids"))
    return {**rest, "option_ids": list(merge(*lists))}


def pin_tokens(document: Document) -> Document:
    """Assets were found by their symbols in a table of the code."""
    route = document.get("route")
    return pin_token({**document, "route": None if route is None else pin_token(route)})
