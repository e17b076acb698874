"""The command line: `payments`, with one file per command.

A command's file is imported only when that command is called, so `payments --help` stays quick.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

COMMANDS: Mapping[str, str] = {
    "demo": "See one Payment go from start to end over real HTTP.",
    "sandbox": "Run a service of your own here, with simulated chains and test funds.",
    "listen": "Receive a sandbox's webhooks on this machine.",
    "trigger": "Send an event to your webhook endpoints, though nothing has happened.",
    "events": "List what has happened in a sandbox, newest first.",
    "resend": "Deliver an event again.",
    "verify-webhook": "Check the signature of a webhook, and say what is wrong with it.",
    "openapi": "Write the OpenAPI document of the API.",
}
"""Each command and what it is for; the file of the same name beside this one defines `command`,
with `_` where the name has `-`."""


class Commands(click.Group):
    """The commands of the table, loaded when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, as the help lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, from its file."""
        if cmd_name not in COMMANDS:
            return None
        try:
            command: click.Command = import_module(
                f"{__name__}.{cmd_name.replace('-', '_')}"
            ).command
        except ModuleNotFoundError as missing:
            if str(missing.name).startswith("payments_core"):
                raise
            raise click.ClickException(
                f"{missing.name} is not installed; the command line needs the extra `server`: "
                "pip install 'payments-core[server]'"
            ) from missing
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, so that none of their files is loaded."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="payments-core", prog_name="payments")
def payments() -> None:
    """Stablecoin Payments and accounts.

    New here? `payments demo` shows everything once and leaves nothing behind.
    Then `payments sandbox` runs a service to build against: it prints its address, its keys and a
    first curl line. `payments COMMAND --help` says more about each.
    """


def main() -> None:
    """The console script `payments`."""
    payments(prog_name="payments")
