"""The dated contracts that this release serves (interface "Versioning")."""

from __future__ import annotations

CURRENT = "2026-09-09"
SUPPORTED: tuple[str, ...] = (CURRENT,)
