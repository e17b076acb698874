"""Runs every ```sh block of the pages below, as a newcomer would, against a real sandbox."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from payments_core_http.cli.child_processes import SandboxChild

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
REFUSED = '"error"'


@pytest.mark.skipif(shutil.which("curl") is None, reason="the pages use curl")
@pytest.mark.parametrize(
    ("page", "last_words"),
    [
        ("../README.md", '"status":"awaiting_payment"'),
        ("tutorial/first-payment.md", "succeeded"),
        ("how-to/run-a-sandbox.md", "signingSecret"),
        ("how-to/accounts-and-vaults.md", '"resolution":"won"'),
        ("how-to/payouts.md", "}refunded\n"),
        ("how-to/legacy-v1.md", '"depositAddress"'),
        ("how-to/troubles/index.md", '"cause":"release"'),
        ("how-to/public-checkout.md", "succeeded\n304\n"),
        ("how-to/pay-with-another-token.md", "delivered\nsucceeded\n"),
        ("how-to/pay-by-card.md", "delivered\nsucceeded\n"),
    ],
)
def test_the_lines_of_the_page_work(page: str, last_words: str, tmp_path: Path) -> None:
    sandbox = SandboxChild(tmp_path / "sandbox-data")
    try:
        blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
        script = "\necho\n".join(blocks).replace("127.0.0.1:8080", f"127.0.0.1:{sandbox.port}")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path, capture_output=True, text=True, timeout=60,
            env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
        )  # fmt: skip
    finally:
        sandbox.end()
    assert done.returncode == 0, done.stdout + done.stderr
    assert REFUSED not in done.stdout, done.stdout
    assert last_words in done.stdout
