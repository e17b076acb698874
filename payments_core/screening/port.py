"""The screening port: the promises of a provider that judges addresses and accounts.

A provider judges whom a transfer concerns; this library asks before it signs the transfer, and
before it stores a wallet link. A provider that reports by webhook also reads its own notices
(`payments_core.notices.port`); the reference of a notice is the provider's case.
"""

from __future__ import annotations

from typing import Literal, Protocol

import attrs

from payments_core.clock import Instant
from payments_core.networks import Asset

SubjectKind = Literal["address", "account", "bank_account"]
Direction = Literal["in", "out", "link"]
"""`in`: the subject has paid us. `out`: it is to be paid. `link`: an account is to be linked."""
Outcome = Literal["clear", "review", "blocked"]
"""What a provider says of a subject: it may pass, a person looks at it, or it must not pass."""


class ScreeningUnavailable(Exception):
    """The provider did not answer, or not in time. The same request may be sent again."""


@attrs.frozen(kw_only=True)
class Subject:
    """Whom a transfer or a link concerns.

    `reference` is an address in its canonical form, or the id of our account or bank account.
    `chain_id` is the number of the chain of an address; others have none.
    """

    kind: SubjectKind
    reference: str
    chain_id: int | None = None

    @property
    def key(self) -> str:
        """The one text for it: the id of what is stored of it."""
        where = "" if self.chain_id is None else f"{self.chain_id}:"
        return f"{self.kind}:{where}{self.reference}"


@attrs.frozen(kw_only=True)
class ScreeningRequest:
    """A subject to be judged, and for what. Amounts are in the smallest unit of the asset.

    `key` names the request: a repeat of an unanswered request has the same key. A link has no
    amount and no asset. A release from several senders asks for each with its whole amount.
    """

    key: str
    subject: Subject
    direction: Direction
    amount_atomic: int | None = None
    asset: Asset | None = None


@attrs.frozen(kw_only=True)
class Verdict:
    """What a provider says of a subject.

    `case` is its own name for the case, which its notices have too. It must not be asked again
    before `valid_until_ms`, in milliseconds since 1970; the present time says that this verdict is
    for this request only: a clear one may count for its transfer in looks that follow within some
    minutes, until all whom the transfer concerns are asked for. `reason` is shown to the partner,
    and contains no secret.
    """

    outcome: Outcome
    case: str | None = None
    valid_until_ms: Instant
    reason: str | None = None


class Screening(Protocol):
    """An adapter. It may be used from many threads at once."""

    def screen(self, request: ScreeningRequest) -> Verdict:
        """Judge a subject. A case in review stays the same case until it is decided, and the
        same key finds its case again.

        Nothing that the caller does depends on the number of calls: a crash repeats a call. A
        provider that cannot judge yet answers `review`. Raises ScreeningUnavailable.
        """
