"""A deployment of many processes, each started again whenever it ends, as systemd would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from payments_core.limiters.policies import RULES
from tests.servers.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
RESTART_S = 0.1
"""systemd's own pause (RestartSec) between the end of a process and its next start."""
END_S = 60.0
COMMAND = "payments_core_http.cli"

Role = Literal["serve", "worker"]


def settings(storage_url: str, key_ring: str) -> Mapping[str, str]:
    """The environment of every process of the deployment; no limit is in the way of the load."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PAYMENTS_")}
    return {
        **own,
        "PAYMENTS_MODE": "sandbox",
        "PAYMENTS_PUBLIC_URL": "http://127.0.0.1:8080",
        "PAYMENTS_SIMULATED_CHAINS": "true",
        "PAYMENTS_KEYS_RING": key_ring,
        "PAYMENTS_STORAGE_URL": storage_url,
        "PAYMENTS_LIMITER_URL": "memory:",
        "PAYMENTS_WEBHOOKS_LOCAL_ALLOWED": "true",
        **{f"PAYMENTS_LIMITS_{rule.upper()}": "1000000" for rule in RULES},
    }


def admin(environ: Mapping[str, str], *arguments: str) -> Any:
    """What `payments admin` answers, as JSON."""
    command = [sys.executable, "-m", COMMAND, "admin", *arguments, "--json"]
    done = subprocess.run(
        command, env=dict(environ), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"payments admin {arguments[0]}: {done.stdout}{done.stderr}"
    return json.loads(done.stdout) if done.stdout.strip() else None


class Process:
    """One process of the deployment over all its starts, and the thread that starts it."""

    def __init__(self, role: Role, number: int, environ: Mapping[str, str], folder: Path) -> None:
        self.role = role
        self.name = f"{role}-{number}"
        self.port = free_port() if role == "serve" else None
        self.log = folder / f"{self.name}.log"
        self.ready = folder / f"{self.name}.ready"
        self.exits: list[int] = []
        self._environ = {**environ, "PAYMENTS_HTTP_PORT": str(self.port or 0)}
        self._lock = threading.Lock()
        self._life: subprocess.Popen[bytes] | None = None
        self._starts_before = 0
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name=self.name, daemon=True)

    @property
    def starts(self) -> int:
        """How often it was ready for its work."""
        return len(self.ready.read_text().splitlines()) if self.ready.exists() else 0

    @property
    def is_ready(self) -> bool:
        """Whether its present life is ready for its work."""
        return self.pid is not None and self.starts > self._starts_before

    @property
    def pid(self) -> int | None:
        """The id of its present life; None while there is none."""
        with self._lock:
            life = self._life
        return None if life is None or life.poll() is not None else life.pid

    @property
    def kills(self) -> int:
        """How often it ended by SIGKILL."""
        return self.exits.count(-signal.SIGKILL)

    @property
    def odd_exits(self) -> list[int]:
        """The exit codes of those that died of something else: 1 says that it could not start."""
        return [code for code in self.exits if code not in (0, 1, -signal.SIGKILL)]

    def start(self) -> None:
        """Start it, and keep starting it until `end`."""
        self._keeper.start()

    def kill(self) -> bool:
        """kill -9; False where it is just dead."""
        with self._lock:
            if self._life is None or self._life.poll() is not None:
                return False
            self._life.kill()
            return True

    def restart(self) -> None:
        """SIGTERM; its next life begins as after any end."""
        with self._lock:
            if self._life is not None and self._life.poll() is None:
                self._life.terminate()

    def end(self) -> int:
        """SIGTERM; the exit code of its last life."""
        self._ended.set()
        with self._lock:
            if self._life is not None and self._life.poll() is None:
                self._life.terminate()
        self._keeper.join(END_S)
        if self._keeper.is_alive():
            self.kill()
            self._keeper.join()
        return self.exits[-1]

    def _keep(self) -> None:
        with self.log.open("ab") as log, self.ready.open("ab") as ready:
            while not self._ended.is_set():
                with self._lock:
                    self._starts_before = self.starts
                    self._life = subprocess.Popen(
                        [sys.executable, "-m", COMMAND, self.role, "--json"],
                        env=self._environ,
                        cwd=ROOT,
                        stdin=subprocess.DEVNULL,
                        stdout=ready,
                        stderr=log,
                    )
                self.exits.append(self._life.wait())
                self._ended.wait(RESTART_S)


def started(
    environ: Mapping[str, str], folder: Path, *, serves: int, workers: int
) -> Sequence[Process]:
    """The deployment's processes, each with its log in the folder."""
    wanted: tuple[tuple[Role, int], ...] = (("serve", serves), ("worker", workers))
    roles = [role for role, number in wanted for _ in range(number)]
    processes = [Process(role, number, environ, folder) for number, role in enumerate(roles)]
    for process in processes:
        process.start()
    return processes
