"""The service that a configuration describes, each port opened by its URL: the one place that
builds a process of a deployment.

If a port cannot be opened, the error names the path of its setting, and contains no secret.
"""

from __future__ import annotations

import logging
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from payments_core.chains.loader import Checkable, open_chain, open_signer
from payments_core.chains.port import Chain, ChainMismatch, ChainUnavailable, SignerRefused
from payments_core.chains.rotated_signer import RotatedSigner
from payments_core.clock import (
    DAY,
    MAX_CLOCK_SKEW_MS,
    SECOND,
    HasServerTime,
    SystemClock,
    measure_clock_skew_ms,
)
from payments_core.credentials.keyring import KeyRing
from payments_core.errors import FieldError, ValidationFailed
from payments_core.extras import describe_need
from payments_core.limiters.loader import open_limiter
from payments_core.limiters.policies import RateLimits
from payments_core.limiters.port import Limiter
from payments_core.port_loader import (
    open_bank,
    open_kyc,
    open_onramp,
    open_pricing,
    open_router,
    open_screening,
)
from payments_core.service import PaymentsService
from payments_core.settings import Settings, WalletConnect
from payments_core.storage.capabilities import ReportsConfigProblems
from payments_core.storage.port import Storage, StorageError
from payments_core.storage_loader import open_storage
from payments_core.tenants.master_keys import UnknownKeyRing, find_missing_keys
from payments_core.waiting import NO_WAITS, Waits
from payments_core.webhooks.destinations import RefusedPrefix
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import Transport
from payments_core_http.client_address import parse_networks
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.loader import ConfigurationRefused
from payments_core_http.deployment.networks import build_networks
from payments_core_http.redaction import redact
from payments_core_http.throttling import Throttle

T = TypeVar("T")

_log = logging.getLogger(__name__)


WITHOUT_RING_FILE = (
    "Put the file back, or for a new deployment make a key with `payments admin key-ring new k1`"
)


def build_key_ring(configuration: Configuration, *, advice: str = WITHOUT_RING_FILE) -> KeyRing:
    """The master key ring. Raises ConfigurationRefused, with the advice if its file is missing."""
    keys = configuration.keys
    if keys.ring is not None:
        ring = keys.ring
        return _open_setting("keys.ring", lambda: KeyRing.parse(ring))
    path = Path(keys.ring_file or "")
    try:
        return _open_setting("keys.ring_file", lambda: KeyRing.parse(_read_secret_file(path)))
    except ConfigurationRefused as refusal:
        if not isinstance(refusal.__cause__, FileNotFoundError):
            raise
        message = f"points to a file that does not exist: {path}. {advice}"
        raise _refusal("keys.ring_file", message) from refusal.__cause__


def build_storage(configuration: Configuration, waits: Waits = NO_WAITS) -> Storage:
    """The storage, without a query yet. Raises ConfigurationRefused."""
    url = configuration.storage.url
    return _open_setting("storage.url", lambda: open_storage(url, waits=waits))


def build_limiter(configuration: Configuration) -> Limiter:
    """The limiter, without a query yet. Raises ConfigurationRefused."""
    return _open_setting("limiter.url", lambda: open_limiter(configuration.limiter.url))


def build_throttle(configuration: Configuration) -> Throttle:
    """The rate policies. Raises ConfigurationRefused."""
    return Throttle(
        build_limiter(configuration),
        RateLimits(configuration.limits),
        trusted_proxies=parse_networks(configuration.http.trusted_proxies),
    )


def build_chains(configuration: Configuration) -> Mapping[int, Chain] | None:
    """The chains by their number, without a query to a node yet; None if all are simulated.

    Raises ConfigurationRefused.
    """
    if configuration.simulated_chains and not configuration.chains:
        return None
    url = configuration.providers.signer.url
    signer = (
        None if url is None else _open_setting("providers.signer.url", lambda: open_signer(url))
    )
    former = tuple(
        _open_setting("providers.signer.former_urls", partial(open_signer, before))
        for before in configuration.providers.signer.former_urls
    )
    if former and signer is not None:
        signer = RotatedSigner(signer, former)
    networks = build_networks(configuration)

    return {
        int(number): _open_setting(
            f"chains.{number}",
            partial(
                open_chain,
                int(number),
                one.urls,
                signer=signer,
                settings=one.settings,
                network=networks.get(int(number)),
            ),
        )
        for number, one in configuration.chains.items()
    }


def build_service(
    configuration: Configuration, storage: Storage, key_ring: KeyRing, **more: Any
) -> PaymentsService:
    """The service. `more` is passed to it. Raises ConfigurationRefused."""
    webhooks = configuration.webhooks
    settings = Settings(
        public_url=configuration.public_url,
        docs_url=configuration.docs_url,
        service_name=configuration.service_name,
        idempotency_retention_ms=configuration.idempotency_days * DAY,
        events_retention_ms=configuration.events_days * DAY,
        audit_retention_ms=configuration.audit_days * DAY,
        max_remote_calls=_count_remote_calls(configuration.http.threads),
        deployment_operators=configuration.deployment_operators,
        webhooks=WebhookSettings(
            max_active_endpoints=webhooks.max_active_endpoints,
            max_attempts=webhooks.max_attempts,
            attempt_s=webhooks.attempt_s,
            local_allowed=webhooks.local_allowed,
            refused_prefixes=tuple(
                RefusedPrefix.of(prefix, "refused by the operator")
                for prefix in webhooks.refused_prefixes
            ),
        ),
        walletconnect=_build_walletconnect(configuration),
    )
    chains = build_chains(configuration)
    networks = build_networks(configuration)
    try:
        return PaymentsService(
            storage,
            key_ring,
            settings=settings,
            chains=chains,
            simulated_chains=configuration.simulated_chains,
            networks=networks,
            kyc=_open_url("providers.kyc.url", configuration.providers.kyc.url, open_kyc),
            bank=_open_url("providers.bank.url", configuration.providers.bank.url, open_bank),
            pricing=_open_url(
                "providers.pricing.url",
                configuration.providers.pricing.url,
                partial(open_pricing, chains=chains or {}),
            ),
            router=_open_url(
                "providers.router.url",
                configuration.providers.router.url,
                partial(open_router, chains=chains or {}, storage=storage, networks=networks),
            ),
            onramp=_open_url(
                "providers.onramp.url", configuration.providers.onramp.url, open_onramp
            ),
            screening=_open_url(
                "providers.screening.url", configuration.providers.screening.url, open_screening
            ),
            transport=_build_transport(configuration),
            **more,
        )
    except ValidationFailed as failure:  # of a chain that does not fit its network
        raise ConfigurationRefused("as it was opened", failure.fields) from failure


def require_known_key_ring(service: PaymentsService) -> None:
    """Refuse a key ring that belongs to another storage. Raises ConfigurationRefused."""
    try:
        service.verify_key_ring()
    except UnknownKeyRing as error:
        raise _refusal("keys", f"cannot be used: {error}") from error
    for name in find_missing_keys(service.parts.ports.storage, service.parts.ports.key_ring):
        _log.warning("stored data is sealed with key %s, which is not in the key ring", name)


def require_servable_mode(configuration: Configuration, service: PaymentsService) -> None:
    """Refuse chains that cannot serve the mode. Raises ConfigurationRefused."""
    try:
        service.require_mode(configuration.mode)
    except ValueError as error:
        raise _refusal("chains", str(error)) from error


def require_synchronized_clock(storage: Storage) -> None:
    """Refuse to run with a clock that is far from the storage's. Raises ConfigurationRefused.

    Leases and the lifetime of idempotency keys are measured by this machine's clock.
    """
    if isinstance(storage, HasServerTime):
        off = measure_clock_skew_ms(storage, SystemClock())
        if off > MAX_CLOCK_SKEW_MS:
            raise _refusal(
                "storage.url",
                "is a server whose clock differs from this machine's clock by "
                f"{off / SECOND:.1f} s: synchronize the clocks with NTP",
            )


def require_safe_storage(configuration: Configuration, storage: Storage) -> None:
    """Refuse, in production, a database that may lose acknowledged writes; elsewhere log a warning.

    Raises ConfigurationRefused.
    """
    if not isinstance(storage, ReportsConfigProblems):
        return
    for fault in storage.config_errors():
        if configuration.mode == "production":
            raise _refusal("storage.url", f"is not a safe database: {fault}")
        _log.warning("unsafe database setting: %s", fault)
    for doubt in storage.config_warnings():
        _log.warning("possibly unsafe database setting: %s", doubt)


@contextmanager
def report_listen_failure(path: str, host: str, port: int) -> Iterator[None]:
    """Report an address that cannot be listened on by the path of its setting."""
    try:
        yield
    except OSError as error:
        raise _refusal(
            path, f"cannot listen on {host}, port {port}: {error.strerror or error}"
        ) from error


def require_matching_chains(service: PaymentsService) -> None:
    """Check that each chain's nodes serve it, with our contracts. Nodes that do not answer do not
    prevent a start: their later answers are checked again.

    Raises ConfigurationRefused.
    """
    for number, chain in service.chains.items():
        if isinstance(chain, Checkable):
            try:
                chain.check()
            except ChainMismatch as error:
                raise _refusal(f"chains.{number}", str(error)) from error
            except ChainUnavailable as error:
                _log.warning("chain %d is paused until its nodes answer: %s", number, error)


def _count_remote_calls(threads: int) -> int:
    """Half of the threads for one kind of service and one for the others, but never all threads."""
    return max(1, min(threads // 2 + 1, threads - 1))


def _build_walletconnect(configuration: Configuration) -> WalletConnect | None:
    given = configuration.walletconnect
    if given.script is None or given.integrity is None or given.project_id is None:
        return None  # all three, as `startup_rules` has it
    script = _open_setting("walletconnect.script", Path(given.script).read_bytes)
    made = partial(WalletConnect, given.project_id, script, given.integrity, given.relay_url)
    return _open_setting("walletconnect", made)


def _build_transport(configuration: Configuration) -> Transport | None:
    if configuration.webhooks.transport == "threads":
        return None
    from payments_core.webhooks.transports.curl import CurlTransport

    return _open_setting("webhooks.transport", CurlTransport)


def _read_secret_file(path: Path) -> str:
    """The content of a secret file. Raises OSError, and ValueError if everybody may read it."""
    text = path.read_text(encoding="ascii")
    if path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH):
        raise ValueError("is open to all users: chmod o-rw it")
    return text


def _open_url(path: str, url: str | None, open_it: Callable[[str], T]) -> T | None:
    """The adapter that a setting names; None if it is not set. Raises ConfigurationRefused."""
    return None if url is None else _open_setting(path, lambda: open_it(url))


def _open_setting(path: str, open_it: Callable[[], T]) -> T:
    try:
        return open_it()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise _refusal(path, f"points to a file that cannot be read: {reason}") from error
    except ModuleNotFoundError as error:
        raise _refusal(path, describe_need(error.name or "a module")) from error
    except (ValueError, SignerRefused, StorageError, ChainMismatch) as error:
        raise _refusal(path, f"cannot be used: {redact(str(error))}") from error
    except Exception as error:  # an adapter's own error, whose text may quote the URL
        raise _refusal(path, f"cannot be opened: {type(error).__name__}") from error


def _refusal(path: str, message: str) -> ConfigurationRefused:
    return ConfigurationRefused("as it was opened", (FieldError(path, message),))
