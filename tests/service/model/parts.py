"""The parts of the model that a run may play: all of it, or mostly banks."""

from __future__ import annotations

from collections.abc import Mapping

from tests.service.model.banking import BANK_CALLERS, BANK_HAPPENINGS, undo_what_was_final
from tests.service.model.mishaps import (
    RULES,
    advance,
    crash_at_work,
    fund,
    meanwhile,
    trouble_at_work,
    work,
    work_in_vain,
)
from tests.service.model.rules import Act, cancel, suspend

WeightedRules = tuple[tuple[int, Act], ...]

BANK_RULES: WeightedRules = (
    *BANK_CALLERS,
    *BANK_HAPPENINGS,
    (4, cancel),
    (2, suspend),
    (3, fund),
    (12, work),
    (12, advance),
    (3, undo_what_was_final),
    (4, work_in_vain),
    (4, crash_at_work),
    (2, trouble_at_work),
    (4, meanwhile),
)

PARTS: Mapping[str, WeightedRules] = {"all": RULES, "banks": BANK_RULES}
