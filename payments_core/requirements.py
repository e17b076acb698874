"""The oldest versions that work, of what pip does not install: one table, and its check.

An older version is refused where it is opened, because it would fail later: with an SQLite that
does not know `->>`, Payments are made and paid, and no job runs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

Version = tuple[int, ...]

MINIMUM_VERSIONS: Mapping[str, Version] = MappingProxyType({
    "Python": (3, 11),
    "SQLite": (3, 38),  # the operator ->>; RETURNING is older
    "PostgreSQL": (15,),  # the oldest that is tested
    "libpq": (14,),  # pipelines
    "Redis": (6, 2),  # the oldest that is tested
    "libcurl": (7, 55),  # CURLOPT_REQUEST_TARGET
})  # fmt: skip
"""The first version that works, by the name of the program or library."""


def find_version_fault(name: str, found: Sequence[int]) -> str | None:
    """A sentence for operators if `found` is older than the table's version of `name`, or None."""
    minimum = MINIMUM_VERSIONS[name]
    if tuple(found) >= minimum:
        return None
    return f"{name} {_dotted(minimum)} or newer is needed, and this is {name} {_dotted(found)}"


def split_number(number: int) -> Version:
    """The version in a number of PostgreSQL or libpq: 150004 is 15.4, and 90603 is 9.6.3."""
    major, rest = divmod(number, 10_000)
    return (major, rest) if major >= 10 else (major, rest // 100, rest % 100)


def require_python() -> None:
    """Raises ImportError if this Python is too old."""
    if fault := find_version_fault("Python", sys.version_info[:3]):
        raise ImportError(f"payments-core: {fault}")


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
