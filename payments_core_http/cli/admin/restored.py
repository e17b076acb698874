"""`payments admin restored`."""

from __future__ import annotations

from typing import Any

import click

from payments_core.chains.port import ChainUnavailable, SignerRefused
from payments_core.maintenance.after_restore import (
    SenderBehindChain,
    fill_nonces,
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
    return [render_job(one.partition, one.job) for one in stop_sending(service.parts.ports, mode)]


@command.command(name="behind")
@with_service
def behind_(service: PaymentsService, mode: str) -> CommandResult:
    """List senders of which the chain, or a node's pool, has more transactions than the storage."""
    return [
        _render_sender(one)
        for one in find_senders_behind_chain(service.parts.ports.storage, service.chains, mode)
    ]


@command.command()
@click.argument("environment_id")
@click.argument("chain_id", type=int)
@with_service
def fill(service: PaymentsService, mode: str, environment_id: str, chain_id: int) -> CommandResult:
    """Use up the nonces of lost transactions that none of your nodes has any more."""
    if chain_id not in service.chains:
        raise click.UsageError(f"This deployment does not serve chain {chain_id}.")
    try:
        filled = fill_nonces(service.parts.ports, service.chains, environment_id, chain_id)
    except (ChainUnavailable, SignerRefused) as error:
        raise click.ClickException(str(error)) from error
    return [
        {"sender": one.address, "nonce": one.nonce, "transactionHash": one.transaction_hash}
        for one in filled
    ]


def _render_sender(one: SenderBehindChain) -> dict[str, Any]:
    return {
        "environmentId": one.environment_id,
        "chainId": one.chain_id,
        "sender": one.address,
        "nextSlot": one.next_nonce,
        "slotsUsed": one.final_nonce,
        "slotsSeen": one.seen_nonce,
        "forgotten": one.forgotten_count,
    }
