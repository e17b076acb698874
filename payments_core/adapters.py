"""Adapters by the scheme of a URL, found by entry points (`docs/how-to/adapters.md`).

Each port has a group of entry points; another distribution adds an adapter by declaring
`its_scheme = "its.module:open_url"` there. A loader (`storage_loader`,
`chains.loader`, `port_loader`) says how the function is called.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

import attrs

from payments_core.extras import naming_extra
from payments_core.plain_calls import find_awaited_methods, port_members

P = TypeVar("P")


class UnknownAdapter(ValueError):
    """No installed adapter serves this scheme."""

    def __init__(self, what: str, scheme: str, installed: Sequence[str], hint: str = "") -> None:
        super().__init__(
            f"no {what} for {scheme!r}; installed: {', '.join(installed) or 'none'}{hint}"
        )
        self.scheme = scheme
        self.installed: tuple[str, ...] = tuple(installed)


def scheme_of(url: str) -> str:
    """The text before the first colon; empty if there is no colon, since the rest may be a
    secret in the wrong place."""
    scheme, colon, _ = url.partition(":")
    return scheme if colon else ""


def load_adapter(group: str, scheme: str, what: str, hint: str = "") -> Any:
    """The function that opens an adapter. `what` and `hint` are for the error's text.

    Raises UnknownAdapter for a scheme that no adapter serves, and ImportError if an adapter's
    driver is not installed.
    """
    found = entry_points(group=group)
    if scheme not in found.names:
        raise UnknownAdapter(what, scheme, sorted(found.names), hint)

    def open_adapter(*args: Any, **options: Any) -> Any:
        with naming_extra(name):  # an adapter may import its driver only now
            return open_url(*args, **options)

    with naming_extra(name := f"the {what} for {scheme!r}"):
        open_url = found[scheme].load()
    return functools.update_wrapper(open_adapter, open_url)  # also for `keep_accepted`


def keep_accepted(function: Any, offered: Mapping[str, Any]) -> dict[str, Any]:
    """Those keyword arguments that a function takes: an adapter may need less than it can have."""
    taken = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in taken):
        return dict(offered)
    names = {one.name for one in taken if one.kind is not one.POSITIONAL_ONLY}
    return {name: value for name, value in offered.items() if name in names}


def require_port(opened: object, port: type[Any], scheme: str, what: str) -> None:
    """Refuse an opened adapter that lacks a method of its port: otherwise a request
    would fail later, or nobody would notice, if a service does without the port.

    An asynchronous method is refused too: nobody would await what it returns.
    Raises ValueError, which names the scheme and the wrong methods.
    """
    missing = [name for name in port_members(port) if not hasattr(opened, name)]
    if missing:
        kind = "nothing" if opened is None else f"a {type(opened).__name__}"
        raise ValueError(
            f"the {what} for {scheme!r} opens {kind}, which has no {', '.join(missing)}"
        )
    if awaited := find_awaited_methods(opened, port):
        raise ValueError(
            f"the {what} for {scheme!r} opens a {type(opened).__name__}, whose "
            f"{', '.join(awaited)} must be plain: nobody awaits them"
        )


@attrs.frozen
class Opener(Generic[P]):
    """Opens the adapters of one port; `group` is that of their entry points."""

    group: str
    port: type[Any]
    what: str

    def __call__(self, url: str, **more: Any) -> P:
        """The adapter that a URL names: by its scheme, or by what precedes a `+` in it.

        `more` is what the port's adapters may take besides the URL; each gets what it names.

        Raises UnknownAdapter for a scheme that no adapter serves, ImportError if an adapter's
        driver is not installed, ValueError if the adapter cannot read the URL or opens nothing of
        the port, and the adapter's own errors.
        """
        scheme = scheme_of(url).partition("+")[0]
        open_url = load_adapter(self.group, scheme, self.what)
        opened: P = open_url(url, **keep_accepted(open_url, more))
        require_port(opened, self.port, scheme, self.what)
        return opened
