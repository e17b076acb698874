"""When a block counts: the rows of a network's policy, by the Payment's amount (contract §13)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Literal

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.errors import FieldError

Tag = Literal["latest", "safe", "finalized"]

_TAGS: tuple[Tag, ...] = ("latest", "safe", "finalized")
_AMOUNT = re.compile(r"(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?", re.ASCII)


@attrs.frozen
class Acceptance:
    """When a block counts: the chain's own tag, a number of blocks on top of it (`depth`), or both.

    With both, the lower of the two blocks is the newest that counts. Only a depth is for chains
    whose nodes know no tags. As a row of a policy it is for Payments of at most `up_to`, a decimal
    text in whole tokens, or for every amount.
    """

    __repr__ = brief_repr

    tag: Tag | None = None
    depth: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    up_to: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.tag is None and self.depth == 0:
            raise ValueError("acceptance needs a tag or a depth")

    @property
    def strictness(self) -> tuple[int, int]:
        """Its order among the rows of a policy: the tag decides before the depth."""
        return _TAGS.index(self.tag or "latest"), self.depth

    def covers(self, amount_atomic: int, decimals: int) -> bool:
        """Whether the row is for this amount of a token."""
        return self.up_to is None or amount_atomic <= Fraction(self.up_to) * 10**decimals

    def find_height(self, latest: int, tagged: int | None) -> int:
        """The newest height that counts, by the heights of the newest and of the tagged block."""
        deep = max(0, latest - self.depth)
        return deep if tagged is None else min(deep, tagged)


def find_acceptance_faults(path: str, rows: Sequence[Acceptance]) -> Iterator[FieldError]:
    """Why rows are no policy: amounts rise, the last has none, and no row asks for less than the
    one before.
    """
    limits: list[Fraction] = []
    for place, row in enumerate(rows):
        at, is_last = f"{path}[{place}]", row is rows[-1]
        if row.up_to is None and not is_last:
            yield FieldError(f"{at}.up_to", "is missing: only the last row is for every amount")
        elif row.up_to is not None and is_last:
            yield FieldError(f"{at}.up_to", "must be left out of the last row")
        elif row.up_to is not None and not _AMOUNT.fullmatch(row.up_to):
            yield FieldError(f"{at}.up_to", "must be a decimal string such as 25.00")
        elif row.up_to is not None:
            if limits and Fraction(row.up_to) <= limits[-1]:
                yield FieldError(f"{at}.up_to", "must be more than in the row before")
            limits.append(Fraction(row.up_to))
        if place and row.strictness < rows[place - 1].strictness:
            yield FieldError(at, "must not ask for less than the row before")
