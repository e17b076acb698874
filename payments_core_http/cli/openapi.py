"""`payments openapi`: the OpenAPI document, made from the routes of this release. No network."""

from __future__ import annotations

import json
from pathlib import Path

import click

from payments_core.contracts.versions import CURRENT_VERSION, Versions
from payments_core_http.openapi.document import build_document, format_document


@click.command()
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="The file to write; default: standard output.",
)
@click.option(
    "--version",
    type=click.Choice(Versions().supported),
    default=CURRENT_VERSION,
    show_default=True,
    help="The dated API version.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the document on a single line.")
def command(output: Path | None, version: str, as_json: bool) -> None:
    """Write the OpenAPI document of the API.

    It describes every route with its parameters, bodies, answers, errors and credentials, and
    every webhook. A running service serves the same document at /openapi.json, and pages at /docs.

    \b
    Example:
      payments openapi --output openapi.json
    """
    whole = build_document(version)
    text = json.dumps(whole, ensure_ascii=False) + "\n" if as_json else format_document(whole)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}.") from error
