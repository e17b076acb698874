"""`payments admin offramp`."""

from __future__ import annotations

from typing import Any

import click

from payments_core.chains.port import ChainUnavailable
from payments_core.maintenance.offramp_funds import OfframpFunds, compare_offramp_funds
from payments_core.money import format_signed_amount
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.service_command import (
    CommandResult,
    FailingResult,
    environment_argument,
    find_environment,
    with_service,
)


@click.command()
@environment_argument
@with_service
def command(service: PaymentsService, mode: str, environment: str) -> CommandResult | FailingResult:
    """Compare an off-ramp address with the books of its payouts. It changes nothing.

    It reads all Payments of the environment. The exit code is 1 if the address has less than
    refunds may need. docs/how-to/payouts.md explains the columns.
    """
    found = find_environment(service, mode, environment)
    try:
        rows = compare_offramp_funds(service.parts.ports.storage, service.chains, found.id)
    except ChainUnavailable as error:
        raise click.ClickException(str(error)) from error
    document = [_render(row) for row in rows]
    is_short = any(row.free is not None and row.free < 0 for row in rows)
    return FailingResult(document) if is_short else document


def _render(row: OfframpFunds) -> dict[str, Any]:
    return {
        "chainId": row.asset.chain_id,
        "assetSymbol": row.asset.symbol,
        "address": row.address,
        "held": _format(row, row.held),
        "atBank": _format(row, row.at_bank),
        "settled": _format(row, row.settled),
        "booked": _format(row, row.booked),
        "onChain": _format(row, row.on_chain),
        "difference": _format(row, row.difference),
        "needed": _format(row, row.needed),
        "free": _format(row, row.free),
    }


def _format(row: OfframpFunds, amount: int | None) -> str | None:
    return None if amount is None else format_signed_amount(amount, row.asset.decimals)
