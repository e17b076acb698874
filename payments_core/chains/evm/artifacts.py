"""Our compiled contracts, as `make contracts` wrote them from `contracts/src`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import msgspec

_FILE = Path(__file__).with_name("contracts.json")


@attrs.frozen
class Contract:
    """A compiled contract.

    `creation` is the code that deploys it; arguments of its constructor are appended to that.
    `runtime` is the code that it then has, only for test contracts.
    """

    name: str
    abi: tuple[Mapping[str, Any], ...] = attrs.field(repr=False)
    creation: bytes = attrs.field(repr=False)
    runtime: bytes | None = attrs.field(repr=False)


def contract(name: str) -> Contract:
    """One of our contracts, by its name in the sources."""
    return _artifacts()[0][name]


def contracts() -> tuple[Contract, ...]:
    """All of them."""
    return tuple(_artifacts()[0].values())


def sources() -> Mapping[str, str]:
    """The SHA-256 of each source that they were compiled from, by its path in `contracts/src`."""
    return _artifacts()[1]


@cache
def _artifacts() -> tuple[Mapping[str, Contract], Mapping[str, str]]:
    document = msgspec.json.decode(_FILE.read_bytes())
    compiled = {
        name: Contract(
            name=name,
            abi=tuple(facts["abi"]),
            creation=bytes.fromhex(facts["bytecode"]),
            runtime=bytes.fromhex(facts["runtime"]) if "runtime" in facts else None,
        )
        for name, facts in document["contracts"].items()
    }
    return compiled, document["sources"]
