"""Runs the commands of the page: a part of the play, with its kills, laws and tamperings."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.nodes import require_anvil
from tests.servers.postgres import postgres_or_skip
from tests.servers.softhsm import softhsm_or_skip

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-to/going-live.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
RUN_S = 280


@pytest.fixture(autouse=True)
def _programs(tmp_path: Path) -> None:
    """Skips for want of a program."""
    if shutil.which("make") is None:
        pytest.skip("the page uses make")
    postgres_or_skip()
    softhsm_or_skip(tmp_path)
    require_anvil()


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    blocks = "\n".join(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    script = blocks.replace("build/going-live", str(tmp_path / "kept"))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT, capture_output=True, text=True, timeout=RUN_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verify           1/1       2       2" in done.stdout
    assert "6 of 6 tamperings were found" in done.stdout
    assert "19 laws, 0 faults" in done.stdout
    assert 'mode = "production"' in done.stdout


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.timeout(300)
def test_sigterm_ends_every_process(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.going_live",
        "--customers",
        "1",
        "--kills",
        "none",
        "--keep",
    ]
    with subprocess.Popen(
        [*command, str(tmp_path / "kept")], cwd=ROOT, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as play:  # fmt: skip
        assert play.stdout is not None
        assert any("ready" in line for line in play.stdout)
        assert descendants(play.pid)
        started = descendants(play.pid)
        for _ in range(2):  # an impatient operator
            play.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        assert play.wait(120) == 130
    until = time.monotonic() + 15
    while left := [pid for pid in started if Path(f"/proc/{pid}/exe").exists()]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and those that these started."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found += [child, *descendants(child)]
    return found
