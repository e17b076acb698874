"""`payments verify-webhook`: whether a delivery is authentic, and if not, why. No network."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import BinaryIO, NoReturn

import click

from payments_core.webhooks.receiver import SecretMalformed, WebhookRefused, verify

SECRET_VARIABLE = "PAYMENTS_WEBHOOK_SECRET"

ADVICE = {
    "signature_missing": "Give the x-service-signature header of the delivery.",
    "signature_malformed": "The shell may have changed it: put the header in single quotes.",
    "signature_wrong": (
        "The secret belongs to another endpoint or was rotated, or the body is not byte for byte "
        "what was sent: an editor may add a newline, and JSON that is parsed and written again "
        "differs."
    ),
    "timestamp_too_old": (
        "The signature is valid. For a stored delivery, allow its age with "
        "--tolerance. For a live delivery, compare the clocks."
    ),
    "timestamp_too_new": "The signature is valid. Compare your clock with the sender's clock.",
    "body_not_json": "The signature is valid, but the body is not JSON.",
    "body_not_event": "The signature is valid, but the body is not an event.",
}


@click.command()
@click.option(
    "--secret-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"A file that contains the signing secret; default: ${SECRET_VARIABLE}.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    required=True,
    help="The value of x-service-signature, or 'name: value'. May be repeated.",
)
@click.option(
    "--tolerance",
    type=click.IntRange(min=0),
    default=300,
    show_default=True,
    help="How many seconds the timestamp may differ from the clock.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("body", type=click.File("rb"), default="-")
def command(
    secret_file: Path | None,
    headers: tuple[str, ...],
    tolerance: int,
    as_json: bool,
    body: BinaryIO,
) -> None:
    """Check the signature of a webhook, and explain what is wrong.

    BODY is a file with the raw body, byte for byte, or standard input. Nothing is sent.
    The secret is not a command-line argument, because other users could read it. The exit code is
    0 for an authentic delivery, 1 for a refused one, 2 for a usage error.

    \b
    Example:
      payments verify-webhook --secret-file secret --header 't=1790000000,v1=...' body.json
    """
    secret = _read_secret(secret_file)
    try:
        event = verify(body.read(), _parse_signature(headers), secret, tolerance_s=tolerance)
    except SecretMalformed as error:
        raise click.UsageError(f"The secret is not valid: {error}.") from error
    except WebhookRefused as refusal:
        _refuse(refusal, as_json)
    if as_json:
        facts = {"verified": True, "eventId": event.id, "name": event.name}
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        click.echo(f"authentic: {event.name} {event.id}")


def _read_secret(file: Path | None) -> str:
    if file is None:
        found = os.environ.get(SECRET_VARIABLE, "")
        if not found:
            raise click.UsageError(
                f"No secret: give its file with --secret-file, or set {SECRET_VARIABLE}."
            )
        return found.strip()
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{file} does not contain a readable secret.") from error


def _parse_signature(headers: tuple[str, ...]) -> str | list[tuple[str, str]]:
    """The one value, or the headers by name."""
    pairs = [header.partition(":") for header in headers]
    if len(headers) == 1 and not pairs[0][1]:
        return headers[0].strip()
    if bare := [header for header, (_, colon, _) in zip(headers, pairs, strict=True) if not colon]:
        raise click.BadParameter(f"{bare[0]!r} is not 'name: value'", param_hint="--header")
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def _refuse(refusal: WebhookRefused, as_json: bool) -> NoReturn:
    if as_json:
        facts = {"verified": False, "refused": refusal.code, "message": str(refusal)}
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        click.echo(f"refused: {refusal.code}: {refusal}", err=True)
        if refusal.code in ADVICE:
            click.echo(ADVICE[refusal.code], err=True)
    raise SystemExit(1)
