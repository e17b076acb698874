"""Operations of the public resources: rows that lead to an operation of a part.

A row binds the authority of its resource, and checks the arguments of the caller; the part that
does the work checks nothing again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from payments_core.parts import Parts
from payments_core.tenants.authorization import Authority
from payments_core.validation.arguments import check_arguments

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")


class OpenResource:
    """Operations whose callers prove themselves by an argument."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def __init_subclass__(cls) -> None:
        for name, value in vars(cls).items():
            if inspect.isfunction(value) and not name.startswith("_"):
                value.__name__, value.__qualname__ = name, f"{cls.__name__}.{name}"
                value.__module__ = cls.__module__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of a PaymentsService>"


class Resource(OpenResource):
    """Operations of one authority in its environment."""

    def __init__(self, parts: Parts, authority: Authority) -> None:
        super().__init__(parts)
        self._authority = authority

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._authority.partition}>"


if TYPE_CHECKING:

    class Operation(Generic[P, T]):
        """A row as a type checker sees it; at run time a row is a function."""

        @overload
        def __get__(self, resource: None, owner: type) -> Operation[P, T]: ...
        @overload
        def __get__(self, resource: OpenResource, owner: type) -> Callable[P, T]: ...
        def __get__(self, resource: OpenResource | None, owner: type) -> Any: ...


def bound(
    find: Callable[[Parts], S], operation: Callable[Concatenate[S, Authority, P], T]
) -> Operation[P, T]:
    """The operation of a part, with the authority of its resource."""
    checked = check_arguments(operation)

    @wraps(operation)
    def call(resource: Any, /, *args: Any, **kwargs: Any) -> Any:
        return checked(find(resource._parts), resource._authority, *args, **kwargs)

    signature = inspect.signature(operation)
    shown = [one for one in signature.parameters.values() if one.name != "authority"]
    call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    return cast("Operation[P, T]", call)


def opened(
    find: Callable[[Parts], S], operation: Callable[Concatenate[S, P], T]
) -> Operation[P, T]:
    """The operation of a part that has no authority yet."""
    checked = check_arguments(operation)

    @wraps(operation)
    def call(resource: Any, /, *args: Any, **kwargs: Any) -> Any:
        return checked(find(resource._parts), *args, **kwargs)

    return cast("Operation[P, T]", call)
