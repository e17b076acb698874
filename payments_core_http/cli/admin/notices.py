"""`payments admin notices`."""

from __future__ import annotations

from typing import Any

import click

from payments_core.notices.record import StoredNotice
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.service_command import (
    CommandResult,
    format_time,
    with_service,
)


@click.group()
def command() -> None:
    """List the notices of providers that name unknown cases, and retry one."""


@command.command(name="list")
@with_service
def list_(service: PaymentsService, mode: str) -> CommandResult:
    """List the notices whose case was not found in time, the oldest first. They are kept."""
    notices = service.parts.provider_notices
    page = notices.list(mode, limit=100)
    found = [*page.records]
    while page.next is not None:
        page = notices.list(mode, after=page.next, limit=100)
        found += page.records
    return [_render_notice(one) for one in found]


@command.command()
@click.argument("notice_id")
@with_service
def retry(service: PaymentsService, mode: str, notice_id: str) -> CommandResult:
    """Look for the case of a notice again, for a quarter of an hour."""
    return _render_notice(service.parts.provider_notices.retry(mode, notice_id))


def _render_notice(notice: StoredNotice) -> dict[str, Any]:
    return {
        "noticeId": notice.id,
        "kind": notice.kind,
        "provider": notice.provider,
        "reference": notice.reference,
        "status": notice.status,
        "receivedAt": format_time(notice.received_at_ms),
    }
