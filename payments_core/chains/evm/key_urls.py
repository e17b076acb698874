"""What the URLs of key services have in common: names of keys, and addresses that are expected.

An environment's key is `PREFIX/ENVIRONMENT`, such as `payments/env_-P23J5k-D8QQDDBxu8rHlL0O`. A
parameter `env_…=0x…` pins the address of that environment's operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from payments_core.addresses import AddressError, normalize_address

_PIN = "env_"


def key_name(prefix: str, environment_id: str) -> str:
    """The name of an environment's key in the key service."""
    return f"{prefix}/{environment_id}"


def split_pins(
    parameters: Iterable[tuple[str, str]], known: Iterable[str]
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The parameters that are `known`, and the pinned addresses by environment.

    Raises ValueError for any other parameter, for one that is given twice, and for a pin that is
    no address. It never quotes a value, which may be a secret.
    """
    found: dict[str, str] = {}
    pins: dict[str, str] = {}
    names = frozenset(known)
    for name, value in parameters:
        if name in found or name in pins:
            raise ValueError(f"{name} is given twice")
        if name in names:
            found[name] = value
        elif name.startswith(_PIN):
            pins[name] = _read_address(name, value)
        else:
            raise ValueError(f"unknown parameter; known are {', '.join(sorted(names))} and env_…")
    return found, pins


def _read_address(environment_id: str, text: str) -> str:
    try:
        return normalize_address("evm", text)
    except AddressError as error:
        raise ValueError(f"the address of {environment_id} {error}") from error
