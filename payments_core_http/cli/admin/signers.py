"""`payments admin signers`."""

from __future__ import annotations

from typing import Any

import click

from payments_core.chains.loader import SignerCheck
from payments_core.routers.cctp.line import KEY_NAME as ROUTER_KEY
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.service_command import (
    CommandResult,
    FailingResult,
    find_environment,
    with_service,
)
from payments_core_http.deployment.signer_checks import is_fault, list_signer_checks


@click.group()
def command() -> None:
    """Check the operators' keys, and list their addresses."""


@command.command()
@click.argument("environment", required=False)
@with_service
def check(
    service: PaymentsService, mode: str, environment: str | None
) -> CommandResult | FailingResult:
    """Sign with the key of each environment, or of ENVIRONMENT, and list the addresses.

    Each address needs the chain's native coin, and the admin must allow it as the operator. The
    exit code is 1 if a key is missing, a key service does not answer, or a signature is wrong.
    `cctp_router` in place of an environment is the key of the router `cctp:`; it needs coin only.
    """
    only = environment
    if environment not in (None, ROUTER_KEY):
        only = find_environment(service, mode, environment).id
    checks = list(list_signer_checks(service, mode, only=only))
    result = [_render_check(one) for one in checks]
    failed = any(is_fault(one) for one in checks)
    return FailingResult(result) if failed else result


def _render_check(check: SignerCheck) -> dict[str, Any]:
    return {
        "environmentId": check.environment_id,
        "signer": "former" if check.is_former else "current",
        "state": check.state,
        "address": check.address,
        "says": check.says or None,
    }
