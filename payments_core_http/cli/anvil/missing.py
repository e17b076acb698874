"""What is said where there is no anvil for `--anvil`."""

from __future__ import annotations

import click

from payments_core_http.cli.anvil.process import OVERRIDE, NoAnvil


def no_anvil(reason: NoAnvil) -> click.ClickException:
    """The reason, and what to install."""
    return click.ClickException(
        f"{reason}.\n--anvil needs anvil, an EVM node. It is fetched with npm when it is first "
        "used: install npm, which comes with Node.js. Or install Foundry, which brings anvil, or "
        f"name the program in {OVERRIDE}."
    )
