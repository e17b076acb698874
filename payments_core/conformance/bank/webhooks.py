"""Webhooks: what is signed names its payout, and everything else is refused."""

from __future__ import annotations

import attrs

from payments_core.conformance.bank.harness import Harness
from payments_core.conformance.notice_checks import NoticeChecks


@attrs.frozen
class _Case:
    """What a webhook is about: a payout, by its key."""

    reference: str


class WebhookChecks(NoticeChecks, Harness):
    """The promises of `payments_core.notices.port`, for a bank whose webhooks name payouts."""

    def open_case(self) -> _Case:
        """A new payout."""
        return _Case(self.open().submit(self.new_order()).key)
