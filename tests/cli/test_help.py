"""What `payments --help` says, and how quickly."""

from __future__ import annotations

import subprocess
import sys

import pytest

from payments_core_http.cli import COMMANDS
from tests.stopwatches import read_children_processor_s

HELP_S = 0.2
HEAVY = ("payments_core.service", "falcon", "rich", "msgspec", "attrs")


def payments(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "payments_core_http.cli", *arguments],
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip


def test_the_help_lists_every_command_and_says_where_to_begin() -> None:
    done = payments("--help")
    assert done.returncode == 0
    assert "New here? `payments demo`" in done.stdout
    for name, meaning in COMMANDS.items():
        assert name in done.stdout
        assert meaning.split()[0] in done.stdout


def test_the_help_comes_at_once() -> None:
    took = []
    for _ in range(5):
        before = read_children_processor_s()
        payments("--help")
        took.append(read_children_processor_s() - before)
    assert min(took) < HELP_S, took


def test_the_help_loads_no_command() -> None:
    script = (
        "import sys; from payments_core_http.cli import payments\n"
        "payments(['--help'], standalone_mode=False)\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_does(command: str) -> None:
    done = payments(command, "--help")
    assert done.returncode == 0
    assert COMMANDS[command] in " ".join(done.stdout.split())
    assert "--json" in done.stdout


@pytest.mark.parametrize("arguments", [("sandbox", "--geth"), ("demo", "--geth"), ("dema",)])
def test_what_is_not_known_is_an_error(arguments: tuple[str, ...]) -> None:
    done = payments(*arguments)
    assert done.returncode == 2
    assert "No such" in done.stderr


def test_the_version_is_the_package_s() -> None:
    from importlib.metadata import version

    assert version("payments-core") in payments("--version").stdout
