"""An anvil that looks like a rollup's testnet, and the folder of a deployment that serves it.

It has the testnet's chain id and blocks by time, and calls blocks safe and finalized later. Public
networks are not reached from the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from payments_core.chains.evm import abi
from payments_core.chains.evm.artifacts import load_contract
from payments_core.chains.evm.signers import LocalSigner
from payments_core.credentials.keyring import KeyRing
from payments_core.networks import shipped_networks
from payments_core_http.cli.anvil.process import AnvilProcess
from tests.chains.evm.nodes import ADMIN, MNEMONIC_KEYS, Node, hexed
from tests.cli.nodes import require_anvil

CHAIN = 84532
KEY = MNEMONIC_KEYS[0]
USDC = shipped_networks()[CHAIN].tokens[0].address
MILLION = 10**6


@attrs.frozen
class LocalTestnet:
    """The node, and a folder with `payments.toml`, the keys, and the wallet of a payer."""

    node: Node
    folder: Path

    def command(self, *options: str) -> list[str]:
        """The command of a rehearsal."""
        command = [sys.executable, "-m", "payments_core_http.cli", "rehearse"]
        return [*command, "--network", str(CHAIN), "--key-file", "wallet.key", *options]

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the command."""
        return {**os.environ, "PAYMENTS_CONFIG": "payments.toml"}

    def popen(self, *options: str) -> subprocess.Popen[str]:
        """A rehearsal that runs."""
        return subprocess.Popen(
            self.command("--json", *options),
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def send_as_admin(self, to: str, data: bytes) -> None:
        """Send a transaction that must succeed, into a block of its own."""
        transaction = {"from": ADMIN, "to": to, "data": hexed(data)}
        hash = self.node.ask("eth_sendTransaction", transaction)
        self.node.ask("anvil_mine", "0x1")  # blocks come by time
        assert self.node.receipt(hash).succeeded

    def count_tokens(self, address: str) -> int:
        """The tokens of an address now, in atomic units."""
        return int.from_bytes(self.node.call(USDC, abi.BALANCE_OF.call(address)))


@contextmanager
def local_testnet(folder: Path, *, block_time_s: int, epoch_blocks: int) -> Iterator[LocalTestnet]:
    """One for a test; its wallet, which is the admin too, has 100 USDC."""
    require_anvil()
    options = {"block_time_s": block_time_s, "epoch_blocks": epoch_blocks}
    with AnvilProcess(chain_id=CHAIN, **options) as process:
        node = Node(process.url)
        node.ask("anvil_setCode", USDC, "0x" + (load_contract("TestToken").runtime or b"").hex())
        _configure(folder, process.url, 2 * epoch_blocks * block_time_s)
        testnet = LocalTestnet(node, folder)
        testnet.send_as_admin(USDC, abi.MINT.call(ADMIN, 100 * MILLION))
        yield testnet
        node.close()


def _configure(folder: Path, url: str, finalized_s: int) -> None:
    write_key(folder / "key-ring", KeyRing.generate())
    write_key(folder / "wallet.key", f"0x{KEY}\n")
    LocalSigner.open(folder / "operator.key")
    (folder / "payments.toml").write_text(
        f"""
mode = "sandbox"
public_url = "http://127.0.0.1:8080"
keys = {{ ring_file = "key-ring" }}
storage = {{ url = "sqlite:///payments.db" }}
limiter = {{ url = "memory:" }}
providers.signer = {{ url = "file://{folder}/operator.key" }}

[chains.{CHAIN}]
urls = ["evm+{url}"]
settings = {{ admin = "{ADMIN}" }}

[networks.{CHAIN}]
finalized_s = {finalized_s}
acceptance = [{{ up_to = "5.00", depth = 2 }}, {{ tag = "finalized" }}]
"""
    )
    migrate = [sys.executable, "-m", "payments_core_http.cli", "admin", "migrate"]
    subprocess.run(
        migrate,
        cwd=folder,
        check=True,
        capture_output=True,
        env={**os.environ, "PAYMENTS_CONFIG": "payments.toml"},
    )


def write_key(path: Path, text: str) -> None:
    """A file that only its owner can read."""
    path.touch(0o600)
    path.write_text(text)
