"""The message if there is no anvil for `--anvil`."""

from __future__ import annotations

import click

from payments_core_http.cli.anvil.process import PROGRAM_VARIABLE, AnvilUnavailable


def explain_missing_anvil(reason: AnvilUnavailable) -> click.ClickException:
    """The reason, and what to install."""
    return click.ClickException(
        f"{reason}.\n--anvil needs anvil, an EVM node. It is installed with npm on first "
        "use: install npm, which is part of Node.js. Or install Foundry, which includes anvil, or "
        f"set {PROGRAM_VARIABLE} to the program."
    )
