"""What the commands of `payments admin` share: the service of the configuration, and the output of
a command's result."""

from __future__ import annotations

import contextlib
import getpass
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import attrs
import click

from payments_core.clock import format_iso_or_none
from payments_core.engine.audit import Actor
from payments_core.errors import PaymentsError, ValidationFailed
from payments_core.service import PaymentsService
from payments_core.storage.jobs import Job
from payments_core.storage.port import StorageError
from payments_core.tenants.authorization import MAX_PERSON_CHARACTERS
from payments_core.tenants.record import Environment
from payments_core_http.cli.config_option import report_refusals, with_configuration
from payments_core_http.cli.documents import print_document
from payments_core_http.deployment import build as assembling
from payments_core_http.deployment.configuration import Configuration

CommandResult = Mapping[str, Any] | Sequence[Mapping[str, Any]]

environment_argument = click.argument("environment")


@attrs.frozen
class FailingResult:
    """A result that needs attention: the command prints it, and exits with 1."""

    document: CommandResult


def print_result(command: Callable[..., CommandResult | FailingResult]) -> Callable[..., None]:
    """Give a command --json, and print what it returns: an object, or a list of them."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @wraps(command)
    def run_and_print(*arguments: Any, as_json: bool, **options: Any) -> None:
        with report_refusals(), report_errors():
            result = command(*arguments, **options)
        document = result.document if isinstance(result, FailingResult) else result
        if as_json:
            click.echo(json.dumps(document, ensure_ascii=False))
        else:
            print_document(document)
        if isinstance(result, FailingResult):
            raise click.exceptions.Exit(1)

    return run_and_print


def with_service(command: Callable[..., CommandResult | FailingResult]) -> Callable[..., None]:
    """Give a command the service, and the mode, as its first arguments, and print its result."""

    @with_configuration
    @print_result
    @wraps(command)
    def run_with_service(
        configuration: Configuration, *arguments: Any, **options: Any
    ) -> CommandResult | FailingResult:
        with open_service(configuration) as service:
            return command(service, configuration.mode, *arguments, **options)

    return run_with_service


@contextmanager
def open_service(configuration: Configuration) -> Iterator[PaymentsService]:
    """The service of a configuration. It may be unsafe: the operator needs it for repairs."""
    key_ring = assembling.build_key_ring(configuration)
    storage = assembling.build_storage(configuration)
    with contextlib.closing(storage):
        host = Actor("command_line", find_system_user())
        service = assembling.build_service(configuration, storage, key_ring, host=host)
        with contextlib.closing(service):
            service.refresh()
            assembling.require_known_key_ring(service)
            yield service


def find_system_user() -> str | None:
    """The user of the operating system that runs this program; None if nobody knows."""
    try:
        return getpass.getuser()[:MAX_PERSON_CHARACTERS]
    except (KeyError, OSError):  # as in a container without a line of its user in /etc/passwd
        return None


@contextmanager
def report_errors() -> Iterator[None]:
    """Report an error in one line, or a line for each fault."""
    try:
        yield
    except ValidationFailed as failure:
        lines = [f"{fault.path} {fault.message}" for fault in failure.fields]
        raise click.ClickException("\n".join(lines)) from failure
    except PaymentsError as error:
        if isinstance(error.__cause__, StorageError):  # only the operator gets the cause
            raise error.__cause__ from None
        raise click.ClickException(error.message) from error
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def find_environment(service: PaymentsService, mode: str, named: str) -> Environment:
    """The environment of an id, or that of the mode of the app with a partner id.

    Raises NotFound.
    """
    app = service.tenants.find_app_by_partner(named)
    if app is not None and mode in app.environments:
        named = app.environments[mode]
    return service.tenants.get_environment(named)


def render_environment(environment: Environment) -> dict[str, Any]:
    """An environment, without its keys."""
    return {
        "environmentId": environment.id,
        "appId": environment.app_id,
        "partnerId": environment.partner_id,
        "mode": environment.mode,
        "apiVersion": environment.api_version,
        "products": list(environment.products),
        "rateLimits": dict(environment.rate_limits),
        **render_storage_use(environment),
    }


def render_storage_use(environment: Environment) -> dict[str, Any]:
    """What an environment stores, and may store; null before the first count."""
    return {
        "storedBytes": environment.stored_bytes,
        "countedAt": format_time(environment.counted_at_ms),
        "storageLimitBytes": environment.effective_storage_limit_bytes,
    }


def render_job(partition: str, job: Job) -> dict[str, Any]:
    """A job, and its place in the storage."""
    return {
        "partition": partition,
        "jobId": job.id,
        "kind": job.kind,
        "subject": job.subject,
        "queue": job.queue,
        "lane": job.lane,
        "claims": job.claims,
    }


format_time = format_iso_or_none
"""The text of a time."""
