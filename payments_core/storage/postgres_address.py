"""Where a PostgreSQL is and how it is spoken to: the URL, ours and libpq's parts of it apart."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import attrs
import psycopg
from psycopg.conninfo import conninfo_to_dict

from payments_core.storage.port import StorageError

DEFAULTS: Mapping[str, str | int] = MappingProxyType({
    "application_name": "payments-core",
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
})  # fmt: skip
"""What libpq is told unless the URL says otherwise: a host that has vanished is noticed within
half a minute, and not after the two hours that systems wait of themselves."""

_SWITCH = {"on": True, "off": False}


@attrs.frozen
class Settings:
    """What a URL may say beside libpq's own parameters; each field is one, by its name."""

    pool: int = 10
    """Connections that this process may have."""
    pool_timeout_s: int = 5
    """How long a call waits for one of them."""
    failover_s: int = 5
    """How long a call looks for a server that can be written to, once the connection was lost."""
    lock_timeout_ms: int = 2_000
    statement_timeout_ms: int = 30_000
    idle_in_transaction_ms: int = 60_000
    settings: bool = True
    """Whether a connection states these three as it begins; off for a pooler that refuses it."""
    prepare: bool = True
    """Whether statements are prepared; off for a pooler that cannot keep them apart."""


@attrs.frozen
class Address:
    """What a URL says."""

    parameters: Mapping[str, Any] = attrs.field(repr=False)
    """libpq's."""
    settings: Settings


def read_url(url: str, unless_told: Settings) -> Address:
    """The address that a URL names. Raises StorageError for one that cannot be read."""
    place, sign, query = url.partition("?")
    own: dict[str, Any] = {}
    others = []
    for part in query.split("&") if sign else ():
        name, _, value = part.partition("=")
        if name in attrs.fields_dict(Settings):
            own[name] = _read(name, unquote(value), getattr(unless_told, name))
        else:
            others.append(part)
    settings = attrs.evolve(unless_told, **own)
    try:
        told = conninfo_to_dict(place + "?" * bool(others) + "&".join(others))
    except psycopg.Error:
        # The driver's message may quote the URL, password and all.
        raise StorageError("PostgreSQL: the URL of the database cannot be read") from None
    parameters = {**DEFAULTS, **told}
    if settings.settings:
        # The URL's own come last, and so have the last word.
        parameters["options"] = f"{_options(settings)} {told.get('options', '')}".rstrip()
    return Address(parameters, settings)


def _read(name: str, text: str, like: int | bool) -> int | bool:
    if isinstance(like, bool):
        if text in _SWITCH:
            return _SWITCH[text]
        raise StorageError(f"PostgreSQL: {name} in the URL is on or off")
    if not (text.isascii() and text.isdecimal()) or (name == "pool" and int(text) == 0):
        raise StorageError(f"PostgreSQL: {name} in the URL is not a whole number")
    return int(text)


def _options(settings: Settings) -> str:
    """Settings of the session, in the packet that opens it: they cost no round trip."""
    stated = {
        "lock_timeout": settings.lock_timeout_ms,
        "statement_timeout": settings.statement_timeout_ms,
        "idle_in_transaction_session_timeout": settings.idle_in_transaction_ms,
        "jit": "off",  # compiling takes longer than any statement here
    }
    return " ".join(f"-c {name}={value}" for name, value in stated.items())
