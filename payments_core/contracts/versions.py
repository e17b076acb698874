"""The dated contracts that a deployment serves (interface "Versioning")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.contracts.changes import Change

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Changes = Mapping[str, tuple[Change, ...]]
"""What differs, by the name of an object in the newest OpenAPI document, such as `Payment`."""


@attrs.frozen
class Contract:
    """A dated contract, by what differs from the next newer one: nothing in the newest.

    `changes` has the bodies, answers and payloads of events. The names of objects and of their
    unchanged fields are those of the next newer contract.
    """

    __repr__ = brief_repr

    date: str
    changes: Changes = attrs.field(factory=dict, hash=False)


CONTRACTS = (Contract("2026-09-09"),)
"""Every date that is served, oldest first."""

CURRENT_VERSION = CONTRACTS[-1].date


@attrs.frozen
class Versions:
    """The dated contracts of a deployment, oldest first. The core knows the newest alone.

    New environments are pinned to the newest. Raises ValueError for an empty tuple, for a text that
    is not a date, for any other order, and for a newest contract with changes.
    """

    __repr__ = brief_repr

    checked_by_class: ClassVar[bool] = True

    contracts: tuple[Contract, ...] = CONTRACTS
    supported: tuple[str, ...] = attrs.field(init=False)
    """The dates."""

    @supported.default
    def _list_dates(self) -> tuple[str, ...]:
        return tuple(contract.date for contract in self.contracts)

    def __attrs_post_init__(self) -> None:
        dates = self.supported
        if not dates or list(dates) != sorted(set(dates)) or not all(map(_DATE.fullmatch, dates)):
            raise ValueError("versions must be one or more dates, each once, oldest first")
        if self.contracts[-1].changes:
            raise ValueError("the newest version cannot differ from a newer one")

    @property
    def current(self) -> str:
        """The newest version."""
        return self.supported[-1]

    def changes_since(self, date: str) -> Changes:
        """All that differs between a date and the newest, the changes of newer dates first.

        A date that is served no more differs as the oldest that is; a later date than the newest,
        which a later release has stored, does not differ.
        """
        found: dict[str, tuple[Change, ...]] = {}
        for contract in reversed(self.contracts):
            if contract.date >= date:
                for name, changes in contract.changes.items():
                    found[name] = found.get(name, ()) + changes
        return found

    def render(self, name: str, fields: Mapping[str, Any], date: str) -> Mapping[str, Any]:
        """The fields of an object, such as an event's payload, in the contract of a date."""
        if date == self.current:
            return fields
        older = dict(fields)
        for change in self.changes_since(date).get(name, ()):
            change.render(older)
        return older
