"""What a comparison of the books has compared, and what not."""

from __future__ import annotations

from collections import Counter

import attrs


@attrs.define
class Tally:
    """Counts of a comparison.

    `unchecked` says what could not be compared, and how often; `in_progress` counts what is on its
    way, whose escrows were not compared; `differences` are by their kind.
    """

    payments: int = 0
    entries: int = 0
    bank_transfers: int = 0
    transfers: int = 0
    payouts: int = 0
    in_progress: int = 0
    differences: Counter[str] = attrs.field(factory=Counter)
    unchecked: Counter[str] = attrs.field(factory=Counter)

    @property
    def is_clean(self) -> bool:
        """Whether everything was compared, and nothing differs."""
        return not (self.differences or self.unchecked)
