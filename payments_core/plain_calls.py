"""Callables that nobody awaits: refused if their call only makes something to await.

The call of a coroutine function or a generator function runs nothing of its body. What an embedding
program passes is refused where it is passed, functions by `require_plain_function` and objects by
`require_plain_methods`. A plain function may still return an awaitable: where nothing else uses the
result of a call, `call_plainly` or `notify_plainly` looks at it.
"""

from __future__ import annotations

import functools
import inspect
import logging
import types
from collections.abc import Callable, Hashable, Mapping
from typing import Any, ParamSpec, Protocol, cast

P = ParamSpec("P")

_KINDS = (
    inspect.iscoroutinefunction,
    inspect.isasyncgenfunction,
    inspect.isgeneratorfunction,
)

_log = logging.getLogger(__name__)


def require_plain_function(function: object, name: str) -> None:
    """Refuse a function, a partial or an object whose call would run nothing. Raises TypeError."""
    if not _is_plain(function):
        raise TypeError(
            f"{name} must be a plain function: an async function or a generator would not run; "
            f"start your event loop in it, such as with asyncio.run"
        )


def require_plain_methods(passed: object, what: str, *ports: type[Any]) -> None:
    """Refuse an object with a method or a property of these ports whose call would run nothing.

    Methods that it lacks are not looked at. Raises TypeError, which names the wrong ones.
    """
    if awaited := find_awaited_methods(passed, *ports):
        raise TypeError(
            f"the {what} is a {type(passed).__name__}, whose {', '.join(awaited)} must be plain: "
            f"nobody awaits them"
        )


def find_awaited_methods(passed: object, *ports: type[Any]) -> list[str]:
    """The methods and properties of these ports whose call would run nothing, by name."""
    own: Mapping[str, object] = getattr(passed, "__dict__", {})
    names, is_plain = _class_members(cast(Hashable, type(passed)), ports)
    asked = [name for name in names if name in own] if is_plain else names
    return [name for name in asked if not _is_plain(_function_of(passed, name))]


@functools.lru_cache(maxsize=256)
def _class_members(kind: Any, ports: tuple[type[Any], ...]) -> tuple[tuple[str, ...], bool]:
    """The names of the ports, and whether the class has only plain methods and properties of them.

    Cached, as a program's tests make a service each, of the same few classes.
    """
    names = tuple(sorted({name for port in ports for name in port_members(port)}))
    found = [inspect.getattr_static(kind, name, None) for name in names]
    if hasattr(kind, "__getattr__") or not all(
        one is None or isinstance(one, _SIMPLE) for one in found
    ):
        return names, False
    called = [one.fget if isinstance(one, property) else one for one in found]
    return names, all(map(_is_plain, called))


_SIMPLE = (types.FunctionType, property, int, str)
"""Attributes of a class whose use depends on nothing but the object's own dictionary."""


def port_members(port: type[Any]) -> list[str]:
    """The methods and properties of a protocol and of its bases."""
    names = {
        name
        for kind in port.__mro__
        if kind not in (Protocol, object) and getattr(kind, "_is_protocol", False)
        for name in vars(kind)
        if not name.startswith("_")
    }
    return sorted(names)


def require_plain_result(result: object, name: str) -> None:
    """Refuse an awaitable or a generator as the result of a call. Raises TypeError."""
    if reason := _find_reason(result):
        raise TypeError(f"{name} returned a {reason}, which nobody runs")


def call_plainly(name: str, function: Callable[P, object], *args: P.args, **more: P.kwargs) -> None:
    """Call a function whose result nobody uses. Raises TypeError as `require_plain_result`."""
    require_plain_result(function(*args, **more), name)


def notify_plainly(
    name: str, function: Callable[P, object], *args: P.args, **more: P.kwargs
) -> None:
    """Tell a function that something happened; log an awaitable or a generator as its result.

    Not raised: what has happened may be a commit, and its caller must get the answer.
    """
    if reason := _find_reason(function(*args, **more)):
        _log.error("%s returned a %s, which nobody runs", name, reason)


def _is_plain(function: object) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    called = getattr(type(function), "__call__", None)  # noqa: B004 - its kind matters
    return not any(is_kind(one) for is_kind in _KINDS for one in (function, called))


def _function_of(passed: object, name: str) -> object:
    """What a use of the name calls; a property is not read, as that may ask a server."""
    found = inspect.getattr_static(passed, name, None)
    if isinstance(found, property):
        return found.fget
    if isinstance(found, functools.cached_property):
        return found.func
    return getattr(passed, name, None)


def _find_reason(result: object) -> str | None:
    """The kind of a result that would have to be run; closed, as Python warns if it never ran."""
    if inspect.isgenerator(result) or inspect.iscoroutine(result):
        result.close()
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        return type(result).__name__
    return None
