"""The lines of the page about listening work as printed, against a real sandbox."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from payments_core_http.cli.child_processes import SandboxChild
from tests.cli.test_pages import BLOCK, DOCS


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the page uses openssl")
def test_the_lines_of_the_page_work(tmp_path: Path) -> None:
    blocks = BLOCK.findall((DOCS / "how-to/listen-and-trigger.md").read_text(encoding="utf-8"))
    sandbox = SandboxChild(tmp_path / "sandbox-data")
    try:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\necho\n".join(blocks)],
            cwd=tmp_path, capture_output=True, text=True, timeout=60,
            env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
        )  # fmt: skip
    finally:
        sandbox.end()
    assert done.returncode == 0, done.stdout + done.stderr
    reported = (tmp_path / "listened.jsonl").read_text().splitlines()
    assert len(reported) >= 2
    assert "authentic: payment.succeeded evt_1" in done.stdout
    assert "the exit code is 1" in done.stdout
    assert "refused: signature_wrong" in done.stderr
