"""A group of commands from a table, with one file for each, loaded when it is called."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from payments_core.extras import ExtraMissing, describe_need, naming_extra

COLLECT_AFTER = 10_000
"""Cycles are searched after so many new objects, instead of 700. Requests leave no cycles, and the
searches took a fortieth of the time of a create."""


class LazyGroup(click.Group):
    """The commands of a table: each name and what it is for.

    The file of the same name in the package defines `command`, with `_` where the name has `-`.
    """

    def __init__(self, package: str, commands: Mapping[str, str], **more: Any) -> None:
        super().__init__(**more)
        self._package = package
        self._commands_there = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, as the help lists them."""
        return list(self._commands_there)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, from its file."""
        if cmd_name not in self._commands_there:
            return None
        try:
            with _uncollected():
                file = import_module(f"{self._package}.{cmd_name.replace('-', '_')}")
        except ModuleNotFoundError as missing:
            if str(missing.name).startswith("payments_core"):
                raise
            raise click.ClickException(
                f"the command {describe_need(missing.name or 'a module')}"
            ) from missing
        command: click.Command = file.command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a package that it needs and does not find is named in a sentence."""
        try:
            with naming_extra("the command"):
                return super().invoke(ctx)
        except ExtraMissing as missing:
            raise click.ClickException(str(missing)) from missing

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, so that none of their files is loaded."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._commands_there.items()))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Imported modules stay until the end. Repeated garbage collection of them takes a tenth of the
    import's time, and later of the requests' time."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(COLLECT_AFTER)
        if collected:
            gc.enable()
