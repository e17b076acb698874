"""The parts of the model that a run may play: all, mostly banks, returns, or values."""

from __future__ import annotations

from collections.abc import Mapping

from tests.service.model.banking import BANK_CALLERS, BANK_HAPPENINGS, undo_what_was_final
from tests.service.model.early import EARLY_HAPPENINGS
from tests.service.model.misdirected import RETURNS
from tests.service.model.mishaps import (
    RULES,
    advance,
    crash_at_work,
    deposit,
    fund,
    meanwhile,
    pay,
    prove_and_reorg,
    reorg,
    trouble_at_work,
    work,
    work_a_little,
    work_in_vain,
)
from tests.service.model.rules import (
    Act,
    authorize,
    cancel,
    check_out,
    option,
    receive,
    reconcile,
    refresh,
    refund,
    send,
    suspend,
)
from tests.service.model.values import VALUE_RULES

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

MISDIRECTED_RULES: WeightedRules = (
    *RETURNS,
    (4, receive),
    (16, pay),
    (8, deposit),
    (3, refund),
    (5, reconcile),
    (4, reorg),
    (3, prove_and_reorg),
    (12, work),
    (3, work_a_little),
    (10, advance),
    (4, work_in_vain),
    (4, crash_at_work),
    (2, trouble_at_work),
    (4, meanwhile),
)

VALUE_PART: WeightedRules = (
    *VALUE_RULES,
    (6, receive),
    (5, send),
    (3, check_out),
    (6, option),
    (6, refresh),
    (6, authorize),
    (16, pay),
    (6, reconcile),
    (4, reorg),
    (6, fund),
    (14, work),
    (3, work_a_little),
    (10, advance),
    (2, crash_at_work),
)

EARLY_PART: WeightedRules = (
    *EARLY_HAPPENINGS,
    (6, receive),
    (3, check_out),
    (12, pay),
    (6, refund),
    (6, reconcile),
    (3, cancel),
    (3, fund),
    (4, reorg),
    (3, prove_and_reorg),
    (10, work),
    (5, work_a_little),
    (10, advance),
    (2, work_in_vain),
    (3, crash_at_work),
    (2, trouble_at_work),
    (3, meanwhile),
)

PARTS: Mapping[str, WeightedRules] = {
    "all": RULES,
    "banks": BANK_RULES,
    "misdirected": MISDIRECTED_RULES,
    "values": VALUE_PART,
    "early": EARLY_PART,
}
