"""What an older contract may say of an object: names, fields, words and defaults that differ.

A change works on an object's own fields, in place. `render` makes a newer answer or payload older,
`read` an older body newer, and `describe` a newer JSON Schema older; `render` and `describe` also
make the examples of older documents. `describe` raises KeyError for what the schema does not have,
and ValueError for a name that another field has. An older body or a stored payload may lack any
field, and whether a body has fields that its contract does not know is checked before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import attrs

Fields = dict[str, Any]
MakeValue = Callable[[Mapping[str, Any]], Any]
"""The value of a field, from the other fields of its object."""


class Change(Protocol):
    """One difference of an object between a contract and the next newer one. All are pure."""

    def render(self, fields: Fields) -> None:
        """Make an object of the newer contract older."""

    def read(self, fields: Fields) -> None:
        """Make a body of the older contract newer."""

    def describe(self, schema: Fields) -> None:
        """Make the schema of the newer contract older."""


@attrs.frozen
class Renamed:
    """A field that had another name."""

    older: str
    newer: str

    def render(self, fields: Fields) -> None:
        """The older name, in the same place."""
        _rename(fields, self.newer, self.older)

    def read(self, fields: Fields) -> None:
        """The newer name."""
        _rename(fields, self.older, self.newer)

    def describe(self, schema: Fields) -> None:
        """The older name, also among the required ones."""
        if self.newer not in schema["properties"]:
            raise KeyError(self.newer)
        _require_free(schema, self.older)
        _rename(schema["properties"], self.newer, self.older)
        if "required" in schema:
            schema["required"] = [
                self.older if name == self.newer else name for name in schema["required"]
            ]


@attrs.frozen
class Added:
    """A field that the older contract does not have.

    For a body, `make` says what an older request means by its silence.
    """

    name: str
    make: MakeValue | None = None

    def render(self, fields: Fields) -> None:
        """Without the field."""
        fields.pop(self.name, None)

    def read(self, fields: Fields) -> None:
        """The value that an older request means."""
        if self.make is not None:
            fields[self.name] = self.make(fields)

    def describe(self, schema: Fields) -> None:
        """Without the field."""
        del schema["properties"][self.name]
        if self.name in schema.get("required", ()):
            schema["required"] = [name for name in schema["required"] if name != self.name]


@attrs.frozen
class Removed:
    """A field that only the older contract has: in answers made by `make`, in bodies ignored.

    `schema` is its JSON Schema, with a description.
    """

    name: str
    schema: Mapping[str, Any] = attrs.field(hash=False)
    make: MakeValue
    required: bool = True

    def render(self, fields: Fields) -> None:
        """With the field; an older payload that was stored with it keeps it."""
        if self.name not in fields:
            fields[self.name] = self.make(fields)

    def read(self, fields: Fields) -> None:
        """Without the field."""
        fields.pop(self.name, None)

    def describe(self, schema: Fields) -> None:
        """With the field."""
        _require_free(schema, self.name)
        schema["properties"][self.name] = dict(self.schema)
        if self.required:
            schema["required"] = [*schema.get("required", ()), self.name]


@attrs.frozen
class Reworded:
    """A field some of whose words were others, such as a status.

    `words` has the older word of each newer one. Two newer words may have been one, except in a
    body, where an older word means a single newer one. Raises ValueError for a word that is both
    an older and a newer one.
    """

    name: str
    words: Mapping[str, str] = attrs.field(hash=False)

    def __attrs_post_init__(self) -> None:
        if both := self.words.keys() & set(self.words.values()):
            raise ValueError(f"{self.name}: {min(both)} is both an older and a newer word")

    def render(self, fields: Fields) -> None:
        """The older word."""
        self._replace(fields, self.words)

    def read(self, fields: Fields) -> None:
        """The newer word."""
        self._replace(fields, {older: newer for newer, older in self.words.items()})

    def describe(self, schema: Fields) -> None:
        """The older words, each once."""
        field = schema["properties"][self.name]
        if unknown := self.words.keys() - set(field["enum"]):
            raise KeyError(min(unknown))
        words = (self.words.get(word, word) for word in field["enum"])
        schema["properties"][self.name] = {**field, "enum": list(dict.fromkeys(words))}

    def _replace(self, fields: Fields, words: Mapping[str, str]) -> None:
        word = fields.get(self.name)
        if isinstance(word, str):
            fields[self.name] = words.get(word, word)


@attrs.frozen
class DefaultChanged:
    """A field of a body that had another default, which is neither null nor absent."""

    name: str
    older: Any

    def render(self, fields: Fields) -> None:
        """Nothing: answers have no defaults."""

    def read(self, fields: Fields) -> None:
        """The older default for a field that was left out."""
        if fields.get(self.name) is None:
            fields[self.name] = self.older

    def describe(self, schema: Fields) -> None:
        """The older default."""
        field = schema["properties"][self.name]
        schema["properties"][self.name] = {**field, "default": self.older}


def _require_free(schema: Fields, name: str) -> None:
    if name in schema["properties"]:
        raise ValueError(f"the newer contract has another field {name}")


def _rename(fields: Fields, old: str, new: str) -> None:
    if old in fields:
        renamed = {new if name == old else name: value for name, value in fields.items()}
        fields.clear()
        fields.update(renamed)
