"""Changed copies of frozen objects, for a quarter of what `attrs.evolve` costs, or less.

`attrs.evolve` reads each field by its name and passes all of them to `__init__`. A record has up to
61 fields, and a Payment and all that belongs to it are changed 175 times on their way. Where an
object keeps its fields in a dictionary (`slots=False`, as each Record does), the dictionary is
copied instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

__all__ = ["evolve"]

if TYPE_CHECKING:
    from attrs import evolve  # the fields' names and types are verified as for this
else:
    T = TypeVar("T")

    @attrs.frozen
    class _Shape:
        """What a copy of a class needs: `converters` of its fields, and `finish` as its last step.

        `is_copied` says that the fields are all that its dictionary has, and that its constructor
        only sets and converts them. An object of another class is left to `attrs.evolve`.
        """

        is_copied: bool
        converters: Mapping[str, Callable[[Any], Any]]
        finish: Callable[[Any], None] | None

        @classmethod
        def of(cls, kind: type) -> _Shape:
            fields = attrs.fields(kind)
            members = [member for base in kind.__mro__ for member in vars(base).items()]
            return cls(
                kind.__new__ is object.__new__
                and not any(name == "__slots__" and value for name, value in members)
                and not any(isinstance(value, cached_property) for _, value in members)
                and all(_is_plain(field) for field in fields),
                {field.name: field.converter for field in fields if field.converter},
                getattr(kind, "__attrs_post_init__", None),
            )

    def _is_plain(field: attrs.Attribute) -> bool:
        return (
            field.init and not field.validator and not isinstance(field.converter, attrs.Converter)
        )

    _shapes: dict[type, _Shape] = {}
    _new = object.__new__

    def evolve(instance: T, /, **changes: Any) -> T:
        """The object with other values of some fields. Raises TypeError for an unknown field."""
        kind = type(instance)
        shape = _shapes.get(kind)
        if shape is None:
            shape = _shapes[kind] = _Shape.of(kind)
        if not shape.is_copied:
            return attrs.evolve(instance, **changes)
        if converters := shape.converters:
            for name, value in changes.items():
                if name in converters:
                    changes[name] = converters[name](value)  # no key is added
        copy = _new(kind)
        before, after = instance.__dict__, copy.__dict__
        after.update(before)
        after.update(changes)
        if len(after) != len(before):
            raise TypeError(
                f"a {kind.__name__} has no field {sorted(after.keys() - before.keys())}"
            )
        if shape.finish is not None:
            shape.finish(copy)
        return copy
