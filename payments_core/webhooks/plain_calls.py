"""Callables whose result nobody uses: refused if their call only makes something to await.

The call of a coroutine function or a generator function runs nothing of its body.
"""

from __future__ import annotations

import functools
import inspect

_KINDS = (
    inspect.iscoroutinefunction,
    inspect.isasyncgenfunction,
    inspect.isgeneratorfunction,
)


def require_plain_function(function: object, name: str) -> None:
    """Refuse a function, a partial or an object whose call would run nothing. Raises TypeError."""
    while isinstance(function, functools.partial):
        function = function.func
    called = getattr(type(function), "__call__", None)  # noqa: B004 - its kind matters
    if any(is_kind(one) for is_kind in _KINDS for one in (function, called)):
        raise TypeError(
            f"{name} must be a plain function: an async function or a generator would not run; "
            f"start your event loop in it, such as with asyncio.run"
        )


def require_plain_result(result: object, name: str) -> None:
    """Refuse an awaitable or a generator as the result of a call. Raises TypeError."""
    if inspect.isgenerator(result) or inspect.iscoroutine(result):
        result.close()  # so that Python does not warn that it never ran
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise TypeError(f"{name} returned a {type(result).__name__}, which nobody runs")
