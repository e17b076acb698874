"""The self-check of a deployment's signers: sign, recover, compare, for each environment."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import islice

from payments_core.chains.loader import ChecksOperators, ChecksSigners, SignerCheck
from payments_core.chains.port import ChainError, WrongSignature
from payments_core.errors import FieldError
from payments_core.routers.port import HasSignerKey
from payments_core.service import PaymentsService
from payments_core.tenants.queries import iterate_apps
from payments_core_http.deployment.findings import Finding
from payments_core_http.deployment.loader import ConfigurationRefused
from payments_core_http.redaction import redact

MAX_CHECKED_AT_START = 50
"""Environments, the oldest first. Every signature is checked again when it is made."""

_log = logging.getLogger(__name__)


def require_sound_signers(service: PaymentsService, mode: str) -> None:
    """Refuse to start with a signer whose signatures are by another key or of other data, or with
    a curve library that is wrong. What has no key, or does not answer, is a warning: its transfers
    wait.

    Raises ConfigurationRefused.
    """
    for check in list_signer_checks(service, mode, MAX_CHECKED_AT_START):
        path = f"providers.signer.{'former_urls' if check.is_former else 'url'}"
        says = f"{check.environment_id}: {redact(check.says)}"
        if check.state == "wrong":
            fault = FieldError(path, f"must not sign for {says}")
            raise ConfigurationRefused("as it was opened", (fault,))
        if is_fault(check):
            _log.warning("%s cannot sign for %s", path, says)


def list_signer_checks(
    service: PaymentsService, mode: str, limit: int | None = None, only: str | None = None
) -> Iterator[SignerCheck]:
    """What was found of each environment of a mode, or of the `only` one, with each signer.

    A router's own key comes first, under its name.

    A deployment has the same signers for all its chains, so one chain is enough; simulated chains
    have none. Raises ConfigurationRefused if the curve library is wrong.
    """
    chain = next((one for one in service.chains.values() if isinstance(one, ChecksSigners)), None)
    if chain is None:
        return
    router: object = service.parts.routers.get(mode)
    own = (router.key_name,) if isinstance(router, HasSignerKey) else ()
    environments = islice(_find_environments(service, mode), limit)
    found: Iterable[str] = [only] if only is not None else (*own, *environments)
    try:
        yield from chain.check_signers(found)
    except WrongSignature as error:
        fault = FieldError("providers.signer.url", f"cannot be used: {error}")
        raise ConfigurationRefused("as it was opened", (fault,)) from error


def find_signer_faults(service: PaymentsService, mode: str) -> Iterator[Finding]:
    """What `payments doctor` says of the signers: a line for all, and one for each that fails."""
    sound = checked = 0
    for check in list_signer_checks(service, mode, MAX_CHECKED_AT_START):
        checked += 1
        sound += check.state == "sound"
        if is_fault(check):
            which = "the former signer" if check.is_former else "the signer"
            says = f"{which} cannot sign for {check.environment_id}: {redact(check.says)}"
            yield Finding("signer", "fault", says, "see docs/how-to/keys.md")
    if sound:
        says = f"{sound} keys sign, and the curve library computes what OpenSSL computes"
        yield Finding("signer", "ok", says)
    elif not checked and any(isinstance(one, ChecksSigners) for one in service.chains.values()):
        yield Finding("signer", "ok", "it is opened; no environment has a key to check yet")


def find_refused_operators(service: PaymentsService, mode: str) -> Iterator[Finding]:
    """What `payments doctor` says of the operators on each chain that must allow them: a line for
    all, and one for each that is not allowed."""
    checked = {
        n: chain for n, chain in service.chains.items() if isinstance(chain, ChecksOperators)
    }
    if not checked:
        return
    environments = list(islice(_find_environments(service, mode), MAX_CHECKED_AT_START))
    for number, chain in checked.items():
        name = f"operators of chain {number}"
        try:
            refused = chain.find_refused_operators(environments)
        except ChainError as error:
            says = f"it is not known whether they are allowed: {error}"
            yield Finding(name, "warning", says, "see the lines of the chain")
            continue
        for id, operator in refused.items():
            says = f"the factory does not let {operator} move the money of {id}"
            remedy = "its admin calls setOperator: see docs/how-to/keys.md"
            yield Finding(name, "fault", says, remedy)
        if environments and not refused:
            yield Finding(name, "ok", "the factory lets each move the money of its environment")


def is_fault(check: SignerCheck) -> bool:
    """Whether transfers wait for it: a former signer has no keys of newer environments."""
    return check.state != "sound" and not (check.state == "refused" and check.is_former)


def _find_environments(service: PaymentsService, mode: str) -> Iterable[str]:
    for app in iterate_apps(service.parts.ports.storage):
        if mode in app.environments:
            yield app.environments[mode]
