"""The sections of the dashboard: a table, from which every page has its navigation.

A section leads to the page at `/dashboard/<name>`. One that the caller may not open is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import attrs

from payments_core.errors import EntitlementRequired
from payments_core.evolve import evolve
from payments_core.inbox import MOST_COUNTED, Kind
from payments_core.tenants.authorization import Authority, Requirement

ANY = Requirement("operator")
PAYMENTS = Requirement("operator", scopes=("v2:payments",))
ACCOUNTS = Requirement("operator", scopes=("v2:accounts",))
DEPOSITS = Requirement("operator", scopes=("v2:accounts", "v2:deposit_addresses"))
VERIFICATIONS = Requirement("operator", scopes=("v2:kyc",))
WEBHOOKS = Requirement("operator", scopes=("v2:webhooks", "v2:console"))


@attrs.frozen
class Section:
    """A section: the name of its page, its title, and what that page requires.

    `waits` are the kinds of the inbox that it has, which are counted beside its title.
    """

    name: str
    title: str
    needs: Requirement
    waits: tuple[Kind, ...] = ()

    def count(self, counts: Mapping[Kind, int]) -> str:
        """How many wait, as a text: empty for none, and `99+` for more than are counted."""
        total = sum(counts.get(kind, 0) for kind in self.waits)
        if total >= MOST_COUNTED:
            return f"{MOST_COUNTED - 1}+"
        return str(total) if total else ""


GROUPS: Mapping[str, Sequence[Section]] = {
    "Money": (
        Section("inbox", "Inbox", ANY, get_args(Kind)),
        Section("payments", "Payments", PAYMENTS, ("payments",)),
        Section("links", "Links", PAYMENTS),
        Section("payouts", "Payouts", PAYMENTS),
        Section("onramps", "On-ramps", ACCOUNTS),
        Section("activity", "Activity", PAYMENTS),
    ),
    "Customers": (
        Section("accounts", "Accounts", ACCOUNTS),
        Section("verifications", "Verifications", VERIFICATIONS, ("verifications",)),
        Section("screening", "Screening", PAYMENTS, ("transfers",)),
    ),
    "Integration": (
        Section("webhooks", "Webhooks", WEBHOOKS, ("endpoints",)),
        Section("events", "Events", WEBHOOKS),
        Section("requests", "Requests", ANY),
        Section("keys", "Keys", ANY),
    ),
    "Environment": (
        Section("settings", "Settings", ANY),
        Section("audit", "Audit trail", ANY),
        Section("security", "Security", ANY),
    ),
}
"""Every section by its group, in the order of the navigation. A line breaks between groups."""


def list_groups(authority: Authority) -> Mapping[str, Sequence[Section]]:
    """The sections that the caller may open, from its present rights."""
    return {
        name: [section for section in sections if is_allowed(authority, section.needs)]
        for name, sections in GROUPS.items()
    }


def is_allowed(authority: Authority, needs: Requirement) -> bool:
    """Whether the caller may open a page that requires this."""
    try:
        evolve(authority, requirement=needs).require_allowed()
    except EntitlementRequired:
        return False
    return True
