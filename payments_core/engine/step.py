"""The result of every lifecycle: a record after a step, with its events and entries.

A lifecycle is pure: it takes a record as it is, and returns a Step. Steps of one record follow each
other with `then`, and `as_decision` turns them into a decision for the committer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import attrs

from payments_core.engine.decision import Decision
from payments_core.engine.events import NewEvent
from payments_core.storage.records import R, Record

P = ParamSpec("P")
T = TypeVar("T")


@attrs.frozen
class Step(Generic[R]):
    """A record after one step or several, with the events and the journal entries of each.

    The record may be the one that the step began with: then nothing has changed, and the caller
    decides whether to write it. `entries` are always new.
    """

    record: R
    events: tuple[NewEvent, ...] = ()
    entries: tuple[Record, ...] = ()

    def then(
        self, take: Callable[Concatenate[R, P], Step[R]], *args: P.args, **kwargs: P.kwargs
    ) -> Step[R]:
        """Take another step, which `take` makes of this one's record and the other arguments.

        The next step always begins where this one ended, so no caller can join two steps that do
        not belong together.
        """
        following = take(self.record, *args, **kwargs)
        return Step(
            following.record,
            (*self.events, *following.events),
            (*self.entries, *following.entries),
        )

    @overload
    def as_decision(self) -> Decision[None]: ...

    @overload
    def as_decision(self, result: T) -> Decision[T]: ...

    def as_decision(self, result: Any = None) -> Decision[Any]:
        """The decision to write the step, with a `result` for the caller.

        A record that was never stored is inserted; any other is replaced, changed or not.
        """
        is_new = self.record.version == 0
        return Decision(
            result,
            inserts=(self.record, *self.entries) if is_new else self.entries,
            replaces=() if is_new else (self.record,),
            events=self.events,
        )
