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
class CompiledContract:
    """A compiled contract.

    `creation` is the code that deploys it; arguments of its constructor are appended to that.
    `runtime` is the code that it then has, only for test contracts.
    """

    name: str
    abi: tuple[Mapping[str, Any], ...] = attrs.field(repr=False)
    creation: bytes = attrs.field(repr=False)
    runtime: bytes | None = attrs.field(repr=False)


def load_contract(name: str) -> CompiledContract:
    """One of our contracts, by its name in the sources."""
    return _load_artifacts()[0][name]


def load_contracts() -> tuple[CompiledContract, ...]:
    """All of our contracts."""
    return tuple(_load_artifacts()[0].values())


def load_source_hashes() -> Mapping[str, str]:
    """The SHA-256 of each source that they were compiled from, by its path in `contracts/src`."""
    return _load_artifacts()[1]


@cache
def _load_artifacts() -> tuple[Mapping[str, CompiledContract], Mapping[str, str]]:
    document = msgspec.json.decode(_FILE.read_bytes())
    compiled = {
        name: CompiledContract(
            name=name,
            abi=tuple(facts["abi"]),
            creation=bytes.fromhex(facts["bytecode"]),
            runtime=bytes.fromhex(facts["runtime"]) if "runtime" in facts else None,
        )
        for name, facts in document["contracts"].items()
    }
    return compiled, document["sources"]
