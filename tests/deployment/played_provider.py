"""The provider of an example, in a process of its own, and a deployment whose processes die."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.request import Request, urlopen

import attrs

from payments_core_http.cli.api_client import ApiClient
from payments_core_http.cli.child_processes import ChildProcess
from tests.deployment.deployed import Deployed, client_of

SEEN_S = 30.0


class PlayedProvider:
    """The service of an example, by its module."""

    def __init__(self, kind: str, module: str) -> None:
        self.kind = kind
        self.child = ChildProcess(kind, module)
        self.url = str(self.child.wait_until_ready()["url"])

    @property
    def setting(self) -> str:
        return "example+" + self.url.replace("://", "://example-key:example-secret@")

    def order(self, name: str, **said: Any) -> Any:
        with urlopen(Request(f"{self.url}/orders/{name}", json.dumps(said).encode())) as answer:
            return json.load(answer)

    def read(self) -> dict[str, Any]:
        with urlopen(f"{self.url}/orders") as answer:
            return dict(json.load(answer))

    def cases(self) -> list[dict[str, Any]]:
        return list(self.read()["cases"])

    def watch(self, call: str, moment: str) -> Callable[[], None]:
        """What waits until this moment of a call comes once more than it has until now."""
        facts = {"call": call, "moment": moment}

        def count(messages: list[dict[str, Any]]) -> int:
            return sum(facts.items() <= one.items() for one in messages)

        seen = count(self.child.read_messages())

        def wait() -> None:
            assert self.child.wait_for(lambda them: count(them) > seen, SEEN_S), f"never {facts}"

        return wait


def wait_until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SEEN_S
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@attrs.define
class Played:
    """A deployment with the provider: one `serve` and one `worker`, each killed and replaced."""

    deployed: Deployed
    provider: PlayedProvider
    app_id: str = ""
    environment_id: str = ""
    credential: str = ""
    serve: ChildProcess | None = None
    worker: ChildProcess | None = None

    def start_serve(self) -> None:
        self.serve = self._start("serve")
        door = f"{client_of(self.serve).base_url}/providers/{self.provider.kind}/example"
        self.provider.order("webhooks", url=door)

    def start_worker(self) -> None:
        self.worker = self._start("worker")

    def _start(self, command: str) -> ChildProcess:
        arguments = [command, "--config", str(self.deployed.config), "--json"]
        child = ChildProcess(command, "payments_core_http.cli", arguments)
        child.wait_until_ready()
        return child

    def end(self) -> None:
        for child in (self.serve, self.worker):
            if child is not None:
                child.end()

    def client(self) -> ApiClient:
        assert self.serve is not None
        return client_of(self.serve)

    def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        answer = self.client().call(method, path, body, authorization=self.credential, key=key)
        assert answer.status in (200, 201, 202), answer.body
        return answer.document
