"""A deployment in a folder: its settings, and its processes as an operator starts them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import attrs
from click.testing import CliRunner

from payments_core.credentials.keyring import KeyRing
from payments_core.engine.audit import AuditEntry
from payments_core.storage.maintenance import scan_all
from payments_core.storage_loader import open_storage
from payments_core_http.cli import payments
from payments_core_http.cli.api_client import ApiClient, basic_authorization
from payments_core_http.cli.child_processes import ChildProcess
from tests.deployment.settings import toml
from tests.servers import drop_schema, fresh_schema, postgres_or_skip


@attrs.frozen
class Deployed:
    """A folder with `payments.toml` and the key ring."""

    folder: Path
    storage_url: str

    @classmethod
    def made(cls, folder: Path, storage_url: str, **changes: Any) -> Deployed:
        """A sandbox on simulated chains, which anything may be changed in."""
        ring = folder / "key-ring"
        ring.write_text(KeyRing.generate())
        ring.chmod(0o600)
        deployed = cls(folder, storage_url)
        deployed.configure(**changes)
        return deployed

    def configure(self, **changes: Any) -> None:
        """Write the settings."""
        document = {
            "mode": "sandbox",
            "public_url": "http://127.0.0.1:8080",
            "simulated_chains": True,
            "keys": {"ring_file": self.folder / "key-ring"},
            "storage": {"url": self.storage_url},
            "limiter": {"url": "memory:"},
            "http": {"port": 0},
            "management": {"port": 0},
            "webhooks": {"local_allowed": True},
            **changes,
        }
        self.config.write_text(toml(document))
        self.config.chmod(0o600)

    @property
    def config(self) -> Path:
        return self.folder / "payments.toml"

    def run(self, *arguments: str, fails: bool = False) -> str:
        """What a command prints in this process; where it `fails`, what it complains of."""
        done = CliRunner().invoke(
            payments, [*arguments, "--config", str(self.config)], catch_exceptions=False
        )
        assert (done.exit_code != 0) is fails, done.output
        return done.stderr or done.stdout if fails else done.stdout

    def admin(self, *arguments: str) -> Any:
        """The document that a command of `payments admin` prints."""
        return json.loads(self.run("admin", *arguments, "--json"))

    def trail(self) -> list[AuditEntry]:
        """The audit trail of all environments and of the deployment, the oldest entry first."""
        with closing(open_storage(self.storage_url)) as storage:
            found = [one.record for one in scan_all(storage, AuditEntry)]
        return sorted(found, key=lambda entry: entry.created_at_ms)

    @contextmanager
    def started(self, command: str, *options: str) -> Iterator[ChildProcess]:
        """`payments serve` or `worker`, which is ended at the end if it still runs."""
        arguments = [command, "--config", str(self.config), "--json", *options]
        child = ChildProcess(command, "payments_core_http.cli", arguments)
        try:
            child.wait_until_ready()
            yield child
        finally:
            child.end()


@contextmanager
def deployed_on(storage: str, folder: Path) -> Iterator[Deployed]:
    """A deployment on `sqlite`, or on a schema of its own in PostgreSQL."""
    if storage == "sqlite":
        yield Deployed.made(folder, f"sqlite:///{folder}/payments.db")
        return
    url = fresh_schema(postgres_or_skip())
    yield Deployed.made(folder, url)
    drop_schema(url)


def client_of(serve: ChildProcess) -> ApiClient:
    """A client of a `payments serve`."""
    return ApiClient(str(serve.read_messages()[0]["url"]))


def shop(deployed: Deployed) -> tuple[dict[str, Any], str]:
    """An app, and the Basic credential of a key of its sandbox."""
    app = deployed.admin("apps", "create", "Shop", "--partner-id", "shop")
    key = deployed.admin("keys", "create", "shop", "--name", "server")
    return app, basic_authorization(app["appId"], key["secret"])
