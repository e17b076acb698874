"""The quote of the examples on real nodes: its ERC-20 transfer is signed by the payer's key.

The sandbox of the command has one chain. Across two chains the same parts are put together here,
with an anvil at each end, and are served on a socket.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from payments_core.chains.evm.signers import LocalSigner
from payments_core.clock import SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.identifiers import Identifiers
from payments_core.entropy import system_entropy
from payments_core.public_url import LOCAL_URL
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core_http.app import create_app
from payments_core_http.cli.anvil.chain import MAX_BLOCKS_PER_ADVANCE, AnvilChain
from payments_core_http.cli.anvil.process import AnvilProcess
from payments_core_http.cli.child_processes import SandboxChild
from payments_core_http.serving import build_server
from tests.cli.nodes import require_anvil

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "legacy_quote.py"
BASE, POLYGON = 8453, 137
BLOCK_S = 0.1


@pytest.fixture(autouse=True)
def _anvil() -> None:
    require_anvil()


def run_example(folder: Path, *options: str) -> list[str]:
    """The lines that the example prints."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *options],
        cwd=folder, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@contextmanager
def mining(*chains: AnvilChain) -> Iterator[None]:
    """Meanwhile blocks come faster than in life."""
    ending = threading.Event()

    def run() -> None:
        while not ending.wait(BLOCK_S):
            for chain in chains:
                chain.mine(1)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def test_a_quote_is_paid_on_the_sandboxs_node(tmp_path: Path) -> None:
    sandbox = SandboxChild(tmp_path / "sandbox-data", 0, "--anvil")
    try:
        node = str(sandbox.facts["nodeUrl"])
        signer = LocalSigner.open(tmp_path / "unused.key")
        with mining(AnvilChain(node, BASE, signer)):
            _, pay, get, end = run_example(
                tmp_path, "--url", sandbox.base_url, "--to", str(BASE), "--node", node
            )
    finally:
        sandbox.end()
    assert re.fullmatch(r"pay 25\.00 to 0x[0-9a-fA-F]{40}", pay)
    assert get.startswith("get 25.00 in ")
    assert end == "done succeeded settled 25.00 on chain 8453"


def test_a_quote_crosses_from_one_node_to_another(tmp_path: Path) -> None:
    with ExitStack() as stack:
        nodes = {id: stack.enter_context(AnvilProcess(chain_id=id)) for id in (BASE, POLYGON)}
        signer = LocalSigner.open(tmp_path / "operator.key")
        chains = {id: AnvilChain(node.url, id, signer) for id, node in nodes.items()}
        storage = SqliteStorage(tmp_path / "payments.db", RECORD_TYPES)
        storage.migrate()
        ring = KeyRing.parse(KeyRing.generate())
        service = PaymentsService(
            storage, ring, sandbox_chains=chains, settings=Settings(public_url=LOCAL_URL)
        )
        stack.callback(service.close)
        app = service.tenants.create_app("Shop", "shop")
        environment_id = app.environments["sandbox"]
        _, secret = service.tenants.create_key(environment_id, "standard", "main")
        keys = tmp_path / "keys.json"
        keys.write_text(json.dumps({"appId": app.id, "appSecret": secret}))
        for chain in chains.values():
            chain.prepare_node()
            chain.open_environment(environment_id)
            chain.mine(MAX_BLOCKS_PER_ADVANCE)
        identifiers = Identifiers(SystemClock(), system_entropy)
        server = build_server(
            create_app(service, mode="sandbox"), identifiers, host="127.0.0.1", port=0
        )
        serving = threading.Thread(target=server.run)
        serving.start()
        stack.callback(serving.join)
        stack.callback(server.stop)
        worker = service.worker("sandbox")
        worker.start(2)
        stack.callback(worker.stop)
        with mining(*chains.values()):
            _, _, get, end = run_example(
                tmp_path,
                *("--url", f"http://127.0.0.1:{server.port}", "--keys", str(keys)),
                *("--node", nodes[BASE].url),
            )
    assert get == "get 24.9775 in 20 s"
    assert end == "done succeeded settled 24.940034 on chain 137"
