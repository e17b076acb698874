"""`payments openapi`: the OpenAPI document, made from the routes of this release. No network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from payments_core.versions import FIRST, Versions
from payments_core_http.openapi.additive import additive
from payments_core_http.openapi.document import document, text_of


@click.command()
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="The file to write; without it, the document is printed.",
)
@click.option(
    "--version",
    type=click.Choice(Versions().supported),
    default=FIRST,
    show_default=True,
    help="The dated contract.",
)
@click.option(
    "--additive",
    "only_additive",
    is_flag=True,
    help="Refuse to write over a document whose users this one would break, and say how.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the document on a single line.")
def command(output: Path | None, version: str, only_additive: bool, as_json: bool) -> None:
    """Write the OpenAPI document of the API.

    It describes every route with its parameters, bodies, answers, errors and credentials, and
    every webhook. A running service answers the same at /openapi.json, and shows it at /docs.

    \b
    Example:
      payments openapi --output openapi.json
    """
    whole = document(version)
    text = json.dumps(whole, ensure_ascii=False) + "\n" if as_json else text_of(whole)
    if output is None:
        click.echo(text, nl=False)
        return
    if only_additive and output.exists():
        _require_additive(output, whole)
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{output} cannot be written: {error.strerror}.") from error


def _require_additive(output: Path, whole: Mapping[str, Any]) -> None:
    try:
        older = json.loads(output.read_text(encoding="utf-8"))
        breaking = additive(older, whole)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"{output} is no OpenAPI document of ours.") from error
    if breaking:
        raise click.ClickException(
            "\n".join([f"{output} would break who was written for it:", *breaking])
        )
