"""`payments demo --anvil`: the same steps on a real node, of which nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from payments_core_http.cli.demo import START
from payments_core_http.cli.demo.steps import EVENTS, STEPS
from tests.cli.nodes import all_end, require_anvil

DEMO = [sys.executable, "-m", "payments_core_http.cli", "demo", "--anvil"]
NAMES = [START.name, *(step.name for step in STEPS)]


@pytest.fixture(autouse=True)
def _anvil() -> None:
    require_anvil()


def test_the_demo_on_a_real_node_sees_every_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--json"], capture_output=True, text=True, timeout=120,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    reported = [json.loads(line) for line in done.stdout.splitlines()]
    assert [document["step"] for document in reported] == NAMES
    assert all(document["ok"] for document in reported)
    assert reported[0]["sandbox"]["chains"] == [8453]
    assert reported[0]["sandbox"]["nodeUrl"].startswith("http://127.0.0.1:")
    assert set(reported[-1]["verified"]) == EVENTS
    assert list(tmp_path.iterdir()) == []
    assert all_end(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_demo_and_its_node(tmp_path: Path, number: signal.Signals) -> None:
    demo = subprocess.Popen(
        [*DEMO, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert demo.stdout is not None
    demo.stdout.readline()
    demo.send_signal(number)
    demo.communicate(timeout=30)
    assert demo.returncode == 1
    assert all_end(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_anvil_the_demo_says_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        DEMO, capture_output=True, text=True, timeout=30,
        env={**os.environ, "TMPDIR": str(tmp_path), "PAYMENTS_ANVIL": str(tmp_path / "none")},
    )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "install npm" in done.stderr
    assert list(tmp_path.iterdir()) == []
