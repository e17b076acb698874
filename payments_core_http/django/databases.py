"""The service's tables in a PostgreSQL database of Django's `DATABASES`.

They have a schema of their own there, so that no table of the project has the same name, and the
service has connections of its own: its transactions are never part of Django's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.db import connections

from payments_core.errors import FieldError
from payments_core_http.deployment.loader import ConfigurationRefused

SCHEMA = "payments_core"
"""Not `payments`: a role of that name would then find the schema first (`"$user"`)."""
_ENGINE = "postgresql"
_OF_LIBPQ = frozenset({
    "application_name", "connect_timeout", "gssencmode", "hostaddr", "keepalives",
    "keepalives_count", "keepalives_idle", "keepalives_interval", "krbsrvname", "options",
    "passfile", "require_auth", "service", "sslcert", "sslcertmode", "sslcompression", "sslcrl",
    "sslcrldir", "sslkey", "sslmode", "sslpassword", "sslrootcert", "sslsni",
    "ssl_min_protocol_version", "ssl_max_protocol_version", "target_session_attrs",
    "tcp_user_timeout",
})  # fmt: skip
"""The entries of `OPTIONS` that say how to reach the server: the service connects likewise."""
_OF_DJANGO = frozenset({
    "client_encoding", "context", "cursor_factory", "isolation_level", "pool", "prepare_threshold",
    "server_side_binding",
})  # fmt: skip
"""The entries that say how Django uses its own connections."""
_NAMES = {"USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port", "NAME": "dbname"}


def build_url(alias: str) -> str:
    """The URL of the service's storage in that database. Raises ConfigurationRefused."""
    databases: Mapping[str, Mapping[str, Any]] = settings.DATABASES
    if alias not in databases:
        raise _refuse(f"must be one of DATABASES: {', '.join(databases)}")
    database = databases[alias]
    if _ENGINE not in str(database.get("ENGINE", "")).rpartition(".")[2].replace(
        "postgis", _ENGINE
    ):
        raise _refuse(
            "must be a PostgreSQL database; with SQLite give the service a file of its own, as"
            " PAYMENTS_STORAGE_URL"
        )
    given: Mapping[str, Any] = database.get("OPTIONS") or {}
    if strange := sorted(given.keys() - _OF_LIBPQ - _OF_DJANGO):
        raise _refuse(
            f"names a database with {', '.join(strange)} in its OPTIONS, which the service cannot"
            " follow: give it PAYMENTS_STORAGE_URL"
        )
    parameters = {ours: str(database[name]) for name, ours in _NAMES.items() if database.get(name)}
    parameters |= {name: str(value) for name, value in given.items() if name in _OF_LIBPQ}
    of_session = f"{parameters.get('options', '')} -csearch_path={SCHEMA}"
    parameters["options"] = of_session.strip()
    return "postgresql:///?" + urlencode(parameters, quote_via=quote)


def create_schema(alias: str) -> None:
    """Create the schema of the service's tables, unless it is there, by Django's connection."""
    with connections[alias].cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")


def _refuse(message: str) -> ConfigurationRefused:
    fault = FieldError("PAYMENTS_DATABASE", message)
    return ConfigurationRefused("the settings of Django", (fault,))
