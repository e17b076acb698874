"""State machines as tables, and the one engine that steps them.

A row is an allowed transition. Anything without a row is refused; a table never lists refusals.
The diagrams and tables of the reference are printed from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import attrs
from msgspec import Meta

from payments_core.errors import InvalidState


@attrs.frozen
class Transition:
    """In state `source`, `trigger` leads to `target`; a source of None is the creation.

    `emits` names the event that commits with the change. `label` is added to the record's labels.
    `opens` says that a person must decide about the record from now on. `closes` says that a
    decision which the change carries out is settled: always, or unless other funds are held.
    """

    source: str | None
    trigger: str
    target: str
    emits: str | None = None
    label: str | None = None
    why: str = ""
    opens: bool = False
    closes: Literal["always", "unless_held"] | None = None


class StateMachine:
    """The transitions of one kind of record.

    `actions` has the caller's action for a trigger, if that is another word. Raises ValueError when
    two rows share a source and a trigger: an outcome must be certain.
    """

    def __init__(
        self,
        name: str,
        transitions: Iterable[Transition],
        *,
        terminal: Iterable[str],
        actions: Mapping[str, str] | None = None,
    ):
        self.name = name
        self.actions: Mapping[str, str] = actions or {}
        self.transitions: tuple[Transition, ...] = tuple(transitions)
        self.terminal: frozenset[str] = frozenset(terminal)
        self._table = {(row.source, row.trigger): row for row in self.transitions}
        if len(self._table) != len(self.transitions):
            raise ValueError(f"{name}: two rows share a source and a trigger")
        if unnamed := self.actions.keys() - self.triggers:
            raise ValueError(f"{name}: no row has the trigger {sorted(unnamed)}")
        if unknown := self.terminal - self.states:
            raise ValueError(f"{name}: no row leads to {sorted(unknown)}")

    @property
    def initial(self) -> frozenset[str]:
        """The states that a record may be created in."""
        return frozenset(row.target for row in self.transitions if row.source is None)

    @property
    def states(self) -> frozenset[str]:
        """Every state that a row names."""
        sources = {row.source for row in self.transitions if row.source is not None}
        return frozenset(sources | {row.target for row in self.transitions})

    @property
    def triggers(self) -> frozenset[str]:
        """Every trigger that a row names."""
        return frozenset(row.trigger for row in self.transitions)

    def step(self, state: str | None, trigger: str) -> Transition:
        """The row for `trigger` in `state`. Raises InvalidState if there is none."""
        row = self._table.get((state, trigger))
        if row is None:
            action = self.actions.get(trigger, trigger)
            raise InvalidState(resource=self.name, status=state or "new", action=action)
        return row

    def allows(self, state: str | None, trigger: str) -> bool:
        """Whether there is a row for `trigger` in `state`."""
        return (state, trigger) in self._table


def transitions_from(
    sources: Iterable[str],
    trigger: str,
    target: str | None,
    emits: str | None = None,
    label: str | None = None,
    why: str = "",
    opens: bool = False,
    closes: Literal["always", "unless_held"] | None = None,
) -> tuple[Transition, ...]:
    """One row for each of several sources; a target of None keeps each state."""
    return tuple(
        Transition(source, trigger, target or source, emits, label, why, opens, closes)
        for source in sources
    )


def describe_states(machine: StateMachine, noun: str) -> Meta:
    """The rule of a field or an argument that is a status of `noun`."""
    extra = {"fault": f"is not a status of {noun}", "rule": f"a status of {noun}"}
    return Meta(extra={"values": tuple(sorted(machine.states)), **extra})
