"""The URL of a PostgreSQL, split into our parameters and libpq's."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import attrs
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from payments_core.evolve import evolve
from payments_core.storage.port import StorageError

DEFAULTS: Mapping[str, str | int] = MappingProxyType({
    "application_name": "payments-core",
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "target_session_attrs": "read-write",
})  # fmt: skip
"""libpq's parameters unless the URL, its service file or a PG* variable has others: a host that
has vanished is noticed within half a minute, not after the system's default of two hours; and a
standby, whose answers are old, is not used."""

_SESSION_FIELDS = {
    "lock_timeout_ms": "lock_timeout",
    "statement_timeout_ms": "statement_timeout",
    "idle_in_transaction_ms": "idle_in_transaction_session_timeout",
}
"""PostgreSQL's name of each field of `ConnectionSettings` that is a setting of the session."""

_BOOLEANS = {"on": True, "off": False}

_INTEGER = re.compile(r"[0-9]{1,9}")
_RESERVED_CHARACTERS = r"@?%#,\s\"'\\"
_HOST = rf"(?:[^/{_RESERVED_CHARACTERS}]*|/[^{_RESERVED_CHARACTERS}]*|[0-9A-Fa-f:.]+%[\w.-]+)"
_HOSTS = re.compile(rf"{_HOST}(?:,{_HOST})*")
_NUMBERS = re.compile(r"-?[0-9]{0,9}")
_PATTERNS = {
    "host": _HOSTS,
    "hostaddr": _HOSTS,
    "port": re.compile(r"[0-9]{0,5}(?:,[0-9]{0,5})*"),
    "connect_timeout": _NUMBERS,
    "keepalives": _NUMBERS,
    "keepalives_idle": _NUMBERS,
    "keepalives_interval": _NUMBERS,
    "keepalives_count": _NUMBERS,
    "tcp_user_timeout": _NUMBERS,
}
"""The form of libpq parameters whose values would appear in an error: they may be a part
of a password that was not percent-encoded."""


_MAX_POLL_MS = 1_000_000_000
"""About the maximum of poll(2)."""


@attrs.frozen
class ConnectionSettings:
    """The URL's parameters besides libpq's; each field is one, by its name."""

    pool: int = 10
    """The maximum number of connections of this process."""
    pool_timeout_s: int = 5
    """How long a call waits for one of them."""
    failover_s: int = 5
    """How long a call looks for a server that can be written to, once the connection was lost."""
    lock_timeout_ms: int = 2_000
    statement_timeout_ms: int = 8_000
    idle_in_transaction_ms: int = 60_000
    answer_grace_s: int = 2
    """How much longer than `statement_timeout_ms` this side waits for any answer of the server:
    a hanging server does not keep its own timeouts. If either is 0, it waits forever."""
    settings: bool = True
    """Whether a connection sends these three and others at its start; off for a pooler that refuses
    them."""
    prepare: bool = True
    """Whether statements are prepared; off for a pooler that mixes them up."""

    @property
    def response_timeout_ms(self) -> int | None:
        """How long a server may be silent; None means forever."""
        if not (self.answer_grace_s and self.statement_timeout_ms):
            return None
        return min(self.statement_timeout_ms + 1_000 * self.answer_grace_s, _MAX_POLL_MS)


@attrs.frozen
class ConnectionTarget:
    """The parsed URL."""

    parameters: Mapping[str, Any] = attrs.field(repr=False)
    """libpq's parameters."""
    settings: ConnectionSettings


def parse_url(url: str, defaults: ConnectionSettings) -> ConnectionTarget:
    """The address that a URL names. Raises StorageError for one that cannot be read."""
    place, sign, query = url.partition("?")
    _require_single_at_sign(place)
    own: dict[str, Any] = {}
    others = []
    for part in query.split("&") if sign else ():
        name, _, value = part.partition("=")
        if name in attrs.fields_dict(ConnectionSettings):
            own[name] = _parse_option(name, unquote(value), getattr(defaults, name))
        else:
            others.append(part)
    settings = evolve(defaults, **own)
    try:
        libpq_parameters = conninfo_to_dict(place + "?" * bool(others) + "&".join(others))
    except psycopg.Error:
        # The driver's message may quote the URL, password and all.
        raise StorageError("PostgreSQL: the database URL is not valid") from None
    for name, form in _PATTERNS.items():
        if not form.fullmatch(str(libpq_parameters.get(name) or "")):
            raise StorageError(f"PostgreSQL: {name} in the URL is not valid")
    stated = {**_read_surroundings(libpq_parameters.get("service")), **libpq_parameters}
    # Not configurable: no other process would find rows written in another encoding.
    parameters = {**DEFAULTS, **stated, "client_encoding": "utf8"}
    if settings.settings:
        # The last takes precedence: what the URL says, then its surroundings, then our defaults.
        session = _session_settings(settings)
        of_url = {
            name: session.pop(name) for field, name in _SESSION_FIELDS.items() if field in own
        }
        parts = [_as_options(session), str(stated.get("options", ""))]
        parts.insert(1 if "options" in libpq_parameters else 2, _as_options(of_url))
        parameters["options"] = " ".join(filter(None, parts))
    return ConnectionTarget(parameters, settings)


def _read_surroundings(service: str | int | None) -> dict[str, str]:
    """What libpq's other sources say of the parameters that we pass, and would hide from it.

    They are the section of a service file, named by the URL or PGSERVICE, and the PG* variables.
    libpq itself resolves them, for a connection to an address where there can be no server. A
    missing service is reported by the real connection.
    """
    probe = make_conninfo(host="/dev/null", hostaddr="", service=service)
    nowhere = psycopg.pq.PGconn.connect_start(probe.encode())
    try:
        options = nowhere.info
    finally:
        nowhere.finish()
    found = {}
    for option in options:
        name, value = option.keyword.decode(), option.val
        is_variable = option.envvar is not None and option.envvar.decode() in os.environ
        if value and (value != option.compiled or is_variable):
            found[name] = value.decode(errors="replace")
    return {name: found[name] for name in (*DEFAULTS, "options") if name in found}


def _require_single_at_sign(place: str) -> None:
    """Refuse the end of a password that libpq would take for a host or a database."""
    authority, _, database = place.partition("://")[2].partition("/")
    if authority.count("@") > 1 or "@" in database:
        raise StorageError(
            "PostgreSQL: the URL has more than one @; write an @ in a password as %40"
        )


def _parse_option(name: str, text: str, like: int | bool) -> int | bool:
    if isinstance(like, bool):
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        raise StorageError(f"PostgreSQL: {name} in the URL must be on or off")
    if not _INTEGER.fullmatch(text) or (name == "pool" and int(text) == 0):
        raise StorageError(f"PostgreSQL: {name} in the URL must be a positive whole number")
    return int(text)


def _session_settings(settings: ConnectionSettings) -> dict[str, str | int]:
    """Settings of the session, in the packet that opens it: they need no round trip."""
    return {
        **{name: getattr(settings, field) for field, name in _SESSION_FIELDS.items()},
        "jit": "off",  # compiling takes longer than any statement here
        # Each statement has its index. Without these two, a plan that was made while a table was
        # small reads the whole table after it has grown, until the server gathers statistics.
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
    }


def _as_options(session: Mapping[str, str | int]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in session.items())
