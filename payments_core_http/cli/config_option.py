"""What the commands of a deployment share: the option that names its configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.port import StorageError
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.loader import ConfigurationRefused, load_configuration
from payments_core_http.observability import logs

CONFIG_OPTION = click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The TOML file of settings; default: the file in PAYMENTS_CONFIG.",
)


def with_configuration(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option --config, and pass it the configuration as its first argument.

    Logs contain no secret from then on; a command that keeps running logs as its settings say.
    """

    @CONFIG_OPTION
    @wraps(command)
    def run_with_configuration(*arguments: Any, config: Path | None, **options: Any) -> Any:
        return command(open_configuration(config), *arguments, **options)

    return run_with_configuration


def open_configuration(config: Path | None) -> Configuration:
    """The configuration of a file, or of the environment. Raises ClickException."""
    logs.configure("WARNING", "text")
    with report_refusals():
        return load_configuration(config, os.environ)


@contextmanager
def report_refusals() -> Iterator[None]:
    """Report why a process cannot run, in lines and not in a traceback."""
    try:
        yield
    except ConfigurationRefused as refusal:
        raise click.ClickException(str(refusal)) from refusal
    except StorageError as error:
        raise click.ClickException(f"The storage cannot be used: {error}.") from error
    except UnreadableDocument as error:
        raise click.ClickException(
            f"A row is damaged: {error}. `payments admin damaged list` names it."
        ) from error
