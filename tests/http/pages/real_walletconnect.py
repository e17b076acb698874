"""Pays with WalletConnect's own script and a real node: `make walletconnect FILE=index.umd.js`.

FILE is `dist/index.umd.js` of `@walletconnect/universal-provider`, which nothing here fetches. It
is also the wallet's: its provider has WalletConnect's sign client. The relay between the two tabs
is a stand-in. It prints what each step did, and ends with an exception if one did not.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import attrs
from playwright.sync_api import Browser, Route, WebSocketRoute, expect
from playwright.sync_api import Page as Tab

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.cli.anvil.chain import AnvilChain
from tests.chains.evm.nodes import Node, Refused, anvil_or_skip
from tests.chains.scenes import PAYERS_KEY, signer
from tests.http.checkout import BASE, Checkout
from tests.http.pages.browser import open_chromium, serve
from tests.http.pages.scenes import make_page
from tests.http.pages.test_pairing import offer_walletconnect
from tests.http.pages.wallet import make_signing_wallet

RELAY, RPC = re.compile(r"^wss://relay\.walletconnect\.org"), "https://mainnet.base.org/**"
WALLET = "https://wallet.example/"
OPEN_WALLET = """async ({ project, chain, address }) => {
  const { UniversalProvider } = window["@walletconnect/universal-provider"];
  const metadata = { name: "Wallet", description: "Wallet", url: location.origin, icons: [] };
  const { client } = await UniversalProvider.init({ projectId: project, metadata });
  window.client = client;
  window.chain = chain;
  client.on("session_proposal", async ({ id, params }) => {
    window.proposed = params;
    if (window.rejects) {
      return client.reject({ id, reason: { code: 5000, message: "User rejected." } });
    }
    const { methods, events } = params.optionalNamespaces.eip155;
    const accounts = [`${window.chain}:${address}`];
    const namespaces = { eip155: { chains: [window.chain], methods, events, accounts } };
    const { acknowledged } = await client.approve({ id, namespaces });
    await acknowledged();
  });
  client.on("session_request", async ({ id, topic, params }) => {
    const { method, params: given } = params.request;
    const { result, error } = await window.askWallet({ method, params: given });
    const response = { id, jsonrpc: "2.0", ...(error ? { error } : { result }) };
    await client.respond({ topic, response });
  });
  client.on("session_delete", () => { window.deleted = true; });
}"""


@attrs.define
class Relay:
    """What WalletConnect's relay does for two clients; with `garbage`, that is all it answers.

    A message waits in `kept` while nobody else has subscribed to its topic. `asked` has what
    happened.
    """

    sockets: dict[str, list[WebSocketRoute]] = attrs.field(factory=lambda: defaultdict(list))
    kept: dict[str, list[str]] = attrs.field(factory=lambda: defaultdict(list))
    asked: list[str] = attrs.field(factory=list)
    garbage: str | None = None

    def open(self, socket: WebSocketRoute) -> None:
        socket.on_message(lambda text: self.answer(socket, json.loads(text)))
        socket.on_close(lambda code, reason: self.forget(socket, code))

    def forget(self, socket: WebSocketRoute, code: int | None) -> None:
        self.asked.append(f"closed with {code}")
        for sockets in self.sockets.values():
            if socket in sockets:
                sockets.remove(socket)
        socket.close(code=code if code in (1000, 3000) else 1000)

    def answer(self, socket: WebSocketRoute, call: Any) -> None:
        method = str(call.get("method", ""))
        if not method:
            return  # an acknowledgement
        self.asked.append(method)
        if self.garbage is not None:
            socket.send(self.garbage)
            return
        given, result = call["params"], True
        if method == "irn_subscribe":
            result = self.subscribe(socket, given["topic"])
        elif method == "irn_batchSubscribe":
            result = [self.subscribe(socket, topic) for topic in given["topics"]]
        elif method == "irn_batchFetchMessages":
            result = {"messages": [], "hasMore": False}
        socket.send(json.dumps({"id": call["id"], "jsonrpc": "2.0", "result": result}))
        if method == "irn_publish":
            self.publish(socket, given["topic"], given["message"], given["tag"])
        elif method == "wc_proposeSession":
            self.subscribe(socket, given["pairingTopic"])
            self.publish(socket, given["pairingTopic"], given["sessionProposal"], 1100)
        elif method == "wc_approveSession":
            self.subscribe(socket, given["sessionTopic"])
            self.publish(socket, given["pairingTopic"], given["sessionProposalResponse"], 1101)
            self.publish(socket, given["sessionTopic"], given["sessionSettlementRequest"], 1102)

    def subscribe(self, socket: WebSocketRoute, topic: str) -> str:
        if socket not in self.sockets[topic]:
            self.sockets[topic].append(socket)
        for message in self.kept.pop(topic, []):
            socket.send(message)
        return topic

    def publish(self, sender: WebSocketRoute, topic: str, message: str, tag: int) -> None:
        data = {"topic": topic, "message": message, "publishedAt": 0, "tag": tag}
        id = int(f"{len(self.asked)}{tag}")
        call = {"id": id, "jsonrpc": "2.0", "method": "irn_subscription"}
        text = json.dumps({**call, "params": {"id": topic, "data": data}})
        others = [one for one in self.sockets[topic] if one is not sender]
        for one in others:
            one.send(text)
        if not others:
            self.kept[topic].append(text)


def main(file: str) -> None:
    script = Path(file).read_bytes()
    with anvil_or_skip() as process, open_chromium() as browser:
        node, chain = Node(process.url), AnvilChain(process.url, BASE, signer())
        chain.prepare_node()
        checkout = Checkout(MemoryStorage(), sandbox_chains={BASE: chain}).declare_network("real")
        offer_walletconnect(checkout, script)
        checkout.transfer(PAYERS_KEY.address, "1000")
        with serve(checkout.api.app) as url:
            _pay(browser, checkout, node, url, script)
        node.close()


def _pay(browser: Browser, checkout: Checkout, node: Node, url: str, script: bytes) -> None:
    page = make_page(checkout=checkout)
    relay, said = Relay(), list[str]()
    wallet = make_signing_wallet(node, PAYERS_KEY)
    device = _open_wallet(browser, relay, wallet, script)
    tab = browser.new_context().new_page()
    tab.on("console", lambda message: said.append(f"{message.type}: {message.text[:160]}"))
    tab.on("pageerror", lambda error: said.append(f"thrown: {error}"))
    tab.route_web_socket(RELAY, lambda socket: relay.open(socket))
    reads: list[str] = []

    def read_chain(route: Route) -> None:
        call = json.loads(route.request.post_data or "{}")
        reads.append(call["method"])
        body = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            body["result"] = node.ask(call["method"], *call["params"])
        except Refused as refused:
            body["error"] = {"code": -32601, "message": str(refused)}
        headers = {"access-control-allow-origin": "*", "access-control-allow-headers": "*"}
        route.fulfill(json=body, headers=headers)

    tab.route(RPC, read_chain)
    tab.goto(f"{url}/pay/{page.code}")
    status, link = tab.locator("#wallets > [role=status]"), tab.locator("#pairing-code a")

    relay.garbage = "<html>not a relay</html>"
    tab.get_by_role("link", name="WalletConnect").click()
    expect(status).to_contain_text("WalletConnect did not open", timeout=45_000)
    print("garbage of the relay:", status.inner_text())
    relay.garbage = None

    def pair() -> None:
        tab.get_by_role("button", name="WalletConnect").click()
        expect(link).to_be_visible(timeout=45_000)
        device.evaluate("uri => client.pair({ uri })", link.get_attribute("href"))

    device.evaluate("window.rejects = true")
    pair()
    expect(status).to_contain_text("You declined", timeout=30_000)
    print("a payer who rejects:", status.inner_text())
    device.evaluate("window.rejects = false; window.chain = 'eip155:1'")
    pair()
    expect(status).to_contain_text("another network", timeout=30_000)
    print("a wallet on Ethereum:", status.inner_text())
    device.evaluate("chain => { window.chain = chain; }", f"eip155:{BASE}")
    pair()
    expect(tab.locator("h1")).to_have_text("Your wallet has sent a transfer", timeout=30_000)
    print("asked of the wallet:", wallet.methods, "of the node:", reads)
    device.wait_for_function("() => window.deleted", timeout=30_000)
    print("the wallet was disconnected")
    for _ in range(3):
        checkout.advance(20)
    payment = checkout.read(page.payment["id"])
    print("the Payment:", payment["status"], payment["receivedAmountAtomic"])
    assert payment["status"] == "succeeded"
    print("relay:", sorted(set(relay.asked)), f"{len(relay.asked)} calls")
    print("console:", *sorted(set(said)), sep="\n  ")


def _open_wallet(browser: Browser, relay: Relay, wallet: Any, script: bytes) -> Tab:
    """A tab that is the wallet."""
    tab = browser.new_context().new_page()
    tab.route(f"{WALLET}**", lambda route: route.fulfill(body="<p>", content_type="text/html"))
    tab.route_web_socket(RELAY, lambda socket: relay.open(socket))
    tab.expose_function("askWallet", lambda request: wallet.answer(request))
    tab.goto(WALLET)
    tab.add_script_tag(content=script.decode())
    given = {"project": "0" * 32, "chain": f"eip155:{BASE}", "address": PAYERS_KEY.address}
    tab.evaluate(OPEN_WALLET, given)
    return tab


if __name__ == "__main__":
    main(sys.argv[1])
