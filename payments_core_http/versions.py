"""The header `Service-Version`: agreed with what the credential is bound to, never obeyed blindly.

Interface "Versioning" 2 to 6 and contract §3 "Versions".
"""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.errors import UnsupportedVersion, VersionMismatch
from payments_core.versions import Versions


def require_version_agreement(versions: Versions, asked: str | None, bound: Sequence[str]) -> None:
    """Return if the caller requested no version, or the one that all credentials are bound to.

    Raises UnsupportedVersion if this deployment does not serve the requested or the bound version,
    and VersionMismatch if the two differ.
    """
    for version in bound if asked is None else (asked, *bound):
        if version not in versions.supported:
            raise UnsupportedVersion(versions.supported)
    for version in bound:
        if asked not in (None, version):
            raise VersionMismatch(version)
