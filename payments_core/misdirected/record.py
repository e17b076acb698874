"""The way back of misdirected funds, as a receipt or a deposit stores it."""

from __future__ import annotations

import attrs

from payments_core.brief_repr import brief_repr

SENDING = ("created", "submitted")
"""The states in which a transfer back is under way."""


@attrs.frozen(kw_only=True)
class SentBack:
    """The newest transfer that sends misdirected funds back.

    A receipt or a deposit has at most one, and gets another only after it has failed: so its funds
    go back at most once. `outgoing_id` is the transfer. A deposit address can pay only its vault:
    the funds go back from there, by the transfer `continues_as` after the first, and `swept_by` is
    our transfer that has brought them to the vault: a stranger may have done it before. `in_review`
    says that screening has not cleared the destination yet: it waits, unsigned.
    """

    __repr__ = brief_repr

    outgoing_id: str
    destination: str
    status: str
    continues_as: str | None = None
    swept_by: str | None = None
    note: str | None = None
    transaction_hash: str | None = None
    failure: str | None = None
    in_review: bool = False

    @property
    def is_under_way(self) -> bool:
        """Whether it may still succeed."""
        return self.status in SENDING
