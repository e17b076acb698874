"""The header `Service-Version`: agreed with what the credential is bound to, never obeyed blindly.

Interface "Versioning" 2 to 6 and contract §3 "Versions".
"""

from __future__ import annotations

from collections.abc import Iterable

from payments_core.errors import UnsupportedVersion, VersionMismatch
from payments_core.versions import SUPPORTED


def require_agreement(asked: str | None, bound: Iterable[str]) -> None:
    """Return if the caller asked for no version, or for the one that all credentials are bound to.

    Raises UnsupportedVersion for a version that this deployment does not serve, and
    VersionMismatch for another than the bound one.
    """
    if asked is None:
        return
    if asked not in SUPPORTED:
        raise UnsupportedVersion(SUPPORTED)
    for version in bound:
        if asked != version:
            raise VersionMismatch(version)
