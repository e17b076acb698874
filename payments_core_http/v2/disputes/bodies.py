"""Disputes about sessions."""

from __future__ import annotations

from typing import Annotated, Literal

import attrs
from msgspec import Meta

from payments_core.payments.disputes.operations import (
    MAX_DESCRIPTION_CHARACTERS,
    MAX_NOTE_CHARACTERS,
    MAX_REASON_CHARACTERS,
)


@attrs.frozen(kw_only=True)
class FlagDispute:
    """Why a settled session is disputed."""

    reason: Annotated[str, Meta(min_length=1, max_length=MAX_REASON_CHARACTERS)]
    description: Annotated[str, Meta(max_length=MAX_DESCRIPTION_CHARACTERS)] | None = None


@attrs.frozen(kw_only=True)
class ResolveDispute:
    """How a dispute ended."""

    resolution: Literal["won", "lost", "withdrawn"]
    note: Annotated[str, Meta(max_length=MAX_NOTE_CHARACTERS)] | None = None
