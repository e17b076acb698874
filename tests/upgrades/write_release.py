"""Writes a database with every kind of record and with work in flight, for later releases to serve.

python -m tests.upgrades.write_release tests/upgrades/released/NAME

is part of making a release. It writes the database as compressed SQL, its key ring (for tests
only), the forms of what is stored, and the record of the
scenario: requests with their answers, what can be read,
and what came of the work in flight when the release that wrote it finished that work itself.
"""

from __future__ import annotations

import json
import lzma
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from payments_core import __version__
from payments_core.credentials.keyring import KeyRing
from payments_core.record_types import RECORD_TYPES
from tests.upgrades.forms import form_of
from tests.upgrades.partner import Partner
from tests.upgrades.scenario import play_scenario
from tests.upgrades.shop import BUSY_HOOK, SYSTEM_MS, Receiver, Shop

LATEST_END_S = 3 * 3_600
"""So long after the last request all work in flight is over, deliveries that retry too."""

OUTCOME = frozenset({
    "status", "labels", "reconciliation", "amountAtomic", "receivedAmountAtomic",
    "refundedAmountAtomic", "excessAmountAtomic", "remainingAmountAtomic", "totalAtomic",
    "availableAtomic", "reservedAtomic", "available", "cause", "amounts", "data", "options",
    "option", "fundingOperation", "refunds", "receipts", "balances", "entries", "dispute",
    "chainId",
})  # fmt: skip
"""The fields of an answer that two releases must agree on, however they time the work."""


def outcome(document: Any) -> Any:
    """What is left of an answer without ids, times and hashes, which each release draws anew."""
    if isinstance(document, dict):
        return {name: outcome(value) for name, value in document.items() if name in OUTCOME}
    if isinstance(document, list):
        return sorted((outcome(item) for item in document), key=json.dumps)
    return document


def main(folder: Path) -> None:
    """Play the scenario, write it down, and note what comes of the work in flight."""
    folder.mkdir(parents=True, exist_ok=True)
    key_ring = KeyRing.generate()
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "data.db")
        shop = Shop(file, key_ring, Receiver(busy=frozenset({BUSY_HOOK})))
        partner = Partner(shop)
        play_scenario(partner)
        partner.read_all("answer", lambda document: document)
        shop.close()
        with closing(sqlite3.connect(file)) as connection:
            text = "\n".join(connection.iterdump())
        with closing(Shop(copied(file, "again"), key_ring, Receiver())) as partner.shop:
            partner.forget_requests_without_stored_answer()
        with closing(Shop(copied(file, "later"), key_ring, Receiver())) as partner.shop:
            partner.run()
            partner.advance(LATEST_END_S)
            partner.read_all("outcome", outcome)
            for what, part in partner.in_flight.items():
                assert partner.status(part["target"]) == part["end"], what
    (folder / "database.sql.xz").write_bytes(lzma.compress(text.encode(), preset=9))
    (folder / "key-ring").write_text(key_ring + "\n")
    forms = {kind.collection.name: form_of(kind) for kind in RECORD_TYPES}
    (folder / "forms.json").write_text(json.dumps(forms, indent=1) + "\n")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    notes = {
        "version": __version__,
        "commit": commit,
        "system_ms": SYSTEM_MS,
        "secrets": partner.secrets,
        "in_flight": partner.in_flight,
        "requests": partner.requests,
        "reads": partner.reads,
    }
    document = json.dumps(notes, ensure_ascii=False, indent=1) + "\n"
    (folder / "scenario.json.xz").write_bytes(lzma.compress(document.encode(), preset=9))


def copied(file: Path, name: str) -> Path:
    """A copy of the database beside it."""
    return Path(shutil.copy(file, file.with_name(name)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
