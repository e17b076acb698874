"""The settings that a deployment decides, with their defaults."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import ClassVar

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.contracts.versions import Versions
from payments_core.engine.idempotency.record import RETENTION_MS
from payments_core.errors import ConfigurationError
from payments_core.maintenance.audit_purge import AUDIT_RETENTION_MS, MIN_AUDIT_MS
from payments_core.maintenance.retention import EVENTS_RETENTION_MS, MIN_EVENTS_MS
from payments_core.public_url import require_public_url
from payments_core.validation.arguments import check_fields
from payments_core.webhooks.settings import WebhookSettings

_INTEGRITY = re.compile(r"(sha256|sha384|sha512)-([A-Za-z0-9+/]+={0,2})", re.ASCII)
_PROJECT_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_RELAY_URL = re.compile(r"wss://[a-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?", re.ASCII)


@attrs.frozen
class WalletConnect:
    """WalletConnect on the checkout page, by a script that the operator supplies.

    `script` is the content of `dist/index.umd.js` of `@walletconnect/universal-provider`, a package
    of npm, and `integrity` its hash as HTML has it, such as `sha384-...`. `project_id` is the
    operator's at WalletConnect, and payers' browsers connect to `relay_url`. Raises ValueError,
    which names the field that is wrong.

    >>> WalletConnect("c0ffee", b"", "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
    WalletConnect(project_id='c0ffee', ...)
    """

    __repr__ = brief_repr
    checked_by_class: ClassVar[bool] = True

    project_id: str
    script: bytes = attrs.field(repr=False)
    integrity: str
    relay_url: str = "wss://relay.walletconnect.org"

    def __attrs_post_init__(self) -> None:
        written = _INTEGRITY.fullmatch(self.integrity)
        if written is None:
            raise ValueError("integrity must be sha256-, sha384- or sha512- and a base64 hash")
        found = base64.b64encode(hashlib.new(written[1], self.script).digest()).decode()
        if found != written[2]:
            raise ValueError(f"script has another hash than integrity: {written[1]}-{found}")
        if not _PROJECT_ID.fullmatch(self.project_id):
            raise ValueError("project_id must be 1 to 64 letters, digits, - and _")
        if not _RELAY_URL.fullmatch(self.relay_url):
            raise ValueError("relay_url must be a wss:// URL without a query")


@attrs.frozen
class Settings:
    """The settings that a deployment decides.

    `public_url` is the URL at which payers and partners reach the pages and the API: a scheme, a
    host and perhaps a path. Without it no link can be made: `payments.build_url` raises
    ConfigurationError, as do the API where an answer has a link, and the pages. `docs_url` is the
    URL of documentation that has a page for each error below `errors/`; without it errors name the
    application's pages, if `public_url` is set. `service_name` is shown by wallets to owners who
    sign that they hold them. A call with an idempotency key is answered from the store for
    `idempotency_retention_ms` milliseconds, 30 days unless given. Events and their deliveries are
    deleted `events_retention_ms` milliseconds after they end, 90 days unless given, at least 31.
    Entries of the audit trail are deleted after `audit_retention_ms` milliseconds, a year unless
    given, at least 30 days.
    At most `max_remote_calls` requests wait for chains, providers and name servers at the same
    time, so that hanging calls leave threads for the others; with five or more, hanging calls of
    two environments leave a place to a third. `deployment_operators` are the names of the log-ins
    whose dashboard also shows what only the operator of the deployment can mend: parked jobs,
    notices of unknown cases, senders low on gas. `webhooks` are the rules of deliveries, and
    `versions` the API versions that are served. With `walletconnect` the checkout page offers
    wallets by WalletConnect.
    Raises ValidationFailed for a value of the wrong kind, and ValueError for one out of range.

    >>> Settings("https://pay.example", max_remote_calls=8)
    Settings(public_url='https://pay.example', max_remote_calls=8)
    """

    __repr__ = brief_repr

    _public_url: str | None = attrs.field(
        default=None, converter=attrs.converters.optional(require_public_url)
    )
    docs_url: str | None = None
    service_name: str = "Payments Core"
    idempotency_retention_ms: int = RETENTION_MS
    events_retention_ms: int = attrs.field(
        default=EVENTS_RETENTION_MS, validator=attrs.validators.ge(MIN_EVENTS_MS)
    )
    audit_retention_ms: int = attrs.field(
        default=AUDIT_RETENTION_MS, validator=attrs.validators.ge(MIN_AUDIT_MS)
    )
    max_remote_calls: int = 5
    deployment_operators: tuple[str, ...] = ()
    webhooks: WebhookSettings = attrs.field(factory=WebhookSettings)
    versions: Versions = attrs.field(factory=Versions)
    walletconnect: WalletConnect | None = None

    def __attrs_post_init__(self) -> None:
        check_fields(self)

    @property
    def public_url(self) -> str:
        """The public URL, without a slash at its end. Raises ConfigurationError if unset."""
        if self._public_url is None:
            raise ConfigurationError("public_url")
        return self._public_url

    @property
    def has_public_url(self) -> bool:
        """Whether it was given."""
        return self._public_url is not None

    def locate_error_page(self, code: str) -> str | None:
        """The URL of the page about an error; None if neither URL is set."""
        docs = self.docs_url or (f"{self.public_url}/docs" if self.has_public_url else None)
        return None if docs is None else f"{docs.rstrip('/')}/errors/{code}"
