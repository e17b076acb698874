"""The port of providers that report by webhook, of any kind (contract §14).

A notice is a hint that something happened. What the provider says when it is asked decides, so a
notice that is late, doubled or out of order causes one more look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import attrs

MAX_NOTICES = 100
"""The number of notices that one request may bring."""

MAX_NAME_LENGTH = 500
"""The length of a notice's id, and of a reference."""


class NoticeRefused(Exception):
    """The request does not prove that it is the provider's, or cannot be read."""


@attrs.frozen(kw_only=True)
class ProviderNotice:
    """What a provider reports: its own id of the notice, and its own name of the case."""

    id: str
    reference: str


@runtime_checkable
class ReadsNotices(Protocol):
    """A provider that reports by webhook."""

    @property
    def name(self) -> str:
        """The last part of the path that the provider calls: lower-case letters, digits and `-`."""

    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        """The notices of a request, after its signature was verified; none are ignored.

        `headers` have lower-case names. `body` is as it was sent: a signature is over its bytes. A
        signature over a time that is long past is refused too. Nothing is called here, and no text
        of an exception may repeat the body. Raises NoticeRefused.
        """
