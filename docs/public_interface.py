"""What is public: the page that says so, and the names that programs may import.

`docs/reference/public-names.txt` is the list of names as of the last release that changed it, one
a line. `names` finds what there is now. A test holds that no name of the list is gone, and that a
new one is entered.
"""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from docs.markdown import code, table
from payments_core.contracts.versions import CURRENT_VERSION
from payments_core.port_loader import OPENERS
from payments_core_http.cli import payments

ROOT = Path(__file__).resolve().parent.parent
LISTED = ROOT / "docs" / "reference" / "public-names.txt"

MODULES = {
    "payments_core": "The library: arguments, results and errors.",
    "payments_core.webhooks": "The receiver's side of webhooks.",
    "payments_core_http": "The WSGI application.",
    "payments_core_http.client": "The typed client.",
    "payments_core_http.client.codes": "The client's class of error for each code.",
    "payments_core_http.client.events": "The client's struct for each event.",
    "payments_core_http.testing": "Tools for your tests; the pytest plugin has them as fixtures.",
    "payments_core_http.django": "The application for Django.",
    "payments_core.storage.port": "The port of storages.",
    "payments_core.storage.capabilities": "What a storage may offer beyond its port.",
    "payments_core.limiters.port": "The port of limiters.",
    "payments_core.chains.port": "The port of chains.",
    "payments_core.banks.port": "The port of banks.",
    "payments_core.pricing.port": "The port of price sources.",
    "payments_core.routers.port": "The port of routers.",
    "payments_core.hosted_onramps.port": "The port of hosted on-ramps.",
    "payments_core.accounts.verification.port": "The port of KYC providers.",
    "payments_core.screening.port": "The port of screening providers.",
    "payments_core.notices.port": "The port of providers that report by webhook.",
    "payments_core.webhooks.transports.port": "The port of webhook transports.",
    "payments_core.conformance.storage": "The conformance suite for storages.",
    "payments_core.conformance.limiter": "The conformance suite for limiters.",
    "payments_core.conformance.chain": "The conformance suite for chains.",
    "payments_core.conformance.bank": "The conformance suite for banks.",
    "payments_core.conformance.kyc": "The conformance suite for KYC providers.",
    "payments_core.conformance.screening": "The conformance suite for screening providers.",
    "payments_core.conformance.onramp": "The conformance suite for hosted on-ramps.",
    "payments_core.conformance.pricing": "The conformance suite for price sources.",
    "payments_core.conformance.router": "The conformance suite for routers.",
    "payments_core.conformance.transport": "The conformance suite for webhook transports.",
}

PRINTED = frozenset({"payments_core_http.client.events"})
"""Modules that follow from another list: each event of the catalogue has its struct."""


def names() -> Iterator[str]:
    """Every public name, sorted; without those of PRINTED."""
    yield from sorted({*_imported(), *_commands(), *_groups()})


def _imported() -> Iterator[str]:
    for path in MODULES.keys() - PRINTED:
        module = importlib.import_module(path)
        if hasattr(module, "__all__"):
            own = module.__all__
        else:
            own = [
                name
                for name, value in vars(module).items()
                if not name.startswith("_")
                and getattr(value, "__module__", path) == path
                and not inspect.ismodule(value)
                and name not in ("annotations", "TYPE_CHECKING", "logger", "T")
            ]
        yield from (f"{path}.{name}" for name in own)


def _commands() -> Iterator[str]:
    def walk(command: click.Command, words: tuple[str, ...]) -> Iterator[str]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                if below is not None and not below.hidden:
                    yield from walk(below, (*words, name))
        else:
            yield "$ " + " ".join(words)

    yield from walk(payments, ("payments",))


def _groups() -> Iterator[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = set(project["entry-points"])
    ours |= {opener.group for opener in OPENERS}  # the package itself has no row of some
    yield from (f"[{group}]" for group in ours)


def page() -> str:
    """What stays compatible, and how anything public is removed."""
    groups = [code(name.strip("[]")) for name in names() if name.startswith("[")]
    commands = [code(name.removeprefix("$ ")) for name in names() if name.startswith("$ ")]
    return "\n\n".join(
        [
            "# Public interface",
            "The interface on this page changes only by additions, until it is deprecated.\n"
            "Anything else may change in any release: modules that are not listed, names with an"
            " underscore, database tables, and the texts of messages, logs and pages.",
            "## Over HTTP",
            "- A dated contract changes only by additions: new routes, new optional fields of"
            " bodies, new fields of answers, new events and new error codes. Ignore"
            " unknown fields.\n"
            f"- The [OpenAPI document](openapi-{CURRENT_VERSION}.json) is the contract for"
            " programs; a test refuses incompatible changes.\n"
            "- The legacy interface below `/sdk/v1` does not change.\n"
            "- Error codes do not change; messages may change.",
            "## In Python",
            "All names of these modules are public; [Python API](python.md) describes those of"
            " `payments_core`.\n"
            "The methods of ports get no new required arguments.\n"
            "A new method of a port has a default, or is added in a major release.",
            table(("Module", "What it is"), ((code(path), why) for path, why in MODULES.items())),
            f"These groups of entry points are public too: {', '.join(groups)}.",
            "## On the command line",
            "These commands, their options, their exit codes and their output with `--json` are"
            " public; their output for people may change.",
            ", ".join(commands) + ".",
            "The exit code of a command is 0 if it succeeded, and 2 if its arguments are not"
            " valid.\n"
            "The exit code is 1 if the command was refused or failed, or if its output needs"
            " attention, such as a fault that `payments doctor` found.\n"
            "The exit code of `payments worker` is 75 if it must be restarted.",
            "[Settings](settings.md), their variables and the names of [metrics](metrics.md) are"
            " public too.",
            "## Stored data",
            "Each release reads the data that the previous release wrote, and both can run side by"
            " side during an upgrade: [Upgrades](../explanation/upgrades.md).",
            "## How something public is removed",
            "1. A minor release deprecates it: the changelog and this documentation say what"
            " replaces it, and Python raises `DeprecationWarning` when it is used.\n"
            "2. It works for at least two more minor releases, and for at least six months.\n"
            "3. A major release removes it. A dated contract works for at least twelve months after"
            " the next contract is published.",
            "Before 1.0 a minor release may remove what the previous one deprecated.\n"
            "`SECURITY.md` says which releases get fixes: from 1.0 on, the minor release before the"
            " newest gets fixes for six months, the minimum time for which something deprecated"
            " works.\n"
            "Something unsafe, such as a security hole, may be removed at once; the changelog then"
            " says why.",
        ]
    )
