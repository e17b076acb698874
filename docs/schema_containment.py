"""Whether one JSON Schema allows all that another allows, as far as this can be decided.

It knows the keywords that our own documents use; if it cannot decide, it says that it does not
fit, so that a person looks at an unforeseen change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from payments_core_http.openapi.conventions import Schema, resolved

_LEAST = ("minLength", "minItems", "minimum", "minProperties")
_MOST = ("maxLength", "maxItems", "maximum", "maxProperties")
_SAME = ("pattern", "format")
_BRANCHES = ("oneOf", "anyOf")
_HOLDING = {*_BRANCHES, "$ref", "properties", "items", "additionalProperties", "propertyNames"}
"""The keywords of a schema that contains others."""


@attrs.frozen
class Misfit:
    """The place of a value of the inner schema that would not fit the outer one, and why."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path or 'the value'} {self.why}"


@attrs.define
class Containment:
    """Compares schemas of two documents, whose references each follows in its own.

    With `responses`, a field that the inner schema no longer names is a misfit too: its readers
    would miss it.
    """

    inner_document: Mapping[str, Any]
    outer_document: Mapping[str, Any]
    responses: bool
    _underway: set[tuple[str, str]] = attrs.field(init=False, factory=set)
    _fitting: set[tuple[str, str]] = attrs.field(init=False, factory=set)
    _assumed: int = attrs.field(init=False, default=0)

    def misfits(self, inner: Schema, outer: Schema, path: str = "") -> list[Misfit]:
        """Why a value of `inner` might not fit `outer`; empty if all fit."""
        if inner == outer and not inner.keys() & _HOLDING:
            return []  # as are most: they need no closer check
        pair = (inner.get("$ref", ""), outer.get("$ref", ""))
        if not all(pair):
            return self._compared_resolved(inner, outer, path)
        if pair in self._fitting:
            return []
        if pair in self._underway:
            self._assumed += 1
            return []  # a schema that contains itself: it is already compared
        self._underway.add(pair)
        before = self._assumed
        found = self._compared_resolved(inner, outer, path)
        self._underway.discard(pair)
        if not found and self._assumed == before:
            self._fitting.add(pair)  # wherever it is
        return found

    def _compared_resolved(self, inner: Schema, outer: Schema, path: str) -> list[Misfit]:
        return self._compared(
            resolved(inner, self.inner_document), resolved(outer, self.outer_document), path
        )

    def _compared(self, inner: Schema, outer: Schema, path: str) -> list[Misfit]:
        found: list[Misfit] = []
        rest, outer_branches = _divided(outer)
        for form in _forms(inner):
            found += self._plain(resolved(form, self.inner_document), rest, path)
            if outer_branches:
                # The nearest branch gives the reasons: of the same type, and with the fewest.
                near = [it for it in outer_branches if self._are_alike(form, it)] or outer_branches
                found += sorted((self.misfits(form, it, path) for it in near), key=len)[0]
        return list(dict.fromkeys(found))

    def _are_alike(self, inner: Schema, outer: Schema) -> bool:
        mine = _types_of(resolved(inner, self.inner_document))
        others = _types_of(resolved(outer, self.outer_document))
        return mine is None or others is None or bool(mine & others)

    def _plain(self, inner: Schema, outer: Schema, path: str) -> list[Misfit]:
        if any(name in inner for name in _BRANCHES):
            return self._compared(inner, outer, path)
        return [
            *self._types(inner, outer, path),
            *self._limits(inner, outer, path),
            *self._items(inner, outer, path),
            *self._fields(inner, outer, path),
        ]

    def _types(self, inner: Schema, outer: Schema, path: str) -> Iterator[Misfit]:
        mine, others = _types_of(inner), _types_of(outer)
        if others is not None and (mine is None or not mine <= others):
            more = "anything" if mine is None else ", ".join(sorted(mine - others))
            yield Misfit(path, f"may be of type {more}")
        values, allowed = _values_of(inner), _values_of(outer)
        if allowed is None:
            return
        if values is None:
            yield Misfit(path, f"is not only one of {', '.join(map(str, allowed))}")
        elif more_values := [value for value in values if value not in allowed]:
            yield Misfit(path, f"may be {', '.join(map(str, more_values))}")

    def _limits(self, inner: Schema, outer: Schema, path: str) -> Iterator[Misfit]:
        values = _values_of(inner)
        if values is not None:
            return  # they are few and compared one by one
        for name in _LEAST:
            if name in outer and inner.get(name, float("-inf")) < outer[name]:
                yield Misfit(path, f"has a {name} of {inner.get(name)}, not {outer[name]}")
        for name in _MOST:
            if name in outer and inner.get(name, float("inf")) > outer[name]:
                yield Misfit(path, f"has a {name} of {inner.get(name)}, not {outer[name]}")
        for name in _SAME:
            if name in outer and inner.get(name) != outer[name]:
                yield Misfit(path, f"has a {name} of {inner.get(name)}, not {outer[name]}")

    def _items(self, inner: Schema, outer: Schema, path: str) -> list[Misfit]:
        if "items" not in outer or not _may_be(inner, "array"):
            return []
        return self.misfits(inner.get("items", {}), outer["items"], f"{path}[]")

    def _fields(self, inner: Schema, outer: Schema, path: str) -> list[Misfit]:
        if not _may_be(inner, "object") or not _may_be(outer, "object"):
            return []
        mine, others = inner.get("properties", {}), outer.get("properties", {})
        found = [
            Misfit(_joined(path, name), "need not be there")
            for name in outer.get("required", ())
            if name not in inner.get("required", ())
        ]
        if self.responses:
            found += [Misfit(_joined(path, name), "is gone") for name in others if name not in mine]
        further = outer.get("additionalProperties", True)
        for name, schema in mine.items():
            where = _joined(path, name)
            if name in others:
                found += self.misfits(schema, others[name], where)
            elif further is False:
                found.append(Misfit(where, "is not known"))
        own = inner.get("additionalProperties", True)
        if further is False and own is not False and "properties" in outer:
            found.append(Misfit(path, "may have fields that are not known"))
        elif isinstance(further, dict) and own is not False:
            found += self.misfits({} if own is True else own, further, f"{path}.*")
        if "propertyNames" in outer:
            names = inner.get("propertyNames", {"type": "string"})
            found += self.misfits(names, outer["propertyNames"], f"a name in {path or 'it'}")
        return found


def _divided(schema: Schema) -> tuple[Schema, list[Schema]]:
    """The common part, and the branches of which one must match."""
    branches = [branch for name in _BRANCHES for branch in schema.get(name, ())]
    return {name: it for name, it in schema.items() if name not in _BRANCHES}, branches


def _forms(schema: Schema) -> list[Schema]:
    """The schema once for each of its branches, with the common part."""
    rest, branches = _divided(schema)
    rest.pop("discriminator", None)
    if not branches:
        return [schema]
    return [_both(rest, branch) if rest else branch for branch in branches]


def _both(rest: Schema, branch: Schema) -> Schema:
    """What must fit both; a branch next to other keywords says what is given and of which type."""
    if "$ref" in branch or not rest.keys() - {"description"}:
        return branch
    properties = {**rest.get("properties", {})}
    for name, narrower in branch.get("properties", {}).items():
        properties[name] = {**properties.get(name, {}), **narrower}
    required = [*rest.get("required", ()), *branch.get("required", ())]
    found = {**rest, **branch, "required": required}
    return {**found, "properties": properties} if properties else found


def _types_of(schema: Schema) -> set[str] | None:
    kinds = schema.get("type")
    if kinds is None:
        return None
    found = {kinds} if isinstance(kinds, str) else set(kinds)
    return found | {"integer"} if "number" in found else found


def _values_of(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values: list[Any] | None = schema.get("enum")
    return values


def _may_be(schema: Schema, kind: str) -> bool:
    kinds = _types_of(schema)
    return kinds is None or kind in kinds


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
