"""Authorizations of transfers from a vault, over sockets: each authorizes an option of its own.

`payments serve` runs in mode sandbox, whose simulated chain answers what a node would be asked: the
balance of the vault. The options are made beforehand.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count as count_up
from itertools import islice
from typing import Any

from benchmarks.pipeline import account
from benchmarks.serve_postgres import Deployment
from payments_core_http.cli.api_client import ApiClient, bearer_authorization

PREPARING = 8
"""Threads that make options."""
PAYERS = 16
"""Each pays from a vault of its own, in turn."""


class Authorizations:
    """Options of some payers that wait for their authorization."""

    def __init__(self, deployment: Deployment, port: int) -> None:
        """Makes the account that is paid, and those that pay, with funds and a session each."""
        deployment.prepare(port)
        self._deployment = deployment
        self._port = port
        self._client = ApiClient(f"http://127.0.0.1:{port}")
        self._requests: list[str] = []
        self._numbers = count_up()
        self._bearers = [self._make_payer(number) for number in range(PAYERS)]

    def prepare(self, count: int) -> None:
        """Make so many options."""
        with ThreadPoolExecutor(PREPARING) as threads:
            self._requests += threads.map(self._prepare_one, islice(self._numbers, count))

    def authorize_one(self) -> None:
        """Authorize one, and wait for the answer."""
        self._send([self._requests.pop()], connections=1)

    def rate(self, count: int, connections: int) -> float:
        """Answers a second to so many, after one of each connection that is not counted."""
        asked = [self._requests.pop() for _ in range(count + connections)]
        reported = self._send(asked, connections)
        per_second: float = reported["answers"] / reported["seconds"]
        return per_second

    def _make_payer(self, number: int) -> str:
        """A payer's authorization."""
        payer = self._call("/v2/accounts", account(f"payer-{number}"))["id"]
        self._call(
            f"/v2/sandbox/accounts/{payer}/fund",
            {"chainId": 8453, "assetSymbol": "USDC", "amount": "100000000"},
        )
        session = self._call(
            "/v2/client-sessions",
            {
                "accountId": payer,
                "permissions": ["payments:read", "vault_payments:write"],
                "expiresInSeconds": 86_400,
            },
        )
        once = bearer_authorization(session["clientSessionToken"])
        access = self._call("/v2/client/auth/exchange", None, authorization=once)
        return bearer_authorization(access["accessToken"])

    def _send(self, requests: list[str], connections: int) -> Mapping[str, Any]:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(requests, file)
            file.flush()
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.listed_clients", json.dumps({
                    "port": self._port, "connections": connections, "status": "200",
                    "requests": file.name,
                })],
                stdout=subprocess.PIPE, check=True,
            )  # fmt: skip
        reported: Mapping[str, Any] = json.loads(done.stdout)
        return reported

    def _prepare_one(self, number: int) -> str:
        """The request that authorizes a new option of a new Payment."""
        made = self._call("/v2/payments", self._deployment.payment, key=f"payment-{number}")
        secret, bearer = made["clientSecret"], self._bearers[number % PAYERS]
        path = f"/v2/client/me/payments/{made['id']}/options"
        option = self._call(path, {}, authorization=bearer, payment_secret=secret)["option"]
        body = json.dumps(
            {
                "actionId": option["execution"]["actionId"],
                "proof": {"type": "managed_authorization", "authorization": "approved"},
            }
        )
        return (
            f"POST {path}/{option['id']}/authorize HTTP/1.1\r\nHost: bench\r\n"
            f"Content-Type: application/json\r\nAuthorization: {bearer}\r\n"
            f"X-Service-Payment-Secret: {secret}\r\nIdempotency-Key: authorize-{number}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        )

    def _call(self, path: str, body: Any, *, authorization: str | None = None, **more: Any) -> Any:
        """The document of the answer to a POST."""
        authorization = authorization or self._deployment.credential
        answer = self._client.call("POST", path, body, authorization=authorization, **more)
        assert answer.status < 300, answer.body
        return answer.document
