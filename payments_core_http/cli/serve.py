"""`payments serve`: the API, in one process of a deployment, or in several on one port."""

from __future__ import annotations

import json
import sys

import click

from payments_core.evolve import evolve
from payments_core_http.cli.config_option import report_refusals, with_configuration
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.networks import describe_sandbox
from payments_core_http.deployment.processes import RunningProcess, serve
from payments_core_http.deployment.supervisor import CannotStart


@click.command()
@with_configuration
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    help="How many processes serve the port; replaces http.processes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line when ready.")
def command(configuration: Configuration, processes: int | None, as_json: bool) -> None:
    """Serve the API, as one process of a deployment.

    `payments worker` runs the jobs; any number of both processes share one database. Settings come
    from a TOML file and from environment variables (PAYMENTS_STORAGE_URL is storage.url). Missing
    and unsafe settings are refused. SIGTERM finishes running requests and stops.

    With --processes a parent process serves nothing itself, and restarts processes that end.
    """
    if processes is not None:
        http = evolve(configuration.http, processes=processes)
        configuration = evolve(configuration, http=http)

    def announce(running: RunningProcess) -> None:
        document = {"url": running.url, "managementUrl": running.management_url}
        if as_json:
            click.echo(json.dumps(document))
            return
        for line in (f"Serving {running.url}", *describe_sandbox(configuration)):
            click.echo(line)

    try:
        with report_refusals():
            serve(configuration, announce)
    except CannotStart as cannot:  # the process that failed has said why
        sys.exit(cannot.code if cannot.code > 0 else 1)
