"""Pay a quote of the legacy interface over HTTP: quote, transfer, poll, done.

Start `payments sandbox` in one terminal, and this in another, in the same folder::

    .venv/bin/python examples/legacy_quote.py

The payer's wallet is simulated: in a sandbox `/v2/sandbox/transfers` is the ERC-20 transfer that it
would send. Everything else is what a client of the v1 SDK does in production.

With `payments sandbox --anvil` the chain is a real node, and the wallet is one of the node's own
accounts, which signs a real ERC-20 transfer; that sandbox has one chain, so the quote stays on it::

    .venv/bin/python examples/legacy_quote.py --to 8453 --node http://127.0.0.1:...
"""

from __future__ import annotations

import argparse
import base64
import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PAYER = "0x8ba1f109551bD432803012645Ac136ddd64DBA72"
TRANSFER = "0xa9059cbb"  # the selector of ERC-20's transfer(address,uint256)
BASE, POLYGON = 8453, 137
POLL_S = 2.0
GIVE_UP_S = 120.0


class Service:
    """The service's address and credentials."""

    def __init__(self, url: str, keys: dict[str, Any]) -> None:
        self._url = url
        self._app_id, self._secret = keys["appId"], keys["appSecret"]

    def ask(self, method: str, path: str, body: Any = None, *, secret: bool = False) -> Any:
        """An answer; with the app id alone, or as the partner's backend with the secret."""
        credential = f"{self._app_id}:{self._secret if secret else ''}"
        request = urllib.request.Request(
            self._url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Authorization": "Basic " + base64.b64encode(credential.encode()).decode(),
                "Content-Type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            raise SystemExit(f"{method} {path}: {refusal.code} {refusal.read().decode()}") from None


class Node:
    """A node that holds the keys of its accounts, as anvil does."""

    def __init__(self, url: str) -> None:
        self._url = url

    def call(self, method: str, *params: Any) -> Any:
        """The result of a JSON-RPC call."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            found = json.load(answer)
        if "error" in found:
            raise SystemExit(f"{method}: {found['error']['message']}")
        return found["result"]

    def transfer(self, token: str, payer: str, to: str, amount_raw: int) -> None:
        """An ERC-20 transfer, signed with the payer's key."""
        data = TRANSFER + to[2:].lower().rjust(64, "0") + f"{amount_raw:064x}"
        hash = self.call("eth_sendTransaction", {"from": payer, "to": token, "data": data})
        while (receipt := self.call("eth_getTransactionReceipt", hash)) is None:
            time.sleep(POLL_S / 10)
        if receipt["status"] != "0x1":
            raise SystemExit(f"the transfer {hash} failed")


def main() -> None:
    """Quote 25 USDC from Base to an account on Polygon, pay it, and wait until it arrives."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--to", type=int, default=POLYGON, help="the chain of the recipient")
    options.add_argument("--node", help="the node of a sandbox on anvil: its nodeUrl")
    options.add_argument("--url", default="http://127.0.0.1:8080")
    options.add_argument("--keys", type=Path, default=Path("sandbox-data/sandbox.json"))
    given = options.parse_args()
    service = Service(given.url, json.loads(given.keys.read_text("utf-8")))

    node = Node(given.node) if given.node else None
    payer = node.call("eth_accounts")[0] if node else PAYER

    body = {"preferredSettlementChain": given.to, "preferredSettlementToken": "USDC"}
    user = service.ask("POST", "/sdk/v1/register", body, secret=True)["data"]["userId"]

    # 1. A quote, and 2. what the payer sees of it.
    asked = {"amount": 25, "sourceAddress": payer, "sourceChainId": BASE, "destinationUserId": user}
    quote = service.ask("POST", "/sdk/v1/quote", asked)["data"]
    paid, gets = quote["payload"]["tokenIn"], quote["payload"]["tokenOut"]
    print("This is a sandbox: send no real funds to its addresses. They would be lost.")
    print("pay", paid["inputTokenAmountRawFormatted"], "to", quote["quoteData"]["depositAddress"])
    print(
        "get", gets["outputTokenAmountRawFormatted"], "in", quote["payload"]["estimatedTime"], "s"
    )

    # 3. The payer's wallet sends exactly `inputTokenAmountRaw` of the token.
    deposit, amount = quote["quoteData"]["depositAddress"], paid["inputTokenAmountRawFormatted"]
    moved = {"chainId": BASE, "assetSymbol": "USDC", "amount": amount}
    service.ask("POST", "/v2/sandbox/transfers", {**moved, "to": payer}, secret=True)  # test funds
    if node is not None:
        node.transfer(paid["address"], payer, deposit, int(paid["inputTokenAmountRaw"]))
    else:
        transfer = {**moved, "from": payer, "to": deposit}
        service.ask("POST", "/v2/sandbox/transfers", transfer, secret=True)

    # 4. Poll until it is done.
    ends = time.monotonic() + GIVE_UP_S
    path = f"/sdk/v1/verify-transfer?quoteId={quote['quoteData']['quoteId']}"
    while not service.ask("GET", path)["data"]["isTransferDone"]:
        if time.monotonic() > ends:
            raise SystemExit("the transfer did not arrive in time")
        time.sleep(POLL_S)

    # The same in v2: a Payment whose session is settled.
    [payment] = service.ask("GET", f"/v2/payments?accountId={user}", secret=True)["data"]
    session = service.ask("GET", f"/v2/sessions/{payment['sessionId']}", secret=True)
    holding = service.ask("GET", f"/v2/accounts/{user}/balances", secret=True)["balances"]
    [there] = [one for one in holding if one["chainId"] == given.to]
    print("done", payment["status"], session["status"], there["available"], "on chain", given.to)


if __name__ == "__main__":
    main()
