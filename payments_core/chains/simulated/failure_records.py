"""The failures ordered in a sandbox, as stored in the `simulated` partition."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from payments_core.storage.records import Collection, Record

Dependency = Literal["chain", "kyc", "bank", "router", "onramp", "screening"]


@attrs.frozen(kw_only=True)
class ArmedFailure:
    """The next `times` uses of an operation fail; on every chain if `chain_id` is None."""

    dependency: Dependency
    operation: str
    chain_id: int | None = None
    times: int


@attrs.frozen(kw_only=True, slots=False)
class ArmedFailures(Record):
    """All armed failures, in one row: without any, there is no row to lock.

    `taken` names the last uses that failed. If the answer to a COMMIT was lost, a use finds
    itself there, and does not take a second failure.
    """

    collection: ClassVar[Collection] = Collection("simulated_failures", schema=2)

    armed: tuple[ArmedFailure, ...] = ()
    taken: tuple[str, ...] = ()

    def has(self, dependency: str, operations: tuple[str, ...], chain_id: int | None) -> bool:
        """Whether one of these operations is to fail."""
        return any(matches(item, dependency, operations, chain_id) for item in self.armed)


def matches(
    item: ArmedFailure, dependency: str, operations: tuple[str, ...], chain_id: int | None
) -> bool:
    """Whether an armed failure applies to one of these operations, on that chain."""
    return (
        item.dependency == dependency
        and item.operation in operations
        and item.chain_id in (None, chain_id)
    )
