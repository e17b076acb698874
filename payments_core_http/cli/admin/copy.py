"""`payments admin copy`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import attrs
import click

from payments_core.adapters import scheme_of
from payments_core.maintenance.storage_copy import (
    CannotRetire,
    CopyDiffers,
    CopyResult,
    CopyWrittenTo,
    Differences,
    Progress,
    SourceRetired,
    TargetInUse,
    copy,
    reinstate,
    verify,
)
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.sqlite.backups import BackupFailed, require_unused
from payments_core.storage_loader import open_storage
from payments_core_http.cli.admin.service_command import CommandResult, FailingResult, print_result
from payments_core_http.cli.config_option import with_configuration
from payments_core_http.cli.progress import show_progress
from payments_core_http.deployment import build as assembling
from payments_core_http.deployment.configuration import Configuration

_to = click.option(
    "--to",
    required=True,
    envvar="PAYMENTS_COPY_TO",
    help="The target's URL, such as postgresql://…; better in PAYMENTS_COPY_TO, because a list of "
    "processes shows arguments.",
)


@click.group()
def command() -> None:
    """Copy all records to another storage, and verify the copy.

    docs/how-to/move-to-postgresql.md describes all steps.
    """


@command.command(name="run")
@_to
@click.option(
    "--not-retired",
    is_flag=True,
    help="Leave the source writable, if it cannot be retired: make sure "
    "yourself that no process uses it any more.",
)
@with_configuration
@print_result
def run_(configuration: Configuration, to: str, not_retired: bool) -> CommandResult:
    """Copy the configured storage to an empty one, compare every row, and retire the source.

    The source accepts no writes during the copy or after it: stop all processes first. You can
    interrupt the command and run it again.
    """
    _require_other_storage(configuration, to)
    _require_stopped(configuration)
    source, target = assembling.build_storage(configuration), _open_target(to)
    with contextlib.closing(source), contextlib.closing(target):
        source.migrate()
        target.migrate()
        try:
            with _show_steps() as progress:
                done = copy(
                    source,
                    target,
                    RECORD_TYPES,
                    retire=None if not_retired else "moved to another storage",
                    progress=progress,
                )
        except CannotRetire as failure:
            raise click.ClickException(f"{failure}; see --not-retired") from failure
        except (SourceRetired, TargetInUse, CopyDiffers) as failure:
            raise click.ClickException(str(failure)) from failure
    return _render_copy(done)


@command.command(name="verify")
@_to
@with_configuration
@print_result
def verify_(configuration: Configuration, to: str) -> CommandResult | FailingResult:
    """Compare every row of the configured storage with another storage, both ways.

    During the comparison neither storage accepts writes: run it before a process uses the copy.
    The exit code is 1 if anything differs.
    """
    _require_other_storage(configuration, to)
    source, target = assembling.build_storage(configuration), _open_target(to)
    with contextlib.closing(source), contextlib.closing(target), _show_steps() as progress:
        found = verify(source, target, RECORD_TYPES, progress=progress)
    document = _render_differences(found)
    return FailingResult(document) if found.count else document


@command.command(name="reinstate")
@click.option(
    "--to",
    envvar="PAYMENTS_COPY_TO",
    help="The URL of the copy, as given to `run`.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Do not compare with the copy: it is lost, and so are all writes to it.",
)
@with_configuration
@print_result
def reinstate_(configuration: Configuration, to: str | None, force: bool) -> CommandResult:
    """Make the configured storage, which was moved, writable again.

    The copy must be unchanged, or money would move twice: every row is compared first. Stop all
    processes first, and start none on the copy afterwards.
    """
    if to is None and not force:
        raise click.UsageError(
            "Give the URL of the copy with --to: the copy must not have changed."
        )
    _require_stopped(configuration)
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(contextlib.closing(assembling.build_storage(configuration)))
        made = None
        if to is not None and not force:
            made = stack.enter_context(contextlib.closing(_open_target(to)))
        try:
            progress = stack.enter_context(_show_steps())
            return {"reinstated": reinstate(source, made, RECORD_TYPES, progress=progress)}
        except CopyWrittenTo as failure:
            raise click.ClickException(str(failure)) from failure


def _require_other_storage(configuration: Configuration, to: str) -> None:
    if to == configuration.storage.url:
        raise click.ClickException("--to is the configured storage itself.")


def _require_stopped(configuration: Configuration) -> None:
    """Refuse while a process has an SQLite file open: it may be in the middle of sending."""
    scheme, _, file = configuration.storage.url.partition(":///")
    if scheme == "sqlite":
        try:
            require_unused(file)
        except BackupFailed as failure:
            raise click.ClickException(str(failure)) from failure


def _open_target(url: str) -> Any:
    if scheme_of(url) == "memory":
        raise click.BadParameter(
            "records in memory are lost when this command ends", param_hint="--to"
        )
    try:
        return open_storage(url)
    except (ValueError, ImportError) as error:
        raise click.BadParameter(str(error), param_hint="--to") from error


@contextlib.contextmanager
def _show_steps() -> Iterator[Progress]:
    with show_progress("Moving") as show:
        yield lambda step, collection, rows: show(f"{step} {collection}", rows)


def _render_copy(done: CopyResult) -> dict[str, Any]:
    return {
        "rows": {collection: count for collection, count in done.rows.items() if count},
        "sourceRetired": done.source_retired,
        **_render_differences(done.differences),
    }


def _render_differences(found: Differences) -> dict[str, Any]:
    return {
        "differences": found.count,
        "examples": [attrs.asdict(example) for example in found.examples],
        "collections": [attrs.asdict(one) for one in found.collections if one.source_rows],
    }
