"""Names of the library as names of the wire: in the errors of an operation, and in forms.

An operation names its arguments and their fields, `destination.account_id`; its caller over HTTP
has sent `destination.accountId`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from payments_core.errors import FieldError, ValidationFailed

_NAMES: Mapping[str, str] = {
    "tolerance_bps": "underpaymentToleranceBps",
    "seconds": "advanceSeconds",
    "types.settlement": "types.Settlement",  # the names of EIP-712
    "types.domain": "types.EIP712Domain",
}
"""The paths of which the wire has another name, not only another spelling."""

_CALLERS_OWN = "metadata"
"""Below it are names that the caller has chosen."""


def name_on_wire(path: str) -> str:
    """The path of a field on the wire: `expires_in_s` is `expiresInSeconds`."""
    if path in _NAMES:
        return _NAMES[path]
    own, dot, below = path.partition(f"{_CALLERS_OWN}.")
    if dot:
        return f"{name_on_wire(own)}{dot}{below}"
    return ".".join(map(_name_part, path.split(".")))


def _name_part(name: str) -> str:
    first, *others = re.sub(r"_s\b", "_seconds", name).split("_")
    return first + "".join(map(str.capitalize, others))


def name_faults(faults: Iterable[FieldError]) -> list[FieldError]:
    """The faults that the library finds, by their paths on the wire."""
    return [FieldError(name_on_wire(fault.path), fault.message) for fault in faults]


def name_failure(error: ValidationFailed) -> ValidationFailed:
    """The error of an operation, by paths on the wire."""
    return ValidationFailed(tuple(name_faults(error.fields)))
