"""The service of a deployment, checked as at each start; and what the program around it decides."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import attrs

from payments_core.credentials.keyring import KeyRing
from payments_core.errors import FieldError
from payments_core.service import PaymentsService
from payments_core.storage.capabilities import ReportsMissingTables
from payments_core.storage.port import Storage
from payments_core.tenants.queries import has_apps
from payments_core_http.deployment import build as assembling
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.loader import ConfigurationRefused
from payments_core_http.deployment.signer_checks import require_sound_signers
from payments_core_http.deployment.startup_rules import find_warnings
from payments_core_http.observability import logs

MAX_NAMED_TABLES = 3

_log = logging.getLogger(__name__)


def migrate(storage: Storage) -> None:
    """Bring the storage up to date, as the commands `serve` and `worker` do at each start."""
    storage.migrate()


def require_migrated(storage: Storage, by: str) -> None:
    """Refuse a storage that has to be migrated first, `by` a command, and change nothing.

    Raises ConfigurationRefused, StorageUnavailable.
    """
    missing = storage.missing_tables() if isinstance(storage, ReportsMissingTables) else ()
    if missing:
        named = ", ".join(missing[:MAX_NAMED_TABLES])
        more = ", and others" if len(missing) > MAX_NAMED_TABLES else ""
        fault = FieldError("storage.url", f"lacks {named}{more}: run `{by}` first")
        raise ConfigurationRefused("as it was opened", (fault,))


@attrs.frozen
class Surroundings:
    """What the program around a deployment's process decides: a command of ours, or a framework."""

    prepare_storage: Callable[[Storage], None] = migrate
    """Called with the storage before anything uses it."""
    register: Callable[[PaymentsService], object] = lambda service: None
    """Called with the service of a worker before its first job."""
    configures_logs: bool = True
    """Whether the settings `log.level` and `log.format` apply."""


OWN_COMMAND = Surroundings()


def begin_logs(configuration: Configuration, surroundings: Surroundings = OWN_COMMAND) -> None:
    """Log as the settings say, unless the surroundings do; then log doubtful settings."""
    if surroundings.configures_logs:
        logs.configure(configuration.log.level, configuration.log.format)
    for warning in find_warnings(configuration):
        _log.warning("setting %s %s", warning.path, warning.message)


def open_service(
    configuration: Configuration,
    storage: Storage,
    key_ring: KeyRing,
    surroundings: Surroundings = OWN_COMMAND,
    **more: Any,
) -> PaymentsService:
    """The service on this storage. `more` is passed to it.

    Raises ConfigurationRefused, StorageError.
    """
    assembling.require_synchronized_clock(storage)
    assembling.require_safe_storage(configuration, storage)
    surroundings.prepare_storage(storage)
    service = assembling.build_service(configuration, storage, key_ring, **more)
    assembling.require_known_key_ring(service)
    assembling.require_servable_mode(configuration, service)
    assembling.require_matching_chains(service)
    require_sound_signers(service, configuration.mode)
    if not has_apps(storage):
        _log.warning("the storage has no app; if you expect one, check storage.url")
    service.refresh()  # a sandbox's clock continues from where it was
    return service
