"""A wallet that is injected into a page (EIP-6963): a mock whose answers a test decides."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from eth_account.signers.local import LocalAccount
from playwright.sync_api import Page as Tab

from payments_core.chains.evm import abi as calls
from tests.chains.evm.nodes import Node
from tests.http.payer_page import Page

_PROVIDER = """const provider = { request: async (asked) => {
    const shown = document.getElementById("wallets")?.dataset.blockHash;
    const { result, error } = await window.askWallet({ ...asked, shown });
    if (error) throw Object.assign(new Error(error.message), error);
    return result;
  } };"""

ANNOUNCE = (
    f"(() => {{ {_PROVIDER}"
    + """
  const info = { uuid: "350670db-19fa-4704-a166-e52e178b59d2", name: NAME, rdns: "com.example",
                 icon: "data:image/svg+xml,<svg/>" };
  const announce = () => window.dispatchEvent(new CustomEvent(
    "eip6963:announceProvider", { detail: Object.freeze({ info, provider }) }));
  window.addEventListener("eip6963:requestProvider", announce);
  announce();
})();"""
)

INJECT = f"(() => {{ {_PROVIDER} window.ethereum = provider; }})();"
"""As browsers of older wallets do: EIP-1193 without EIP-6963."""


PAYER = "0x" + "Aa" * 20
HASH = "0x" + "ab" * 32
_DECIMALS, _BALANCE_OF = "0x313ce567", "0x70a08231"


class WalletError(Exception):
    """What EIP-1193 has a wallet answer instead of a result."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


DECLINED = WalletError(4001, "User rejected the request.")
WRAPPED = WalletError(-32603, "Internal error.", {"originalError": {"code": 4001}})
PENDING = WalletError(-32002, "Request already pending.")
UNKNOWN_CHAIN = WalletError(4902, "Unrecognized chain.")


@attrs.define
class Wallet:
    """A wallet on `chain_id`; `answers` has what it does with each method, and `asked` the calls.

    A value that is an exception is raised, a function is called with the parameters, and anything
    else is the result. Unless it has an answer, its network has the block that the page shows.
    """

    answers: Mapping[str, Any]
    chain_id: int = 1
    name: str = "Example wallet"
    asked: list[tuple[str, Any]] = attrs.field(factory=list)

    def inject(self, tab: Tab, script: str = ANNOUNCE) -> None:
        """Have the wallet in each page that the tab opens."""
        tab.expose_function("askWallet", lambda request: self.answer(request))
        tab.add_init_script(script.replace("NAME", json.dumps(self.name)))

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        method, params = request["method"], request.get("params", [])
        self.asked.append((method, params))
        try:
            if method == "eth_getBlockByNumber" and method not in self.answers:
                return {"result": {"number": params[0], "hash": request.get("shown")}}
            return {"result": self._find_result(method, params)}
        except WalletError as error:
            return {"error": {"code": error.code, "message": str(error), "data": error.data}}

    def _find_result(self, method: str, params: Any) -> Any:
        if method not in self.answers and method == "eth_chainId":
            return hex(self.chain_id)
        if method not in self.answers and method == "wallet_switchEthereumChain":
            self.chain_id = int(params[0]["chainId"], 16)
            return None
        answer: Any = self.answers[method]
        if isinstance(answer, Exception):
            raise answer
        return answer(*params) if callable(answer) else answer

    @property
    def methods(self) -> list[str]:
        """What it was asked, in order."""
        return [method for method, _ in self.asked]


def read_blocks(page: Page) -> Callable[[str, bool], Any]:
    """`eth_getBlockByNumber` of a wallet on the chain of a Payment's service."""
    chain = page.checkout.api.service.chains[page.payment["chainId"]]

    def read(number: str, is_full: bool) -> Any:
        assert not is_full
        block = chain.block(int(number, 16))
        return block and {"number": number, "hash": block.hash}

    return read


@attrs.frozen
class Transfer:
    """What a payer's wallet is to send: so many atomic units of a token, to an address."""

    token: str
    to: str
    amount: int
    chain_id: int


def sign_and_send(node: Node, key: LocalAccount, transfer: Transfer) -> str:
    """Have a wallet with that key send a transfer to a real node; the hash."""
    data = "0x" + calls.transfer(transfer.to, transfer.amount).hex()
    return _sign_and_send(node, key, transfer.token, data, transfer.chain_id)


def _sign_and_send(node: Node, key: LocalAccount, to: str, data: str, chain_id: int) -> str:
    signed = key.sign_transaction({
        "chainId": chain_id,
        "nonce": int(node.ask("eth_getTransactionCount", key.address, "latest"), 16),
        "to": to,
        "data": data,
        "value": 0,
        "gas": 200_000,
        "maxFeePerGas": 10**11,
        "maxPriorityFeePerGas": 0,
    })  # fmt: skip
    return str(node.ask("eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex()))


def make_signing_wallet(node: Node, key: LocalAccount) -> Wallet:
    """A wallet that signs with a real key and sends to a real node."""

    def send(transaction: Mapping[str, str]) -> str:
        assert transaction["from"].lower() == key.address.lower()
        assert int(transaction["value"], 16) == 0
        chain_id = int(transaction["chainId"], 16)
        return _sign_and_send(node, key, transaction["to"], transaction["data"], chain_id)

    def ask(method: str) -> Callable[..., Any]:
        return lambda *params: node.ask(method, *params)

    return Wallet({
        "eth_requestAccounts": [key.address],
        "eth_getBlockByNumber": ask("eth_getBlockByNumber"),
        "eth_call": ask("eth_call"),
        "eth_sendTransaction": send,
    })  # fmt: skip


def answer_well(page: Page) -> dict[str, Any]:
    """The answers of a wallet that has enough on the network of the page, and sends."""
    return {
        "eth_requestAccounts": [PAYER],
        "eth_getBlockByNumber": read_blocks(page),
        "eth_call": read_token(),
        "eth_sendTransaction": HASH,
    }


def read_token(decimals: int = 6, balance: int = 25_000_000) -> Any:
    def read(call: dict[str, str], block: str) -> str:
        assert block == "latest"
        found = {_DECIMALS: decimals, _BALANCE_OF: balance}[call["data"][:10]]
        return f"0x{found:064x}"

    return read
