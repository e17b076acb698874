"""The command line: `payments`, with one file per command.

A command's file is imported only when that command is called, so `payments --help` stays quick.
"""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.extras import naming_extra

with naming_extra("the command line"):
    import click

    from payments_core_http.cli.colors import with_color_option
    from payments_core_http.cli.lazy_group import LazyGroup

COMMANDS: Mapping[str, str] = {
    "demo": "See one Payment go from start to end over real HTTP.",
    "sandbox": "Run your own service on this machine, with simulated chains and test funds.",
    "listen": "Receive a sandbox's webhooks on this machine.",
    "trigger": "Send a test event to your webhook endpoints.",
    "events": "List the events of a sandbox, newest first.",
    "logs": "List the API requests of a sandbox, newest first.",
    "open": "Open the dashboard, the reference or a checkout page of a sandbox.",
    "resend": "Deliver an event again.",
    "verify-webhook": "Check the signature of a webhook, and explain what is wrong.",
    "openapi": "Write the OpenAPI document of the API.",
    "serve": "Serve the API, as one process of a deployment.",
    "worker": "Run the jobs of a deployment: webhooks, chains, timers.",
    "admin": "Create apps and keys, and maintain a deployment.",
    "export": "Write the books of a period as CSV, beancount or an SQLite file.",
    "reconcile": "Compare journal, chains and bank for a period, and name each difference.",
    "networks": "List the networks of a deployment, and check their nodes.",
    "rehearse": "Play a whole Payment on a testnet, with what each step takes and costs.",
    "doctor": "Check settings, keys, storage, limiter, chains, clock and workers.",
}


@click.command(
    cls=LazyGroup,
    package=__name__,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="payments-core", prog_name="payments")
@with_color_option
def payments() -> None:
    """Stablecoin Payments and accounts.

    New here? `payments demo` shows everything once and leaves nothing behind.
    Then `payments sandbox` runs a service to build against: it prints its URL, its keys and a
    first curl command. `payments COMMAND --help` describes each command.
    """


def main() -> None:
    """The console script `payments`."""
    payments(prog_name="payments")
