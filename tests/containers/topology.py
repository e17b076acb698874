"""The topology of `deploy/container/compose.yml`, as an operator starts it from the page."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from payments_core.conformance.transport.certificates import certificates
from payments_core.credentials.keyring import KeyRing
from tests.deployment.settings import toml
from tests.servers.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
NAME = "pay.example.com"
START_S = 180
UID = 10001
"""The user of the image."""


class Topology:
    """A project of Docker Compose in a folder, with settings and secrets of its own."""

    def __init__(self, folder: Path, image: str, *, standins: bool) -> None:
        self.folder = folder
        self.https_port = free_port()
        self.project = f"payments-{secrets.token_hex(4)}"
        self.environ = {
            **os.environ,
            "PAYMENTS_IMAGE": image,
            "HTTP_PORT": str(free_port()),
            "HTTPS_PORT": str(self.https_port),
            "COMPOSE_PROJECT_NAME": self.project,
            "COMPOSE_FILE": ":".join(
                ["compose.yml"] + ["standins.yml"] * standins
            ),
        }  # fmt: skip
        self._write()

    def __enter__(self) -> Self:
        try:
            self.compose("up", "--detach", "--wait", "--wait-timeout", str(START_S))
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            print(self.compose("logs", "--no-color", "--tail", "40", fails=None), flush=True)
        self.compose("down", "--volumes", "--timeout", "10", fails=None)

    def compose(self, *arguments: str, fails: bool | None = False) -> str:
        """What `docker compose` prints. It must not fail; None: it may."""
        return self.run("docker", "compose", *arguments, fails=fails)

    def run(self, *command: str, fails: bool | None = False) -> str:
        """What a command prints, in the folder and with the project's names."""
        done = subprocess.run(
            command, cwd=self.folder, env=self.environ, capture_output=True, text=True, timeout=600
        )
        assert fails is None or (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout

    def admin(self, *arguments: str) -> Any:
        """The document that a command of `payments admin` prints, in a container of its own."""
        command = ("run", "--rm", "--no-deps", "--quiet-pull", "migrate", "admin")
        return json.loads(self.compose(*command, *arguments, "--json"))

    def inspect(self, service: str) -> Any:
        """What Docker knows of the container of a service."""
        return json.loads(self.run("docker", "inspect", self.find_id(service)))[0]

    def find_id(self, service: str) -> str:
        """The id of the container of a service."""
        return self.compose("ps", "--all", "--quiet", service).strip()

    def _write(self) -> None:
        container = ROOT / "deploy" / "container"
        for name in ("compose.yml", "payments-servers.conf", "upgrade-one-by-one"):
            shutil.copy(container / name, self.folder / name)
        shutil.copy(ROOT / "deploy" / "nginx.conf", self.folder / "nginx.conf")
        shutil.copy(ROOT / "tests/containers/standins/compose.yml", self.folder / "standins.yml")
        settings = {
            "mode": "sandbox",
            "public_url": f"https://{NAME}",
            "simulated_chains": True,
            "http": {"trusted_proxies": ["172.31.77.10/32"]},
        }
        (self.folder / "payments.toml").write_text(toml(settings))
        password = secrets.token_hex(16)
        kept = {
            "key-ring": KeyRing.generate(),
            "storage-url": f"postgresql://payments:{password}@postgres/payments",
            "limiter-url": "redis://redis:6379/0",
            "postgres-password": password,
        }
        folder = self.folder / "secrets"
        folder.mkdir()
        for name, value in kept.items():
            (folder / name).write_text(value)
            (folder / name).chmod(0o400)
            os.chown(folder / name, UID, UID)
        # nginx reads one file with both; NAME is that of our tests' certificates, not of the file.
        tls = self.folder / "tls"
        tls.mkdir()
        for name in ("fullchain.pem", "privkey.pem"):
            shutil.copy(certificates().good, tls / name)
