"""The way back of misdirected funds, as a receipt or a deposit stores it."""

from __future__ import annotations

import attrs

SENDING = ("created", "submitted")
"""The states in which a transfer back is under way."""


@attrs.frozen(kw_only=True)
class SentBack:
    """The newest transfer that sends misdirected funds back.

    A receipt or a deposit has at most one, and gets another only after it has failed: so its funds
    go back at most once. `outgoing_id` is the transfer. The funds of a deposit address go through
    the account's vault: `in_vault` says that they are there.
    """

    outgoing_id: str
    destination: str
    status: str
    in_vault: bool = False
    note: str | None = None
    transaction_hash: str | None = None
    failure: str | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it may still succeed."""
        return self.status in SENDING
