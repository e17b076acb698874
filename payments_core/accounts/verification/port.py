"""The KYC port: what a provider of verifications promises.

A provider hosts the forms and decides; this library keeps what it decided. A deployment hands
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
    """Who is to be verified. `key` names the request: it is the verification's id."""

    key: str
    account_id: str
    external_user_id: str
    subject_type: SubjectType
    email: str | None = attrs.field(default=None, repr=False)
    return_url: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class KycCase:
    """A case that a provider has opened: its own reference, and where the user goes."""

    reference: str
    hosted_url: str = attrs.field(repr=False)


class KycProvider(Protocol):
    """An adapter. It may be used from many threads at once."""

    def start(self, request: KycRequest) -> KycCase:
        """Open a case, or give the one that was opened under the same `key` before.

        A crash between the answer and its record repeats the call, so a key never opens two. The
        return URL given last counts. Raises KycUnavailable.
        """
