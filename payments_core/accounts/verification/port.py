"""The KYC port: the promises of a provider of verifications.

A provider hosts the forms and decides; this library asks it for its decisions, and stores them.
A provider that reports by webhook also reads its own notices (`payments_core.notices.port`).
"""

from __future__ import annotations

from typing import Literal, Protocol

import attrs

from payments_core.accounts.record import SubjectType

KycFinding = Literal["pending", "approved", "rejected"]
"""What a provider says of a case: it may decide later, or it has decided."""


class KycUnavailable(Exception):
    """The provider did not answer, or not in time. The same request may be sent again."""


@attrs.frozen(kw_only=True)
class KycRequest:
    """The account to be verified. `key` names the request: it is the verification's id."""

    key: str
    account_id: str
    external_user_id: str
    subject_type: SubjectType
    email: str | None = attrs.field(default=None, repr=False)
    return_url: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class KycCase:
    """A case that a provider has opened: its own reference, and the URL for the user."""

    reference: str
    hosted_url: str = attrs.field(repr=False)


class KycProvider(Protocol):
    """An adapter. It may be used from many threads at once."""

    def start(self, request: KycRequest) -> KycCase:
        """Open a case, or return the case that was opened earlier under the same `key`.

        A crash between the answer and its record repeats the call, so a key must never open two.
        The last given return URL counts. Raises KycUnavailable.
        """

    def look(self, reference: str) -> KycFinding:
        """What the provider has found of the case that `start` returned with this reference.

        A decision never changes. A case that the provider does not know, as after a loss of its
        data, is not rejected for that. Raises KycUnavailable then, and if it does not answer.
        """
