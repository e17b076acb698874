"""What restart-one-by-one asks of systemd, for processes that tests have started.

    python -m tests.deploy.systemctl STATE reload nginx
    python -m tests.deploy.systemctl STATE restart payments-serve@01

STATE is a folder: `nginx.pid`, and for each instance `01.json` with its command and its process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

READY_S = 30.0


def main(state: Path, verb: str, unit: str) -> None:
    if (verb, unit) == ("reload", "nginx"):
        os.kill(int((state / "nginx.pid").read_text()), signal.SIGHUP)
    elif verb == "restart" and unit.startswith("payments-serve@"):
        instance = state / f"{unit.partition('@')[2]}.json"
        facts = json.loads(instance.read_text())
        end(facts["pid"])
        instance.write_text(json.dumps({**facts, "pid": start(facts["command"], state)}))
    else:
        raise SystemExit(f"{verb} {unit} was not foreseen")


def start(command: list[str], state: Path) -> int:
    """As with Type=notify: returns when the process has written its first line."""
    with (state / "errors").open("ab") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            start_new_session=True,
        )  # fmt: skip
    assert process.stdout is not None
    if not process.stdout.readline():
        raise SystemExit("it did not become ready")
    return process.pid


def end(pid: int | None) -> None:
    """SIGTERM, and wait until it has gone."""
    if pid is None:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and is_alive(pid):
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
