"""A child process that goes from step to step, and is killed at one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEVER = 100_000


def steps_until(module: str, *arguments: str, kill_at: int = NEVER) -> list[str]:
    """The steps of a child that is killed (SIGKILL) at one of them, or comes to its end before."""
    steps: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdin is not None
        assert child.stdout is not None
        for line in child.stdout:
            steps.append(line.strip())
            if len(steps) == kill_at:
                child.kill()
            elif not line.startswith("done"):
                child.stdin.write("go on\n")
                child.stdin.flush()
    return steps
