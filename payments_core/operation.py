"""Operations of the public resources: rows that lead to an operation of a part.

A row binds the authority of its resource, and checks the arguments of the caller; the part that
does the work checks nothing again.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from payments_core.parts import Parts
from payments_core.tenants.authorization import Authority
from payments_core.validation.arguments import check_arguments

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")


READING_VERBS = frozenset({"read", "list", "find", "is", "plan", "build"})
"""The first words of operations that change nothing, and leave no entry in the audit trail."""


class OpenResource:
    """Operations whose callers prove themselves by an argument."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def __init_subclass__(cls) -> None:
        for name, value in vars(cls).items():
            if inspect.isfunction(value) and not name.startswith("_"):
                value.__name__, value.__qualname__ = name, f"{cls.__name__}.{name}"
                value.__module__ = cls.__module__
                value.traced_as = _name_change(cls.__name__, name)  # type: ignore[attr-defined]

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
    signature = inspect.signature(operation)
    shown = [one for one in signature.parameters.values() if one.name != "authority"]
    ids = tuple(takewhile(lambda name: name.endswith("_id"), (one.name for one in shown[1:])))

    @wraps(operation)
    def call(resource: Any, /, *args: Any, **kwargs: Any) -> Any:
        authority = resource._authority
        operation = call.traced_as  # type: ignore[attr-defined]
        if operation is not None:
            authority = authority.trace_as(operation, _find_ids(ids, args, kwargs))
        return checked(find(resource._parts), authority, *args, **kwargs)

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


def _name_change(resource: str, operation: str) -> str | None:
    """The name of a change in the audit trail, such as `payments.refund`; None for a read."""
    if operation.partition("_")[0] in READING_VERBS:
        return None
    return f"{_CAPITAL.sub('_', resource).lower()}.{operation}"


def _find_ids(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[str, ...]:
    """The ids with which the arguments of a call begin."""
    given = (*args[: len(names)], *(kwargs.get(name) for name in names[len(args) :]))
    return tuple(id for id in given if isinstance(id, str))
