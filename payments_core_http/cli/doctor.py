"""`payments doctor`: whether a deployment has all it needs, and what to do if not."""

from __future__ import annotations

import json

import attrs
import click

from payments_core_http.cli.config_option import with_configuration
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.doctor import run_checks
from payments_core_http.deployment.findings import Finding

_MARKS = {"ok": ("ok", "green"), "warning": ("look", "yellow"), "fault": ("FAULT", "red")}


@click.command()
@with_configuration
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line for each check.")
def command(configuration: Configuration, as_json: bool) -> None:
    """Check settings, keys, storage, limiter, chains, clock and workers.

    It queries the real services and changes nothing. The exit code is 1 if it finds a fault.
    """
    faults = 0
    for finding in run_checks(configuration):
        faults += finding.level == "fault"
        print_finding(finding, as_json=as_json)
    if faults:
        raise click.exceptions.Exit(1)


def print_finding(finding: Finding, *, as_json: bool) -> None:
    """Print what a check has found, as a JSON line or for people."""
    if as_json:
        click.echo(json.dumps(attrs.asdict(finding)))
        return
    mark, colour = _MARKS[finding.level]
    click.echo(f"{click.style(f'{mark:>5}', fg=colour)}  {finding.check}: {finding.says}")
    if finding.remedy:
        click.echo(f"       -> {finding.remedy}")
