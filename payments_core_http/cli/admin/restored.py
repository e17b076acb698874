"""`payments admin restored`."""

from __future__ import annotations

from typing import Any

import click

from payments_core.maintenance.after_restore import (
    SenderBehindChain,
    find_senders_behind_chain,
    stop_sending,
)
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.service_command import CommandResult, render_job, with_service


@click.group()
def command() -> None:
    """Stop the senders of a restored storage, and find transfers that it has lost.

    docs/how-to/back-up-and-restore.md describes all steps.
    """


@command.command()
@with_service
def stop(service: PaymentsService, mode: str) -> CommandResult:
    """Park every job that would send a transfer; run it before you start a worker."""
    return [
        render_job(one.partition, one.job)
        for one in stop_sending(service.ports.storage, service.ports.committer, mode)
    ]


@command.command(name="behind")
@with_service
def behind_(service: PaymentsService, mode: str) -> CommandResult:
    """List senders whose on-chain nonce is ahead, and how many transactions the storage lost."""
    return [
        _render_sender(one)
        for one in find_senders_behind_chain(service.ports.storage, service.chains, mode)
    ]


def _render_sender(one: SenderBehindChain) -> dict[str, Any]:
    return {
        "environmentId": one.environment_id,
        "chainId": one.chain_id,
        "sender": one.address,
        "nextSlot": one.next_nonce,
        "slotsUsed": one.final_nonce,
        "forgotten": one.forgotten_count,
    }
