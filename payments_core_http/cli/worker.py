"""`payments worker`: the jobs, in one process of a deployment."""

from __future__ import annotations

import json

import click

from payments_core_http.cli.config_option import report_refusals, with_configuration
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.processes import RunningProcess, work


@click.command()
@with_configuration
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line when ready.")
def command(configuration: Configuration, as_json: bool) -> None:
    """Run the jobs of a deployment: webhooks, chains, timers.

    Any number of workers share the work; if one dies, the others take over its jobs. The settings
    are those of `payments serve`. SIGTERM finishes running jobs and stops.
    """

    def announce(running: RunningProcess) -> None:
        document = {"managementUrl": running.management_url}
        click.echo(json.dumps(document) if as_json else "Working")

    with report_refusals():
        work(configuration, announce)
