"""`payments sandbox`: the API and its worker in one process, on SQLite and simulated chains.

With `--anvil` there is one chain instead, on its own real node.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import signal
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from payments_core.chains.port import ChainError
from payments_core.clock import SystemClock
from payments_core.engine.identifiers import Identifiers
from payments_core.entropy import system_entropy
from payments_core.limiters.memory import MemoryLimiter
from payments_core.networks import DEFAULT_CHAIN_ID
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.port import StorageError
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.waiting import Waits
from payments_core.webhooks.settings import WebhookSettings
from payments_core_http.app import create_app
from payments_core_http.cli.address_file import publish_address
from payments_core_http.cli.anvil.errors import explain_missing_anvil
from payments_core_http.cli.anvil.process import AnvilUnavailable
from payments_core_http.cli.data_folder import (
    MODE,
    OPERATOR,
    DataFolder,
    FolderRefused,
    SandboxKeys,
)
from payments_core_http.cli.sandbox.example_payment import open_example
from payments_core_http.cli.sandbox.host_check import LoopbackHosts
from payments_core_http.observability.requests import NOOP_OBSERVER
from payments_core_http.request_recorder import RequestRecorder
from payments_core_http.server.server import Server
from payments_core_http.serving import build_server, new_pool
from payments_core_http.throttling import Throttle

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from payments_core_http.cli.anvil.node import AnvilNode

WORKER_THREADS = 4

_NO_REAL_FUNDS = "  Send no real funds to its addresses: they would be lost."


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8080,
    show_default=True,
    help="The port to listen on; 0 picks a free one.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("sandbox-data"),
    show_default=True,
    help="The folder of the database and the keys. It is created on first use.",
)
@click.option("--anvil", is_flag=True, help="Serve only Base, on a real EVM node (anvil).")
@click.option(
    "--rate-limits", is_flag=True, help="Enforce the rate policies, as a deployment does."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line when ready.")
def command(
    host: str, port: int, data: Path, anvil: bool, rate_limits: bool, as_json: bool
) -> None:
    """Run your own service on this machine, with simulated chains and test funds.

    On first use it creates an app with a key, stores both in `sandbox.json` in its data folder, and
    prints them at every start. Ctrl-C stops it; the next start continues where it stopped.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        with DataFolder(data).lock() as folder:
            folder.require_kind(anvil=anvil)
            with _run_node(folder) if anvil else nullcontext() as node:
                _serve(folder, host, port, node, rate_limits, as_json)
    except FolderRefused as refusal:
        raise click.ClickException(str(refusal)) from refusal
    except StorageError as error:
        raise click.ClickException(f"The database in {data} cannot be used: {error}.") from error


@contextmanager
def _run_node(folder: DataFolder) -> Iterator[AnvilNode]:
    """A real node during the block; if there cannot be one, the error says why."""
    try:
        from payments_core_http.cli.anvil.node import run_anvil
    except ModuleNotFoundError as missing:
        raise click.ClickException(
            f"{missing.name} is not installed; --anvil needs the extra `evm`: "
            "pip install 'payments-core[server,evm]'"
        ) from missing
    try:
        with run_anvil(folder) as node:
            yield node
    except AnvilUnavailable as reason:
        raise explain_missing_anvil(reason) from reason
    except ChainError as error:
        raise click.ClickException(f"The node does not behave as expected: {error}.") from error


def _serve(
    folder: DataFolder,
    host: str,
    port: int,
    node: AnvilNode | None,
    rate_limits: bool,
    as_json: bool,
) -> None:
    """Listen, build the service, and serve until a signal comes."""
    address = _resolve_address(host)
    deferred = DeferredApplication()
    pool = new_pool()
    try:
        server = build_server(
            deferred, Identifiers(SystemClock(), system_entropy), host=address, port=port, pool=pool
        )
    except OSError as error:
        raise click.ClickException(f"Cannot listen on {host}:{port}: {error}.") from error
    url = _client_url(address, server.port)
    loopback = ipaddress.ip_address(address).is_loopback
    service = _open_service(folder, url, loopback, node, pool)
    try:
        keys = folder.open_keys(service)
        if node is not None:
            node.prepare(keys.environment_id, service.parts.ports.clock.now())
        throttle = Throttle(MemoryLimiter()) if rate_limits else None
        recorder = RequestRecorder.over(service, MODE, NOOP_OBSERVER)
        app = create_app(service, mode=MODE, throttle=throttle, observer=recorder, waits=pool)
        deferred.application = (
            LoopbackHosts(app, service.parts.ports.identifiers) if loopback else app
        )
        worker = service.worker(MODE)
        worker.take_over("sandbox")  # the lock of the folder proves that the last sandbox has ended
        _stop_on_signals(server)
        worker.start(WORKER_THREADS)
        recorder.start()
        # The socket listens already: what arrives before `run` waits in its queue.
        with publish_address(folder.path, url), node.keep_ticking() if node else nullcontext():
            started = StartedSandbox(
                keys, url, folder, loopback, rate_limits, node.url if node else None
            )
            if as_json:
                click.echo(json.dumps(started.render_document()))
            else:  # a script's sandbox begins with no Payment
                click.echo(started.render_banner(open_example(service, keys.environment_id)))
            server.run()
        recorder.stop()
        worker.stop()
    finally:
        service.close()


def _stop_on_signals(server: Server) -> None:
    """The first Ctrl-C or SIGTERM finishes what was begun; a second ends the process immediately,
    which loses nothing: the next start continues, as after any crash."""
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        if stopping:
            os._exit(1)
        stopping = True
        server.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


class DeferredApplication:
    """Delegates to the application: the port must be known before there can be one."""

    application: WSGIApplication

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return self.application(environ, start_response)


def _open_service(
    folder: DataFolder, url: str, loopback: bool, node: AnvilNode | None, waits: Waits
) -> PaymentsService:
    key_ring = folder.open_key_ring()
    storage = SqliteStorage(folder.database, RECORD_TYPES, waits=waits)
    storage.migrate()
    settings = Settings(
        public_url=url,
        deployment_operators=(OPERATOR,),
        webhooks=WebhookSettings(local_allowed=loopback),
    )
    chains = None
    if node is not None:
        node.require_same_chain(storage)
        chains = {node.chain.chain_id: node.chain}
    service = PaymentsService(
        storage, key_ring, settings=settings, sandbox_chains=chains, waits=waits
    )
    service.refresh()  # the sandbox's clock continues from where it was
    return service


def _resolve_address(host: str) -> str:
    """The numeric address of a host name: the address that is checked is the one to listen on."""
    try:
        found = socket.getaddrinfo(host or "?", None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise click.BadParameter(
            f"{host!r} is not an address: {error}", param_hint="--host"
        ) from error
    address = found[0][4][0]
    assert isinstance(address, str)
    return address


def _client_url(address: str, port: int) -> str:
    """The host by which a client on this machine reaches it."""
    parsed = ipaddress.ip_address(address)
    if parsed.is_unspecified:
        address = "::1" if parsed.version == 6 else "127.0.0.1"
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{port}"


TRY_PAYMENT = json.dumps({
    "intent": "receive",
    "amount": "4.50",
    "destination": {"type": "wallet", "address": "0x" + "5e" * 20},
    "description": "Two loaves of bread",
})  # fmt: skip
"""A Payment that needs no account, for people who want to see its page."""


@attrs.frozen
class StartedSandbox:
    """A sandbox that accepts requests; `node_url` if its chain is a real node's."""

    keys: SandboxKeys
    url: str
    folder: DataFolder
    loopback: bool
    rate_limits: bool
    node_url: str | None

    def render_document(self) -> dict[str, Any]:
        """The line of `--json`."""
        node = (
            {}
            if self.node_url is None
            else {"chains": [DEFAULT_CHAIN_ID], "nodeUrl": self.node_url}
        )
        return {
            "baseUrl": self.url,
            "sdkBaseUrl": self.url,
            "publicUrl": self.url,
            "dashboardUrl": f"{self.url}/dashboard",
            **self.keys.render_document(),
            **node,
        }

    def render_banner(self, checkout_url: str | None) -> str:
        """The text for a person; `checkout_url` is the page of an open Payment."""
        keys, folder = self.keys, self.folder
        lines = [
            click.style("payments sandbox", bold=True) + f"  {self.url}",
            "",
            f"  app id       {keys.app_id}",
            f"  app secret   {keys.app_secret}",
            f"  environment  {keys.environment_id}",
            f"  partner id   {keys.partner_id}",
            *self._describe_operator(),
            f"  data         {folder.path}  (the keys are in {folder.keys_file.name})",
            "",
            *self._describe_chains(),
            f"  Rate policies are {'enforced' if self.rate_limits else 'not enforced'}.",
        ]
        if self.loopback:
            lines.append("  Webhooks to http:// and to this machine are allowed.")
        else:
            lines += [
                "  It is reachable from other machines, without TLS: anyone on the network can",
                "  read the keys. Webhooks to this machine are refused.",
            ]
        lines += [
            "",
            "  Try:",
            f"  curl -u {keys.app_id}:{keys.app_secret} {self.url}/v2/partners/config",
            "",
            "  Create a Payment, then open the paymentUrl of the answer in a browser:",
            f"  curl -u {keys.app_id}:{keys.app_secret} {self.url}/v2/payments \\",
            f"    -H 'Idempotency-Key: try-1' --json '{TRY_PAYMENT}'",
            "",
            "  Open in a browser:",
            *(
                [f"  A checkout page, with buttons that play the payer: {checkout_url}"]
                if checkout_url
                else []
            ),
            f"  The dashboard, with the log-in above: {self.url}/dashboard",
            f"  The reference of the API: {self.url}/docs",
            "",
            "  Press Ctrl-C to stop.",
        ]
        return "\n".join(lines)

    def _describe_operator(self) -> list[str]:
        password = self.keys.operator_password
        return [f"  dashboard    log in as {OPERATOR} with {password}"] if password else []

    def _describe_chains(self) -> list[str]:
        if self.node_url is None:
            return ["  Chains are simulated and funds are free.", _NO_REAL_FUNDS]
        return [
            f"  It serves only chain {DEFAULT_CHAIN_ID} (Base), on its own node: anvil at",
            f"  {self.node_url}. Funds are free.",
            _NO_REAL_FUNDS,
        ]
