"""What a rehearsal prints: a row for each step, where the tokens are, and how to go on.

The rows go to standard output, and everything else to standard error.
"""

from __future__ import annotations

import json

import attrs
import click

from payments_core.chains.port import ChainError
from payments_core.clock import MINUTE, SECOND
from payments_core.money import format_amount
from payments_core.networks import Network
from payments_core_http.cli.documents import TablePrinter
from payments_core_http.cli.rehearse.saved import StepRun
from payments_core_http.cli.rehearse.stage import Stage
from payments_core_http.cli.rehearse.steps import STEPS, RehearsalStep
from payments_core_http.deployment.secret_mask import SecretMask

SHOWN_DECIMALS = 9
"""Of the coin: `--json` has every wei."""

PAUSED = "*"
"""Marks a step that took more than one run."""


@attrs.frozen
class Report:
    """Prints, without the secrets of the settings."""

    stage: Stage
    hiding: SecretMask
    as_json: bool
    table: TablePrinter = attrs.field(factory=TablePrinter)

    def print_step(self, step: RehearsalStep, run: StepRun) -> None:
        """A step that has ended."""
        took_s = ((run.ended_at_ms or run.began_at_ms) - run.began_at_ms) / SECOND
        if self.as_json:
            row = {"step": step.name, "does": step.does, "seconds": took_s, "gas": run.gas}
            row |= {"wei": None if run.wei is None else str(run.wei), "transactions": run.hashes}
            click.echo(json.dumps(row | {"wasPaused": run.was_paused}))
            return
        cells = {
            "step": step.name.ljust(max(len(one.name) for one in STEPS)),
            "what happens": step.does.ljust(max(len(one.does) for one in STEPS)),
            "took": f"{took_s:.1f} s{PAUSED if run.was_paused else ''}".rjust(10),
            "gas": str(run.gas or "").rjust(8),
            "cost": _format_coin(self.stage.network, run.wei) if run.hashes else "",
        }
        self.table.print([cells])

    def print_total(self) -> None:
        """The end: what all steps took and cost."""
        stage, runs = self.stage, self.stage.rehearsal.steps.values()
        took_s = (max(run.ended_at_ms or 0 for run in runs) - min(r.began_at_ms for r in runs)) / (
            SECOND
        )
        gas, wei = sum(run.gas for run in runs), sum(run.wei or 0 for run in runs)
        if self.as_json:
            total = {"step": "total", "seconds": took_s, "gas": gas, "wei": str(wei)}
            click.echo(json.dumps(total))
            return
        click.echo(
            f"\nAll {len(STEPS)} steps ended in {took_s:.1f} s. They took {gas} gas, "
            f"{_format_coin(stage.network, wei)}.\nThe wallet {stage.rehearsal.wallet} has its "
            f"{stage.rehearsal.amount} {stage.asset.symbol} again; the operator {stage.operator} "
            "keeps the coin that is left for fees."
            + (
                f"\n{PAUSED} with the time between two runs"
                if any(r.was_paused for r in runs)
                else ""
            )
        )

    def tell(self, text: str) -> None:
        """A line that is not a result."""
        click.echo(self.hiding(text), err=True)

    def announce(self, step: RehearsalStep) -> None:
        """What happens next, and about how long it takes as far as the registry says."""
        network, amount = self.stage.network, self.stage.amount_atomic
        rows = {
            "row": next(
                row for row in network.acceptance if row.covers(amount, self.stage.asset.decimals)
            ),
            "final": network.acceptance[-1],
        }
        waits = {name: network.estimate_ms(row, 0) for name, row in rows.items()}
        wait_ms = (waits | {"block": network.block_ms, "": None})[step.waits_for]
        says = f"{step.name}: {step.does}"
        if wait_ms:
            short = wait_ms < 2 * MINUTE
            about = f"{wait_ms // SECOND} s" if short else f"{wait_ms / MINUTE:.0f} minutes"
            says += f", about {about}"
        self.tell(says)

    def explain(self, step: RehearsalStep, why: str) -> str:
        """What went wrong, where the tokens are, and how to go on."""
        return self.hiding(f"The step `{step.name}` did not end: {why}.\n{self.locate()}")

    def locate(self) -> str:
        """Where the tokens of the rehearsal are now, by the chain, and how to go on."""
        stage, places = self.stage, self.stage.rehearsal.list_places()
        go_on = f"Run the same command again: it goes on from {stage.path}."
        try:
            amounts = stage.payer.read_tokens(stage.asset.address, list(places.values()))
        except ChainError as error:
            return f"The nodes do not say where the tokens are: {error}\n{go_on}"
        lines = [
            f"  {format_amount(amount, stage.asset.decimals)} {stage.asset.symbol} "
            f"at {what} {address}"
            for (what, address), amount in zip(places.items(), amounts, strict=True)
            if amount or what == "the wallet"
        ]
        return "\n".join(["Its tokens are now:", *lines, go_on])


def _format_coin(network: Network, wei: int | None) -> str:
    if wei is None:
        return "unknown"
    currency = network.native_currency
    hidden = max(0, currency.decimals - SHOWN_DECIMALS)
    return f"{format_amount(wei // 10**hidden, currency.decimals - hidden)} {currency.symbol}"
