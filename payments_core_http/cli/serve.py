"""`payments serve`: the API, in one process of a deployment."""

from __future__ import annotations

import json

import click

from payments_core_http.cli.config_option import report_refusals, with_configuration
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.processes import RunningProcess, serve


@click.command()
@with_configuration
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line when ready.")
def command(configuration: Configuration, as_json: bool) -> None:
    """Serve the API, as one process of a deployment.

    `payments worker` runs the jobs; any number of both processes share one database. Settings come
    from a TOML file and from environment variables (PAYMENTS_STORAGE_URL is storage.url). Missing
    and unsafe settings are refused. SIGTERM finishes running requests and stops.
    """

    def announce(running: RunningProcess) -> None:
        document = {"url": running.url, "managementUrl": running.management_url}
        click.echo(json.dumps(document) if as_json else f"Serving {running.url}")

    with report_refusals():
        serve(configuration, announce)
