"""The sections of the dashboard: a table, from which every page has its navigation.

A section leads to the page at `/dashboard/<name>`. One that the caller may not open is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.errors import EntitlementRequired
from payments_core.evolve import evolve
from payments_core.tenants.authorization import Authority, Requirement

ANY = Requirement("operator")
PAYMENTS = Requirement("operator", scopes=("v2:payments",))
VERIFICATIONS = Requirement("operator", scopes=("v2:kyc",))
WEBHOOKS = Requirement("operator", scopes=("v2:webhooks", "v2:console"))


@attrs.frozen
class Section:
    """A section: the name of its page, its title, and what its page and its rows require."""

    name: str
    title: str
    needs: Requirement


SECTIONS: Sequence[Section] = (
    Section("payments", "Payments", PAYMENTS),
    Section("activity", "Activity", PAYMENTS),
    Section("verifications", "Verifications", VERIFICATIONS),
    Section("screening", "Screening", PAYMENTS),
    Section("webhooks", "Webhooks", WEBHOOKS),
    Section("events", "Events", WEBHOOKS),
    Section("requests", "Requests", ANY),
    Section("keys", "Keys", ANY),
)
"""Every section, in the order of the navigation."""


def list_sections(authority: Authority) -> Sequence[Section]:
    """The sections that the caller may open, from its present rights."""
    return [section for section in SECTIONS if _may_open(authority, section)]


def _may_open(authority: Authority, section: Section) -> bool:
    try:
        evolve(authority, requirement=section.needs).require_allowed()
    except EntitlementRequired:
        return False
    return True
