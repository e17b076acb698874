"""`payments worker`: the jobs, in one process of a deployment."""

from __future__ import annotations

import json

import click

from payments_core_http.cli.config_option import report_refusals, with_configuration
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.processes import RunningProcess, work


@click.command()
@with_configuration
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line when it is ready.")
def command(configuration: Configuration, as_json: bool) -> None:
    """Do the jobs of a deployment: webhooks, chains, timers.

    Any number of them share the work; what one leaves behind when it dies is taken up by the
    others. The settings are those of `payments serve`. SIGTERM finishes what was begun.
    """

    def announce(running: RunningProcess) -> None:
        document = {"managementUrl": running.management_url}
        click.echo(json.dumps(document) if as_json else "Working")

    with report_refusals():
        work(configuration, announce)
