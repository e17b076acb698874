"""The deployment of a play, in production mode, and everything outside it: each a real process.

It is made as an operator makes one: a configuration file, `payments admin`, keys in a key service,
the operators allowed by the admin of the contracts.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from payments_core.credentials.keyring import KeyRing
from payments_core.routers.cctp.line import KEY_NAME as ROUTER_KEY
from payments_core.service import PaymentsService
from payments_core_http.cli.api_client import basic_authorization
from payments_core_http.cli.child_processes import ChildProcess
from payments_core_http.deployment.build import build_key_ring, build_service, build_storage
from payments_core_http.deployment.loader import load_configuration
from tests.chains.evm.nodes import ADMIN
from tests.deployment.deployed import Deployed
from tests.deployment.settings import toml
from tests.going_live.chains import BLOCK_S, CHAIN_IDS, EPOCH_BLOCKS, TestChain
from tests.going_live.desk import Desk
from tests.going_live.kills import Kills
from tests.going_live.proxies import (
    Proxy,
    names_of_bank,
    names_of_cards,
    names_of_circle,
    names_of_kms,
    names_of_kyc,
    names_of_notices,
    names_of_rpc,
    names_of_screening,
)
from tests.outages.databases import SAFE
from tests.outages.processes import Process, started
from tests.routers.cctp.world import Attesting, Cctp
from tests.servers import Cluster
from tests.servers.kms import CREDENTIALS, Kms
from tests.servers.softhsm import SoftHsm, softhsm_or_skip

ADAPTERS = {
    "payments_core.kyc": "example = examples.custom_kyc.adapter:open_url",
    "payments_core.banks": "example = examples.custom_bank.adapter:open_url",
    "payments_core.onramps": "example = examples.custom_onramp.adapter:open_url",
    "payments_core.screening": "example = examples.custom_screening.adapter:open_url",
}
PARTNER, TOKEN, PREFIX, LATER = "acme", "payments", "payments", "payments-later"
READY_S = 120.0


class NotStarted(Exception):
    """A process refused to start; the end of its log."""


class Provider:
    """A provider that is a process of the examples, ordered about as its sandbox allows."""

    def __init__(self, name: str, module: str) -> None:
        self.child = ChildProcess(name, module)
        self.url = str(self.child.wait_until_ready()["url"])

    def order(self, name: str, **said: Any) -> Any:
        """Have it do something."""
        with urlopen(Request(f"{self.url}/orders/{name}", json.dumps(said).encode())) as answer:
            return json.load(answer)

    def read(self) -> Any:
        """Its own records."""
        with urlopen(f"{self.url}/orders") as answer:
            return json.load(answer)


class LiveDeployment:
    """All of it, from `__enter__` to `__exit__`; nothing of it is left afterwards."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kills = folder, Kills()
        self._stack = ExitStack()
        self.processes: Sequence[Process] = ()
        self.proxies: list[Proxy] = []
        """In front of each provider, and of our door for notices."""

    def __enter__(self) -> LiveDeployment:
        try:
            self._start_others()
            self._install()
            self._configure(self.kms.signer_url(PREFIX).replace(self.kms.url, self._kms.url))
            self._commands = Deployed(self.folder, self.database.url(tcp=True))
            self._commands.run("admin", "migrate")
            self._make_app()
            self._give_keys()
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def urls(self) -> Sequence[str]:
        """Where the API is served."""
        return [f"http://127.0.0.1:{one.port}" for one in self.processes if one.port]

    def is_ready(self) -> bool:
        """Whether every process is ready for its work. Raises NotStarted for one that refuses."""
        for process in self.processes:
            if 1 in process.exits:
                raise NotStarted(f"{process.name}: {process.log.read_text()[-2_000:]}")
        return all(process.is_ready for process in self.processes)

    def rotate_signer(self) -> None:
        """As an operator does: new keys, allowed by the admin; then every process starts again, one
        after the other."""
        self.hsm.create_token(TOKEN)
        for name in (self.environment_id, ROUTER_KEY):
            self.hsm.create_key(TOKEN, f"{LATER}/{name}")
        self._configure(self.hsm.signer_url(TOKEN, LATER), former=[self._signer])
        self._allow_operators()
        for process in self.processes:
            restart(process)
        self._build_service()

    # Its parts.

    def _start_others(self) -> None:
        enter, called = self._stack.enter_context, self._stack.callback
        self.database = enter(Cluster(settings=SAFE, tcp=True))
        self.chains: Mapping[int, TestChain] = {}
        for chain_id in CHAIN_IDS:
            chain = TestChain(chain_id)
            called(chain.stop)
            self.chains = {**self.chains, chain_id: chain}
        nodes = {id: chain.node for id, chain in self.chains.items()}
        self.circle = Attesting(nodes)
        called(self.circle.stop)
        Cctp(nodes, self.circle)
        for chain in self.chains.values():
            chain.begin_blocks()
        self.kms = Kms("digests")
        called(self.kms.stop)
        self.hsm: SoftHsm = softhsm_or_skip(self.folder)
        self.kyc = Provider("kyc", "examples.custom_kyc.service")
        called(self.kyc.child.end)
        self.bank = Provider("bank", "examples.custom_bank.service")
        called(self.bank.child.end)
        self.screening = Provider("screening", "examples.custom_screening.service")
        called(self.screening.child.end)
        self._kyc = self._proxy("kyc", names_of_kyc, self.kyc.url)
        self.cards = Provider("onramp", "examples.custom_onramp.service")
        called(self.cards.child.end)
        desk = Desk(self.chains)
        called(desk.stop)
        self.cards.order("chain", url=desk.url, credential="the:desk")
        self._cards = self._proxy("cards", names_of_cards, self.cards.url)
        self._screening = self._proxy("screening", names_of_screening, self.screening.url)
        self._bank = self._proxy("bank", names_of_bank, self.bank.url)
        self._kms = self._proxy("kms", names_of_kms, self.kms.url)
        self._notices = self._proxy("notices", names_of_notices)
        self._circle = self._proxy("circle", names_of_circle, self.circle.url)
        self._nodes = {
            id: self._proxy(f"node-{id}", names_of_rpc, one.url) for id, one in self.chains.items()
        }
        for kind, provider in (
            ("kyc", self.kyc),
            ("bank", self.bank),
            ("screening", self.screening),
            ("onramp", self.cards),
        ):
            provider.order("webhooks", url=f"{self._notices.url}/providers/{kind}/example")

    def _proxy(self, provider: str, names: Any, target: str = "") -> Proxy:
        proxy = Proxy(provider, names, self.kills, target)
        self._stack.callback(proxy.stop)
        self.proxies.append(proxy)
        return proxy

    def _install(self) -> None:
        """The adapters of the examples, as another distribution would."""
        described = self.folder / "going_live-1.0.dist-info"
        described.mkdir()
        (described / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: going-live\nVersion: 1.0\n"
        )
        (described / "entry_points.txt").write_text(
            "\n".join(f"[{group}]\n{entry}" for group, entry in ADAPTERS.items())
        )
        ring = self.folder / "key-ring"
        ring.write_text(KeyRing.generate())
        ring.chmod(0o600)
        own = {name: it for name, it in os.environ.items() if not name.startswith("PAYMENTS_")}
        self.environ = {
            **own,
            **CREDENTIALS,
            "PAYMENTS_CONFIG": str(self.folder / "payments.toml"),
            "PYTHONPATH": str(self.folder),
        }
        os.environ.update(CREDENTIALS)  # the play reads the books with a service of its own
        sys.path.insert(0, str(self.folder))
        self._stack.callback(sys.path.remove, str(self.folder))

    def _configure(self, signer: str, former: Sequence[str] = ()) -> None:
        self._signer = signer
        final_s = (2 * EPOCH_BLOCKS + 1) * BLOCK_S
        document: dict[str, Any] = {
            "mode": "production",
            "public_url": "https://pay.example.com",
            "keys": {"ring_file": self.folder / "key-ring"},
            "storage": {"url": self.database.url(tcp=True)},
            "limiter": {"url": "memory:"},
            "http": {"trusted_proxies": ["127.0.0.1"]},
            "worker": {"state_folder": self.folder},
            "providers.signer": {"url": signer, "former_urls": list(former)},
            "providers.kyc": {"url": _adapter_url(self._kyc)},
            "providers.bank": {"url": _adapter_url(self._bank)},
            "providers.onramp": {"url": _adapter_url(self._cards)},
            "providers.screening": {"url": _adapter_url(self._screening)},
            "providers.router": {"url": f"cctp:{self._circle.url}"},
        }
        for chain_id, node in self._nodes.items():
            document[f"chains.{chain_id}"] = {
                "urls": [f"evm+{node.url}"],
                "settings": {"admin": ADMIN},
            }
            document[f"networks.{chain_id}"] = {"finalized_s": final_s, "block_ms": 1_000 * BLOCK_S}
        self.config.write_text(toml(document))
        self.config.chmod(0o600)

    @property
    def config(self) -> Path:
        """The file of settings."""
        return self.folder / "payments.toml"

    def _make_app(self) -> None:
        app = self._commands.admin(
            "apps", "create", "Acme", "--partner-id", PARTNER, "--mode", "production"
        )
        key = self._commands.admin("keys", "create", PARTNER, "--name", "server")
        self.app_id, self.environment_id = app["appId"], app["productionEnvironmentId"]
        self.credential = basic_authorization(self.app_id, key["secret"])

    def _give_keys(self) -> None:
        for name in (self.environment_id, ROUTER_KEY):
            self.kms.create_key(f"{PREFIX}/{name}")
        self._allow_operators()
        self._build_service()

    def _allow_operators(self) -> None:
        """The current keys, as `payments admin signers check` names them."""
        found = self._commands.admin("signers", "check")
        assert all(one["state"] == "sound" for one in found), found
        current = {
            one["environmentId"]: one["address"] for one in found if one["signer"] == "current"
        }
        for chain in self.chains.values():
            chain.allow(self.environment_id, current[self.environment_id])
            chain.give_coin(current[ROUTER_KEY])

    def _build_service(self) -> None:
        """The service by which the play reads the books."""
        configuration = load_configuration(self.config, {})
        storage = build_storage(configuration)
        self._stack.callback(storage.close)
        self.service: PaymentsService = build_service(
            configuration, storage, build_key_ring(configuration)
        )

    def _start(self) -> None:
        self.processes = started(self.environ, self.folder, serves=2, workers=2)
        self._stack.callback(_end_all, self.processes)
        for proxy in self.proxies:
            proxy.processes = self.processes
        self._notices.processes = [one for one in self.processes if one.role == "serve"]
        wait_until(self.is_ready, READY_S, "all processes are ready")


def _adapter_url(proxy: Proxy) -> str:
    return "example+" + proxy.url.replace("://", "://example-key:example-secret@")


def restart(process: Process) -> None:
    """End a process as systemd does, and wait until its next life is ready."""
    before = process.starts
    process.restart()
    wait_until(lambda: process.starts > before, READY_S, f"{process.name} is ready again")


def _end_all(processes: Sequence[Process]) -> None:
    ends = [threading.Thread(target=process.end) for process in processes]
    for end in ends:
        end.start()
    for end in ends:
        end.join()


def wait_until(seen: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Wait for something that comes by itself. Raises TimeoutError."""
    until = time.monotonic() + timeout_s
    while not seen():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(0.05)
