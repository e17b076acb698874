"""`payments serve`: the API, in one process of a deployment."""

from __future__ import annotations

import json

import click

from payments_core_http.cli.config_option import report_refusals, with_configuration
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.processes import RunningProcess, serve


@click.command()
@with_configuration
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line when it is ready.")
def command(configuration: Configuration, as_json: bool) -> None:
    """Answer the API's requests, in one process of a deployment.

    Jobs are done by `payments worker`; any number of both work on one database. The settings come
    from a TOML file and from environment variables (PAYMENTS_STORAGE_URL is storage.url), and a
    missing or weak one is refused. SIGTERM finishes what was begun.
    """

    def announce(running: RunningProcess) -> None:
        document = {"url": running.url, "managementUrl": running.management_url}
        click.echo(json.dumps(document) if as_json else f"Serving {running.url}")

    with report_refusals():
        serve(configuration, announce)
