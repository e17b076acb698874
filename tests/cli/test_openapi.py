"""`payments openapi` writes what a service answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from payments_core.contracts.versions import CURRENT_VERSION
from payments_core_http.openapi.document import build_document, format_document


def payments(*arguments: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "payments_core_http.cli", "openapi", *arguments],
        capture_output=True, text=True, timeout=60, env={"PYTHONHASHSEED": seed},
    )  # fmt: skip


def test_it_prints_the_document() -> None:
    done = payments()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == format_document(build_document())


def test_it_is_the_same_text_in_every_process(tmp_path: Path) -> None:
    written = []
    for seed in ("1", "2"):
        file = tmp_path / f"{seed}.json"
        assert (
            payments("--output", str(file), "--version", CURRENT_VERSION, seed=seed).returncode == 0
        )
        written.append(file.read_text(encoding="utf-8"))
    assert written == [format_document(build_document())] * 2


def test_json_is_one_line() -> None:
    [line] = payments("--json").stdout.splitlines()
    assert json.loads(line) == build_document()


def test_a_version_that_there_is_not_is_refused() -> None:
    done = payments("--version", "2020-01-01")
    assert done.returncode == 2
    assert CURRENT_VERSION in done.stderr


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    done = payments("--output", str(tmp_path / "none" / "openapi.json"))
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
