"""The extra that installs a missing package, named wherever an import may fail for want of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec

EXTRA_OF: Mapping[str, str] = {
    "falcon": "server",
    "click": "server",
    "rich": "server",
    "jinja2": "server",
    "segno": "server",
    "babel": "server",
    "pyotp": "server",
    "prometheus_client": "server",
    "psycopg": "postgres",
    "psycopg_binary": "postgres",
    "pycurl": "curl",
    "redis": "redis",
    "hiredis": "redis",
    "eth_abi": "evm",
    "rlp": "evm",
    "cryptography": "evm",
    "boto3": "aws-kms",
    "botocore": "aws-kms",
    "pkcs11": "pkcs11",
    "httpx2": "client",
    "httpcore2": "client",
    "anyio": "client",
    "opentelemetry": "otel",
    "django": "django",
    "asgiref": "django",
}
"""The extra of `pyproject.toml` that installs each module."""


class ExtraMissing(ModuleNotFoundError):
    """A package is not installed; the message has the command that installs it."""

    def __init__(self, what: str, module: str) -> None:
        super().__init__(f"{what} {describe_need(module)}", name=module)


def describe_need(module: str) -> str:
    """What is missing, with the command that installs it if the module is one of an extra."""
    package = module.partition(".")[0]
    extra = EXTRA_OF.get(package)
    command = "" if extra is None else f": pip install 'payments-core[{extra}]'"
    return f"needs {package}, which is not installed{command}"


@contextmanager
def naming_extra(what: str) -> Iterator[None]:
    """Raise ExtraMissing for the import of a package of an extra; other errors are as they are."""
    try:
        yield
    except ModuleNotFoundError as error:
        if isinstance(error, ExtraMissing) or (error.name or "").partition(".")[0] not in EXTRA_OF:
            raise
        raise ExtraMissing(what, error.name or "") from error


def require_packages(what: str, *modules: str) -> None:
    """Raise ExtraMissing if a package is missing that is only imported later, in use."""
    for module in modules:
        if find_spec(module) is None:
            raise ExtraMissing(what, module)
