"""A configuration that is fit to start, for tests to make invalid."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from payments_core.credentials.keyring import KeyRing
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.loader import load_configuration

ADMIN = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"

SANDBOX: Mapping[str, str] = {
    "PAYMENTS_MODE": "sandbox",
    "PAYMENTS_PUBLIC_URL": "http://127.0.0.1:8080",
    "PAYMENTS_SIMULATED_CHAINS": "true",
    "PAYMENTS_KEYS_RING": KeyRing.generate(),
    "PAYMENTS_STORAGE_URL": "sqlite:///payments.db",
    "PAYMENTS_LIMITER_URL": "memory:",
}
PRODUCTION: Mapping[str, str] = {
    "PAYMENTS_MODE": "production",
    "PAYMENTS_PUBLIC_URL": "https://pay.example.com",
    "PAYMENTS_KEYS_RING": KeyRing.generate(),
    "PAYMENTS_STORAGE_URL": "postgresql://payments@db.example.com/payments",
    "PAYMENTS_LIMITER_URL": "redis://cache.example.com",
    "PAYMENTS_CHAINS_8453_URLS": "evm+https://a.example,evm+https://b.example,evm+https://c.example",
    "PAYMENTS_CHAINS_8453_SETTINGS_ADMIN": ADMIN,
    "PAYMENTS_PROVIDERS_SIGNER_URL": "kms://keys.example.com",
    "PAYMENTS_HTTP_TRUSTED_PROXIES": "127.0.0.1",
    "PAYMENTS_MANAGEMENT_PORT": "9464",
}


def configured(environ: Mapping[str, str], **changes: str | None) -> Configuration:
    """The configuration of these variables, some of them changed or (None) taken away."""
    changed = {**environ, **{f"PAYMENTS_{name}": value for name, value in changes.items()}}
    return load_configuration(
        None, {name: value for name, value in changed.items() if value is not None}
    )


def toml(values: Mapping[str, Any]) -> str:
    """A TOML document of tables of texts, numbers and truths, and of tables of these."""

    def written(value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, list):
            return "[" + ", ".join(map(written, value)) + "]"
        if isinstance(value, dict):
            fields = ", ".join(f"{name} = {written(item)}" for name, item in value.items())
            return f"{{ {fields} }}"
        return f'"{value}"' if isinstance(value, str | Path) else str(value)

    plain = [
        f"{name} = {written(value)}" for name, value in values.items() if type(value) is not dict
    ]
    tables = [
        "\n".join([f"[{name}]", *(f"{key} = {written(item)}" for key, item in value.items())])
        for name, value in values.items()
        if type(value) is dict
    ]
    return "\n".join([*plain, *tables]) + "\n"
