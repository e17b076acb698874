"""Exchanges with the legacy interface as they are written in `tests/vectors/v1`.

A file is about one route: requests in order, each with the body that answers it, or without where
it only prepares what follows; `binds` then keeps parts of its answer under names. The order of
fields is free, and types are exact: a number is not a digit string. A text in braces is a name: its
form is one of `FORMS`, by the letters that it begins with, and it stands for the same text
everywhere in the file. `{requestId}` is another each time.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from payments_core.evolve import evolve
from tests.http.api_harness import ApiHarness
from tests.http.seen import Seen
from tests.quote_payer import ask_to_settle
from tests.shipped import asset_of
from tests.signers import EvmWallet
from tests.vault_owner import BASE, ask_for_module

OWNER = EvmWallet(31)
"""The wallet that owns vaults in these files, and signs for their payers."""

FOLDER = Path(__file__).parents[2] / "vectors" / "v1"

_ID = "[A-Za-z0-9_-]{24}"
_EVM_ADDRESS = "0x[0-9a-fA-F]{40}"
FORMS: Mapping[str, str] = {
    "requestId": f"req_{_ID}",
    "own": f"acct_{_ID}",
    "user": f"acct_{_ID}",
    "kyc": f"verification_{_ID}",
    "vault": _EVM_ADDRESS,
    "module": _EVM_ADDRESS,
    "deposit": _EVM_ADDRESS,
    "tx": f"tx_{_ID}",
    "hash": "0x[0-9a-f]{64}",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
    "quote": f"quote_{_ID}",
}
_NAME = re.compile(r"\{(\w+)\}")


def read_files() -> Mapping[str, Any]:
    """Every file by the name of its route."""
    return {
        path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))
    }


class Player:
    """Sends a file's requests to an API, and compares what is answered."""

    def __init__(self, api: ApiHarness) -> None:
        self.api = api
        self._bound: dict[str, str] = {"own": api.account_id}

    def play(self, exchange: Mapping[str, Any]) -> Seen:
        """Send one request. Fails where the answer is not the one that is written."""
        self._prepare(exchange)
        body = exchange.get("body")
        credential = exchange.get("credential", "secret")
        seen = self.api.call(
            exchange["method"],
            self._filled(exchange["target"]),
            None if body is None else self._filled(body),
            auth=self._credential(credential),
            raw=exchange["raw"].encode() if "raw" in exchange else None,
            headers=exchange.get("headers") or self._sdk_header(credential),
        )
        if "status" in exchange:
            assert seen.status == exchange["status"], seen.body
            faults = list(self._compare(exchange["response"], seen.json, ""))
            assert not faults, f"{exchange['name']}: {faults} in {seen.body!r}"
            assert seen.json["requestId"] == seen.headers["x-request-id"]
        else:
            assert seen.status < 300, seen.body
            self._bind(exchange.get("binds", {}), seen.json)
        return seen

    def _prepare(self, exchange: Mapping[str, Any]) -> None:
        """What is otherwise from now on: the app's products, the chains that are served."""
        service = self.api.service
        if "products" in exchange:
            service.tenants.set_products(self.api.partition, exchange["products"])
        if "stored" in exchange:  # the bytes that were counted last, which are the limit
            self._fill(exchange["stored"])
        if "without" in exchange:  # what the deployment has no adapter for
            getattr(service._providers, exchange["without"]).clear()
        if "fails" in exchange:  # once
            self.api.call("POST", "/v2/sandbox/failures", {"dependency": exchange["fails"]})
        if "unserved" in exchange:
            del service.chains[exchange["unserved"]]  # type: ignore[attr-defined]
        if "payer of" in exchange:  # signs that the quote is to be paid from the vault
            self._sign_settlement(**self._filled(exchange["payer of"]))
        for _ in range(exchange.get("offers", 0)):  # of the vault, by the payer's browser
            self._offer()
        if "authorizes" in exchange:
            self._authorize()
        if "no vault on" in exchange:
            self._lose_vault(exchange["no vault on"])
        if "owner of" in exchange:  # signs that the vault is to enable its module
            vault = self._filled(exchange["owner of"])
            tokens = (asset_of(BASE, "USDC").address,)
            asked = ask_for_module(service.chains[BASE], self.api.partition, vault, tokens, OWNER)
            self._bound |= {
                "module": asked["module"],
                "calldata": asked["txData"]["data"],
                "signature": asked["signature"],
            }

    def _fill(self, stored: int) -> None:
        service, partition = self.api.service, self.api.partition
        service.tenants.set_storage_limit(partition, stored)
        environment = service.tenants.get_environment(partition)
        counted = evolve(environment, stored_bytes=stored, counted_at_ms=environment.updated_at_ms)
        service.parts.ports.storage.transact(partition, lambda tx: tx.replace(counted))

    def _sign_settlement(self, quote: str, nonce: int = 1, seconds: int = 600) -> None:
        deadline = self.api.service.parts.ports.clock.now() // 1_000 + seconds
        asked = ask_to_settle(OWNER, self._bound["vault"], quote, deadline, nonce)
        self._bound |= {"deadline": str(deadline), "signature": asked["signature"], "signs": quote}

    def _offer(self) -> Any:
        """An option of the vault for the quote that was signed last, by the client interface."""
        path = f"/v2/client/me/payments/{self._payment_id}/options"
        seen = self.api.call("POST", path, auth=self._access, headers=self._payment_secret)
        assert seen.status == 201, seen.body
        return seen.json["option"]

    def _authorize(self) -> None:
        option = self._offer()
        path = f"/v2/client/me/payments/{self._payment_id}/options/{option['id']}/authorize"
        proof = {"type": "managed_authorization", "authorization": "approved"}
        body = {"actionId": option["execution"]["actionId"], "proof": proof}
        seen = self.api.call(
            "POST", path, body, auth=self._access, headers=self._payment_secret, key="authorize"
        )
        assert seen.status == 200, seen.body

    @property
    def _payment_id(self) -> str:
        authority = self.api.service.tenants.system_authority(self.api.partition)
        return (
            self.api.service.acting_as(authority)
            .legacy.read_quote(self._bound["signs"])
            .quote.payment_id
        )

    @property
    def _access(self) -> str:
        permissions = ["payments:read", "vault_payments:write"]
        return "Bearer " + self.api.access_token(permissions=permissions)

    @property
    def _payment_secret(self) -> dict[str, str]:
        return {"X-Service-Payment-Secret": self.api.payment_secret(self._payment_id)}

    def _lose_vault(self, chain_id: int) -> None:
        """As if the account were older than the deployment's service of that chain."""
        service, partition = self.api.service, self.api.partition
        details = service.acting_as(service.tenants.system_authority(partition)).accounts.read(
            self.api.account_id
        )
        [vault] = [one for one in details.vaults if one.chain_id == chain_id]
        service.parts.ports.storage.transact(partition, lambda tx: tx.delete(vault))

    def _credential(self, name: str) -> str | None:
        api = self.api
        return {
            "secret": api.basic(),
            "restricted": api.basic(api.restricted_secret),
            "app id": _encode(api.app_row.id),
            "app id and colon": _encode(f"{api.app_row.id}:"),
        }.get(name)

    def _sdk_header(self, name: str) -> dict[str, str]:
        """The header of a publishable key, where that is the credential."""
        if name != "sdk key":
            return {}
        api = self.api
        _, key = api.service.tenants.create_key(api.partition, "publishable", "sdk")
        return {"x-sdk-key": key}

    def _bind(self, names: Mapping[str, str], answered: Any) -> None:
        """Keep what stands at a path of an answer under a name."""
        for name, path in names.items():
            found = answered
            for part in path.split("."):
                found = found[int(part)] if part.isdigit() else found[part]
            self._bound[name] = found

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return _NAME.sub(lambda match: self._bound.get(match[1], match[0]), value)
        if isinstance(value, dict):
            return {name: self._filled(item) for name, item in value.items()}
        return [self._filled(item) for item in value] if isinstance(value, list) else value

    def _compare(self, golden: Any, actual: Any, path: str) -> Iterator[str]:
        if isinstance(golden, str) and (match := _NAME.fullmatch(golden)):
            yield from self._compare_name(match[1], actual, path)
        elif type(golden) is not type(actual):
            yield f"{path}: {actual!r} where {golden!r} is written"
        elif isinstance(golden, dict):
            if golden.keys() != actual.keys():
                yield f"{path}: fields {sorted(golden.keys() ^ actual.keys())}"
            for name in golden.keys() & actual.keys():
                yield from self._compare(golden[name], actual[name], f"{path}.{name}")
        elif isinstance(golden, list):
            if len(golden) != len(actual):
                yield f"{path}: {len(actual)} items where {len(golden)} are written"
            for place, pair in enumerate(zip(golden, actual, strict=False)):
                yield from self._compare(*pair, f"{path}.{place}")
        elif self._filled(golden) != actual:
            yield f"{path}: {actual!r} where {golden!r} is written"

    def _compare_name(self, name: str, actual: Any, path: str) -> Iterator[str]:
        form = next(form for start, form in FORMS.items() if name.startswith(start))
        if not isinstance(actual, str) or not re.fullmatch(form, actual):
            yield f"{path}: {actual!r} is no {name}"
        elif name != "requestId" and self._bound.setdefault(name, actual) != actual:
            yield f"{path}: {actual!r} where {self._bound[name]!r} stood before"


def _encode(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()
