"""The KYC port: the promises of a provider of verifications.

A provider hosts the forms and decides; this library stores its decisions. A deployment passes
the provider's decisions to `Verifications.decide`.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from payments_core.accounts.record import SubjectType


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
