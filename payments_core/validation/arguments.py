"""Checks the arguments of calls from outside, once: by the outermost call alone.

The service shows each resource guarded. Its parts hold one another unguarded, so an operation that
calls another, or that another calls, checks nothing again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache, wraps
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import attrs
from msgspec import UnsetType

from payments_core.errors import FieldError, ValidationFailed
from payments_core.validation.faults import InvalidValue, UnfitPosition
from payments_core.validation.readers import PYTHON
from payments_core.validation.values import Hook

T = TypeVar("T")
P = ParamSpec("P")


def guard(resource: T) -> T:
    """The resource for callers outside: each public operation checks its arguments first.

    A parameter is checked if its annotation has a rule of `fields.py`, lists its values, or is of
    plain texts, numbers, flags and classes. So an id that is not a text is refused by the
    argument's name, and an unknown text is not found. An input class must be given as an instance,
    whose fields have their own paths: `destination.account_id`. Only the list's index can check
    `after`, in the storage. Each operation raises ValidationFailed with every error.
    """
    guarded: Any = object.__new__(_guarded_class(cast(Hashable, type(resource))))
    shown = {name: value for name, value in vars(resource).items() if not name.startswith("_")}
    vars(guarded).update(shown, _resource=resource)
    return cast(T, guarded)


@cache
def _guarded_class(kind: Any) -> type:
    """A class of the same name and operations, whose instances have a `_resource`."""
    operations = {
        name: _check_first(operation, attrgetter("_resource"))
        for name, operation in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }
    described = {
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
        "__repr__": lambda self: f"<{kind.__name__} of a PaymentsService>",
    }
    return type(kind.__name__, (kind,), {**described, **operations})


def check_arguments(operation: Callable[P, T]) -> Callable[P, T]:
    """A method that checks its arguments as those of a guarded resource do."""
    return _check_first(operation, lambda receiver: receiver)


def check_fields(instance: Any) -> None:
    """Return if the fields of an attrs object have values of their kinds. Raises ValidationFailed.

    It is for `__attrs_post_init__` of what callers make before there is a service.
    """
    PYTHON.read(instance, type(instance))


def _check_first(operation: Callable[P, T], find_receiver: Callable[[Any], Any]) -> Callable[P, T]:
    @wraps(operation)
    def checked(*args: Any, **kwargs: Any) -> T:
        given = [find_receiver(args[0]), *args[1:]]
        found: list[FieldError] = []
        for place, name, hint, hook in _argument_hooks(operation):
            try:
                if name in kwargs:
                    kwargs[name] = hook(kwargs[name], hint)
                elif place < len(given):
                    given[place] = hook(given[place], hint)
            except InvalidValue as faults:
                found += _name_faults(faults, name, hint)
        if found:
            raise ValidationFailed(tuple(found))
        try:
            return operation(*given, **kwargs)
        except UnfitPosition:
            raise ValidationFailed.at(
                "after", "must be the `next` of a page of this list"
            ) from None

    return cast(Callable[P, T], checked)


@cache
def _argument_hooks(operation: Callable[..., Any]) -> Sequence[tuple[int, str, Any, Hook]]:
    """Place, name, annotation and hook of each parameter that is checked.

    They are made when all names are known.
    """
    hints = get_type_hints(operation, include_extras=True)
    return tuple(
        (place, name, hints[name], PYTHON.hook(hints[name]))
        for place, name in enumerate(inspect.signature(operation).parameters)
        if name in hints and is_checked(hints[name])
    )


def is_checked(hint: Any) -> bool:
    """Whether an argument with this annotation is checked."""
    origin: Any = get_origin(hint)
    if origin in (Union, UnionType, Sequence, Mapping):
        return all(map(is_checked, get_args(hint)))
    is_plain = hint in (str, int, bool, datetime, Decimal, NoneType, UnsetType)
    return is_plain or origin in (Annotated, Literal) or attrs.has(hint)


def _name_faults(faults: InvalidValue, name: str, hint: Any) -> Sequence[FieldError]:
    """The faults of an argument; those of an input class have paths of their own."""
    if attrs.has(hint) and faults.found[0].path:
        return faults.found
    return faults.nest_under(name)
