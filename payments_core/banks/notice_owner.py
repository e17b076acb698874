"""The way of a bank's webhook to what it names: a payout, a review or an incoming transfer.

A reference is the payout's key, the review's key, or the bank's own id of an incoming transfer.
Each kind has a row in `owners`, which are asked in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from payments_core.banks.port import UNNAMED
from payments_core.notices.owners import NoticeOwner, Routed


class BankNoticeOwner:
    """Finds what a bank's webhook names. `wake` has the lists of the bank's notices read."""

    def __init__(self, owners: Sequence[NoticeOwner], wake: Callable[[], None]) -> None:
        self._owners = owners
        self._wake = wake

    def bring_forward(self, mode: str, reference: str) -> Routed:
        """Have the payout, review or transfer looked at now. See NoticeOwner.

        For a reference that names nothing known here, the lists of notices are read too.
        """
        if reference == UNNAMED:
            self._wake()
            return "done"
        for owner in self._owners:
            found = owner.bring_forward(mode, reference)
            if found != "unknown":
                return found
        self._wake()
        return "unknown"
