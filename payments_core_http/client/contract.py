# Printed from the OpenAPI document by docs/client: run `make client`.
"""The dated contract that this client is written for, and sends with each call."""

from __future__ import annotations

API_VERSION = "2026-09-09"
