"""The quote of the examples, over real HTTP against a sandbox of its own process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from payments_core_http.cli.child_processes import SandboxChild

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "legacy_quote.py"


def test_a_quote_is_paid_and_arrives_on_the_other_chain(tmp_path: Path) -> None:
    sandbox = SandboxChild(tmp_path / "sandbox-data")
    try:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), "--url", sandbox.base_url],
            cwd=tmp_path, capture_output=True, text=True, timeout=100,
        )  # fmt: skip
    finally:
        sandbox.end()
    assert done.returncode == 0, done.stdout + done.stderr
    warning, pay, get, end = done.stdout.splitlines()
    assert "no real funds" in warning
    assert re.fullmatch(r"pay 25\.00 to 0x[0-9a-fA-F]{40}", pay)
    assert get == "get 24.9775 in 20 s"
    # half of the slippage that the quote allows was used
    assert end == "done succeeded settled 24.940034 on chain 137"
