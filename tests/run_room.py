"""Runs the tests of one room in under half a minute: `make test ROOM=refunds`.

python -m tests.run_room ROOM [ARGUMENTS OF PYTEST]

The folders of `tests` have the names of the rooms, so a room's tests are found by its name; the
tables below have what names do not say. A room may be nested, as `refunds` is in `payments`.
Tests that know several storages run on the one in memory, tests that are marked as slow not at
all; `make check` runs everything.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("payments_core", "payments_core_http")
SELF = "."
"""In a row: what the name of the room finds. A path after a minus is left out of that."""

# What covers a room beside, or in place of, the folders and files of its name.
TESTS: Mapping[str, tuple[str, ...]] = {
    # Rooms of a file each, whose tests lie with others.
    "adapters": (
        "tests/storage/test_opening.py",
        "tests/limiters/test_opening.py",
        "tests/chains/evm/test_opening.py",
        "tests/deployment/test_broken_adapters.py",
    ),
    "addresses": ("tests/core/test_values.py", "tests/core/accounts"),
    "amounts": ("tests/core/test_values.py", SELF),
    "networks": ("tests/core/test_networks.py", "tests/core/accounts"),
    "request_recorder": ("tests/http/dashboard/test_request_pages.py",),
    "client_address": ("tests/http/throttling", "tests/http/hostile/test_proxies.py"),
    "clock": (
        "tests/core/test_values.py",
        "tests/service/sandbox/test_one_clock.py",
        "tests/service/test_deadlines.py",
    ),
    "browser_sessions": ("tests/http/dashboard/test_sessions.py",),
    "cors": ("tests/http/v2/public/test_public_origins.py",),
    "entropy": ("tests/core/credentials", "tests/core/test_values.py"),
    "money": ("tests/core/test_values.py", "tests/core/accounts/vaults"),
    "page_headers": (
        "tests/http/pages/test_checkout_page.py",
        "tests/http/dashboard/test_sessions.py",
    ),
    "fork_safety": ("tests/core/test_fork_safety.py",),
    "passed_objects": ("tests/test_passed_objects.py",),
    "paying": (
        "tests/service/payments/funding",
        "tests/service/payments/options",
        "tests/core/payments/options",
    ),
    "plain_calls": ("tests/test_passed_objects.py", "tests/webhooks/test_plain_calls.py"),
    "providers": ("tests/service/routers", "tests/service/payments/payouts/test_payouts.py"),
    "inbox": ("tests/http/dashboard/test_inbox_page.py",),
    "public_url": ("tests/core/test_public_url.py", "tests/deployment/test_weaknesses.py"),
    "record_types": ("tests/upgrades/test_forms.py", "tests/storage/test_records.py"),
    "redaction": (SELF, "tests/http/errors"),
    "refunding": ("tests/service/payments/refunds", "tests/core/payments/refunds"),
    "routing": ("tests/http/app/test_pipeline.py", "tests/http/calls"),
    "storage_loader": ("tests/storage/test_opening.py", "tests/deployment/test_broken_adapters.py"),
    "telemetry": ("tests/observability/test_metrics.py",),
    "background_jobs": ("tests/service/payments/test_payment_flow.py",),
    "service": (
        "tests/service/payments/test_payment_flow.py",
        "tests/deployment/test_assembling.py",
    ),
    # What the name finds, and what else covers the room.
    "authentication": (SELF, "tests/http/authorization"),
    "funding": (
        SELF,
        "tests/core/payments/test_actions.py",
        "tests/service/accounts/vaults/test_vault_policies.py",
        "tests/service/payments/test_payment_flow.py",
    ),
    "journal": (SELF, "tests/service/payments/test_payment_flow.py"),
    "mandates": (SELF, "tests/core/accounts/vaults/test_policies.py"),
    "options": (SELF, "tests/core/payments/test_actions.py"),
    "outbox": (SELF, "tests/service/payments/test_crashes.py"),
    "receipts": (
        SELF,
        "tests/core/payments/test_received.py",
        "tests/core/payments/test_reversals.py",
        "tests/core/payments/test_rounding.py",
        "tests/core/payments/test_tolerance.py",
        "tests/service/payments/test_duplicate.py",
        "tests/service/payments/test_expiry_asks_the_chain.py",
        "tests/service/payments/test_late.py",
        "tests/service/payments/test_overpaid.py",
        "tests/service/payments/test_underpaid.py",
    ),
    "server": (SELF, "tests/http/hostile", "-tests/http/hostile/test_storms.py"),
    "wallets": (
        SELF,
        "tests/core/accounts/test_wallet_signatures.py",
        "tests/service/accounts/test_contract_wallets.py",
    ),
    # A choice of what the name finds, which takes longer.
    "app": ("tests/http/app/test_pipeline.py",),
    "chains": (
        "tests/core/chains",
        "tests/service/chains",
        "tests/chains/test_aptos.py",
        "tests/chains/test_solana.py",
        "tests/chains/test_typed_data.py",
    ),
    "openapi": (
        "tests/http/openapi/test_openapi.py",
        "tests/http/reference/test_openapi_reference.py",
    ),
    "deployment": (SELF, "-tests/deployment/test_processes.py"),
    "payments": (
        "tests/core/payments/test_actions.py",
        "tests/core/payments/test_lifecycles.py",
        "tests/core/payments/test_received.py",
        "tests/core/payments/test_reversals.py",
        "tests/core/payments/test_rounding.py",
        "tests/core/payments/test_tolerance.py",
        "tests/http/v2/payments/test_payment_refusals.py",
        "tests/http/v2/payments/test_payment_routes.py",
        "tests/http/v2/payments/test_received.py",
        "tests/service/payments/test_cancelling.py",
        "tests/service/payments/test_collects.py",
        "tests/service/payments/test_duplicate.py",
        "tests/service/payments/test_ending.py",
        "tests/service/payments/test_failed_release.py",
        "tests/service/payments/test_late.py",
        "tests/service/payments/test_overpaid.py",
        "tests/service/payments/test_payment_flow.py",
        "tests/service/payments/test_sends.py",
        "tests/service/payments/test_underpaid.py",
    ),
    "postgres": (
        SELF,
        "-tests/storage/postgres/test_outages.py",
        "-tests/storage/postgres/test_silence.py",
    ),
    "storage": (
        SELF,
        "-tests/storage/sqlite",
        "-tests/storage/postgres",
        "-tests/storage/test_clusters.py",
        "-tests/storage/test_model.py",
    ),
    "v2": (
        "tests/http/v2/accounts",
        "tests/http/v2/options",
        "tests/http/v2/payments/test_payment_routes.py",
        "tests/http/v2/refunds",
        "tests/http/v2/test_partner_routes.py",
    ),
    "cli": (
        "tests/cli/test_data_folder.py",
        "tests/cli/test_messages.py",
        "tests/cli/test_openapi.py",
        "tests/cli/test_verify_webhook.py",
    ),
    "evm": (
        "tests/chains/evm/test_answers.py",
        "tests/chains/evm/test_calls.py",
        "tests/chains/evm/test_endpoints.py",
        "tests/chains/evm/test_fees.py",
        "tests/core/test_networks.py",
        "tests/chains/evm/test_opening.py",
        "tests/chains/evm/test_reading.py",
        "tests/chains/evm/test_rpc.py",
        "tests/chains/evm/test_scans.py",
        "tests/chains/evm/test_signer_checks.py",
        "tests/chains/evm/test_signers.py",
        "tests/chains/evm/test_transactions.py",
    ),
    "sandbox": ("tests/http/v2/sandbox", "tests/service/sandbox"),
    "webhooks": (
        SELF,
        "-tests/webhooks/transports",
        "-tests/webhooks/test_destinations_flood.py",
        "-tests/webhooks/test_hanging_together.py",
    ),
    # Names that have another meaning among the tests, or none.
    "anvil": ("tests/chains/evm/test_anvil_process.py",),
    "bank": (
        "tests/broken_adapters/test_broken_banks.py",
        "tests/service/banks/test_conformance.py",
    ),
    "chain": ("tests/broken_adapters/test_broken_chains.py",),
    "conformance": (
        "tests/broken_adapters/test_broken_banks.py",
        "tests/broken_adapters/test_broken_pricing.py",
        "tests/broken_adapters/test_broken_routers.py",
        "tests/broken_adapters/test_broken_signers.py",
        "tests/broken_adapters/test_broken_storages.py",
        "tests/broken_adapters/test_broken_chains.py",
    ),
    "tracking": ("tests/service/payments/receipts", "tests/core/payments/receipts"),
    "dispatch": (
        "tests/webhooks/test_dispatcher.py",
        "tests/webhooks/test_lanes.py",
        "tests/webhooks/test_hanging_endpoints.py",
        "tests/webhooks/test_delivery_changes.py",
        "tests/webhooks/test_parked_deliveries.py",
    ),
    "http": (
        "tests/core/http",
        "tests/webhooks/transports/test_transport_answers.py",
        "tests/webhooks/transports/test_transport_idle.py",
        "tests/chains/evm/test_endpoints.py",
        "tests/chains/evm/test_rpc.py",
        "tests/chains/test_aptos.py",
        "tests/chains/test_solana.py",
    ),
    "router": (
        "tests/broken_adapters/test_broken_routers.py",
        "tests/service/routers/test_conformance.py",
    ),
    "limiter": ("tests/broken_adapters/test_broken_limiters.py",),
    "transport": ("tests/broken_adapters/test_broken_transports.py",),
}

OWN_STORAGE = frozenset({"storage", "postgres", "sqlite", "memory"})
"""Rooms whose tests choose the storage themselves."""


def rooms() -> frozenset[str]:
    """The names of all rooms: folders of the packages, files at their top."""
    found = {
        path.stem
        for package in PACKAGES
        for path in (ROOT / package).glob("*.py")
        if path.stem != "__init__"
    }
    for package in PACKAGES:
        found.update(path.parent.name for path in (ROOT / package).glob("*/**/*.py"))
    return frozenset(found | TESTS.keys())


def tests_of(room: str) -> tuple[str, ...]:
    """What to give to pytest: files and folders that cover a room, relative to the root."""
    found: list[str] = []
    for row in TESTS.get(room, (SELF,)):
        if row == SELF:
            found += found_by_name(room)
        else:
            found.append(f"--ignore={row[1:]}" if row.startswith("-") else row)
    return tuple(found)


def found_by_name(room: str) -> list[str]:
    """The folders of that name, and files of that name outside of them."""
    folders: list[Path] = []
    for folder in sorted(path for path in (ROOT / "tests").rglob(room) if path.is_dir()):
        if not any(folder.is_relative_to(above) for above in folders):
            folders.append(folder)
    files = [
        path
        for path in sorted((ROOT / "tests").rglob(f"test_{room}.py"))
        if not any(path.is_relative_to(folder) for folder in folders)
    ]
    return [str(path.relative_to(ROOT)) for path in (*folders, *files)]


def main(arguments: Sequence[str]) -> int:
    """Run them, or list the rooms where there is no such room."""
    room, *more = arguments
    if room not in rooms():
        names = "\n".join(f"  {name}" for name in sorted(rooms()) if tests_of(name))
        print(f"There is no room {room}. The rooms with tests:\n{names}", file=sys.stderr)
        return 2
    paths = tests_of(room)
    if not paths:
        print(f"No tests have the name {room}; add a row to {__file__}.", file=sys.stderr)
        return 2
    marks = "not slow" if room in {"postgres"} else "not slow and not postgres"
    if room not in OWN_STORAGE:
        os.environ["PAYMENTS_TEST_STORAGES"] = "memory"
    if room == "postgres":  # of the versions that are there, the newest
        os.environ.setdefault("PAYMENTS_TEST_POSTGRES_MAJOR", "18")
    os.chdir(ROOT)
    command = [sys.executable, "-m", "pytest", "-q", "-m", marks, *paths, *more]
    print(f"{room}: {' '.join(paths)}", flush=True)
    return subprocess.call(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
