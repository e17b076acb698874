"""Adapters by the scheme of a URL, found by entry points (`docs/how-to/adapters.md`).

Each port has a group of entry points; another distribution adds an adapter by declaring
`its_scheme = "its.module:open_url"` there. The ports' own `opening` modules say how theirs is
called.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any


class UnknownAdapter(ValueError):
    """No installed adapter serves this scheme."""

    def __init__(self, what: str, scheme: str, installed: Sequence[str], hint: str = "") -> None:
        super().__init__(
            f"no {what} for {scheme!r}; installed are {', '.join(installed) or 'none'}{hint}"
        )
        self.scheme = scheme
        self.installed = tuple(installed)


def scheme_of(url: str) -> str:
    """What stands before the first colon; empty where there is none, since the rest may be a
    secret in the wrong place."""
    scheme, colon, _ = url.partition(":")
    return scheme if colon else ""


def load_adapter(group: str, scheme: str, what: str, hint: str = "") -> Any:
    """The function that opens an adapter. `what` and `hint` are for the error's text.

    Raises UnknownAdapter for a scheme that no adapter serves, and ImportError where an adapter's
    driver is not installed.
    """
    found = entry_points(group=group)
    if scheme not in found.names:
        raise UnknownAdapter(what, scheme, sorted(found.names), hint)
    return found[scheme].load()
