"""What the commands of the books share: the environment, the period, and how it is checked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from payments_core.books.period import Period, require_closed
from payments_core.errors import ValidationFailed
from payments_core.service import PaymentsService

_DAY = click.DateTime(("%Y-%m-%d",))


def with_period(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --from and --to, as `first` and `end`."""
    first = click.option(
        "--from", "first", type=_DAY, required=True, help="The first day of the period, in UTC."
    )
    end = click.option(
        "--to",
        "end",
        type=_DAY,
        required=True,
        help="The day after the last one: it is not in the period itself.",
    )
    return first(end(command))


def read_period(service: PaymentsService, first: datetime, end: datetime) -> Period:
    """The closed period of the options. Raises ClickException."""
    try:
        return require_closed(first.date(), end.date(), service.parts.ports.clock.now())
    except ValidationFailed as failure:
        [fault] = failure.fields
        message = fault.message.replace("`from`", "--from")
        raise click.ClickException(f"--{fault.path} {message}.") from failure
