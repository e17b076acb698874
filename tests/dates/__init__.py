"""A second dated contract that only tests know, as a release would add it.

The service's own shape is that of 2026-12-01 here, and 2026-09-09 differs from it.
"""

from __future__ import annotations

from payments_core.contracts.versions import Contract, Versions
from tests.dates import v2026_09_09

OLDER, NEWER = "2026-09-09", "2026-12-01"

VERSIONS = Versions((Contract(OLDER, v2026_09_09.CHANGES), Contract(NEWER)))
