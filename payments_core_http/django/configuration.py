"""The deployment's configuration from Django's settings.

A setting has the name of its environment variable: `PAYMENTS_STORAGE_URL` is `storage.url`. The
variables count too, and replace settings of their name, as they replace those of a TOML file, which
`PAYMENTS_CONFIG` names. Beside them there are the settings of `OWN_SETTINGS`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from payments_core.errors import FieldError
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.loader import PREFIX, ConfigurationRefused, load_configuration
from payments_core_http.deployment.startup_rules import require_startable
from payments_core_http.django.databases import build_url

MIGRATE = "manage.py payments_migrate"
STORAGE_URL = "PAYMENTS_STORAGE_URL"
DATABASE = "PAYMENTS_DATABASE"
OWN_SETTINGS: Mapping[str, str] = {
    DATABASE: "the alias of a PostgreSQL database in DATABASES, in place of PAYMENTS_STORAGE_URL",
    "PAYMENTS_PARTNER_ID": "the partner id of the project's app",
    "PAYMENTS_APP_NAME": "the name of the project's app, which payers see",
}
WITHOUT_RING_FILE = (
    f"In a new sandbox `{MIGRATE}` creates it. Later, restore it: it opens what was sealed"
)
_DEFAULTS = {"PAYMENTS_PARTNER_ID": "django", "PAYMENTS_APP_NAME": "Shop"}


def read_own_setting(name: str) -> str:
    """One of `OWN_SETTINGS`, or its default."""
    return str(getattr(settings, name, None) or _DEFAULTS[name])


def find_database() -> str | None:
    """The alias of Django's database in which the service has its tables, if it has."""
    alias = getattr(settings, DATABASE, None)
    return None if alias is None else str(alias)


def list_given() -> Iterator[tuple[str, Any]]:
    """The settings of the project that begin as ours do and are not None, with their values."""
    for name in sorted(set(dir(settings))):  # an override in a test has names twice
        if name.startswith(PREFIX) and name.isupper():
            value = getattr(settings, name)
            if value is not None:
                yield name, value


def read_configuration() -> Configuration:
    """The configuration, which a process can be started with. Raises ConfigurationRefused."""
    configuration = load_configuration(None, list_variables())
    require_startable(configuration)
    return configuration


def list_variables() -> dict[str, str]:
    """The settings as environment variables, and all variables. Raises ConfigurationRefused."""
    texts = {name: as_text(name, value) for name, value in list_given() if name not in OWN_SETTINGS}
    alias = find_database()
    if alias is not None:
        if STORAGE_URL in texts or STORAGE_URL in os.environ:
            raise _refuse("storage.url", f"is set twice: in {STORAGE_URL} and in {DATABASE}")
        texts[STORAGE_URL] = build_url(alias)
    return {**texts, **os.environ}


def as_text(name: str, value: Any) -> str:
    """A setting as its variable would have it. Raises ConfigurationRefused."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | Path):
        return str(value)
    if isinstance(value, list | tuple):
        return ",".join(as_text(name, one) for one in value)
    path = name.removeprefix(PREFIX).lower()
    raise _refuse(path, "must be a text, a number, a boolean, a path or a list of them")


def explain(refusal: ConfigurationRefused) -> ImproperlyConfigured:
    """The refusal as Django's own error, with the names of the settings."""
    return ImproperlyConfigured(" ".join(describe(fault) for fault in refusal.faults))


def describe(fault: FieldError) -> str:
    """A fault in a sentence that begins with the setting's name in Django."""
    path = fault.path.partition("[")[0].replace(".", "_")
    subject = fault.path if fault.path.startswith(PREFIX) else PREFIX + path.upper()
    return f"{subject} {fault.message}."


def _refuse(path: str, message: str) -> ConfigurationRefused:
    return ConfigurationRefused("the settings of Django", (FieldError(path, message),))
