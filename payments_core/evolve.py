"""Changed copies of frozen objects, for a quarter of what `attrs.evolve` costs, or less.

`attrs.evolve` reads each field by its name and passes all of them to `__init__`. A record has up to
61 fields, and a Payment and all that belongs to it are changed 175 times on their way. Where an
object keeps its fields in a dictionary (`slots=False`, as each Record does), the dictionary is
copied instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

        `is_copied` says that its dictionary has all fields, and that no validator sees them.
        """

        is_copied: bool
        converters: Mapping[str, Callable[[Any], Any]]
        finish: Callable[[Any], None] | None

        @classmethod
        def of(cls, kind: type) -> _Shape:
            fields = attrs.fields(kind)
            has_slots = any(base.__dict__.get("__slots__") for base in kind.__mro__)
            is_verified = any(field.validator for field in fields)
            return cls(
                not has_slots and not is_verified,
                {field.name: field.converter for field in fields if field.converter},
                getattr(kind, "__attrs_post_init__", None),
            )

    _shapes: dict[type, _Shape] = {}
    _new = object.__new__

    def evolve(instance: T, **changes: Any) -> T:
        """The object with other values of some fields. Raises TypeError for an unknown field."""
        kind = type(instance)
        shape = _shapes.get(kind)
        if shape is None:
            shape = _shapes[kind] = _Shape.of(kind)
        if not shape.is_copied:
            return attrs.evolve(instance, **changes)
        if shape.converters:
            for name in shape.converters.keys() & changes.keys():
                changes[name] = shape.converters[name](changes[name])
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
