"""The wallet on its network: what it has, what it sends, and what that cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import msgspec

from payments_core.chains.evm import abi
from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.fees import Fees, initial_fees
from payments_core.chains.evm.quorum import NodeQuorum, NodeSession
from payments_core.chains.evm.rpc import Refusal, RpcCall
from payments_core.chains.evm.transactions import (
    UnsignedTransaction,
    attach_signature,
    signing_hash,
)
from payments_core.chains.port import ChainUnavailable, SignedTransaction
from payments_core.networks import FeePolicy
from payments_core_http.cli.rehearse.saved import SignedCall
from payments_core_http.cli.rehearse.wallet import Wallet


class CallRefused(Exception):
    """The nodes say that a transaction of the wallet would fail; the text has their words."""


@attrs.frozen
class WalletCall:
    """A call that the wallet makes: the contract, its data, and the coin that it sends in wei."""

    to: str
    data: bytes = b""
    value: int = 0


class _Receipt(msgspec.Struct, rename="camel"):
    """What a transaction cost; rollups charge for data besides."""

    gas_used: str
    effective_gas_price: str
    l1_fee: str | None = None


_RECEIPT = msgspec.json.Decoder(_Receipt | None)


@attrs.frozen
class Payer:
    """The wallet, and the chain that it pays on."""

    wallet: Wallet
    chain: EvmChain
    nodes: NodeQuorum
    fees: FeePolicy

    def sign(self, call: WalletCall) -> SignedCall:
        """Sign a call for the wallet's next nonce, and do not send it.

        Raises CallRefused, ChainUnavailable.
        """
        gas, fees = self._estimate_gas(call), self.estimate_fees()
        unsigned = UnsignedTransaction(
            chain_id=self.chain.chain_id,
            nonce=self.chain.pending_nonce(self.wallet.address),
            to=call.to,
            value=call.value,
            data=call.data,
            gas=gas * 13 // 10,
            max_fee=fees.max_fee,
            max_priority_fee=fees.max_priority_fee,
        )
        ready = attach_signature(unsigned, self.wallet.sign(signing_hash(unsigned)))
        return SignedCall(ready.hash, ready.raw.hex(), unsigned.nonce)

    def send(self, signed: SignedCall) -> None:
        """Send what was signed; sending it again is harmless. Raises ChainUnavailable."""
        self.chain.broadcast(SignedTransaction(signed.hash, bytes.fromhex(signed.raw)))

    def is_replaced(self, signed: SignedCall) -> bool:
        """Whether another transaction of the wallet has finally taken its nonce."""
        is_used = self.chain.final_nonce(self.wallet.address) > signed.nonce
        return is_used and self.chain.transaction(signed.hash) is None

    def estimate_fees(self) -> Fees:
        """The fees of a transaction now. Raises ChainUnavailable."""
        asked = [
            RpcCall("eth_feeHistory", ("0x1", "latest", [])),
            RpcCall("eth_maxPriorityFeePerGas"),
        ]

        def ask(session: NodeSession) -> tuple[int, int]:
            history, tip = session.call_all(asked)
            return answers.parse_next_base_fee(history), answers.parse_wei(tip)

        found = self.nodes.query_all(ask)
        base_fee, tip = (sorted(each)[len(each) // 2] for each in zip(*found, strict=True))
        return initial_fees(base_fee, tip, self.fees)

    def read_coin(self, address: str) -> int:
        """The wei of an address at the newest block: the lowest that a node names."""
        return self._read_lowest(RpcCall("eth_getBalance", (address, "latest")), answers.parse_wei)

    def read_tokens(self, token: str, addresses: Sequence[str]) -> list[int]:
        """The tokens of some addresses at the newest block, in atomic units."""
        calls = [(token, abi.BALANCE_OF.call(address)) for address in addresses]
        return [self.read_number(to, data) for to, data in calls]

    def read_number(self, to: str, data: bytes) -> int:
        """The number that a call of a contract returns at the newest block."""
        call = RpcCall("eth_call", ({"to": to, "data": "0x" + data.hex()}, "latest"))
        return self._read_lowest(call, answers.parse_uint256)

    def read_cost(self, hashes: Sequence[str]) -> tuple[int, int | None]:
        """The gas and the wei that transactions took; no wei if a node does not say it."""
        asked = [RpcCall("eth_getTransactionReceipt", (hash,)) for hash in hashes]
        if not asked:
            return 0, 0
        try:
            receipts = self.nodes.query_agreed(
                lambda session: tuple(map(_parse_cost, session.call_all(asked)))
            )
        except ChainUnavailable:
            return 0, None
        known = [cost for cost in receipts if cost is not None]
        gas = sum(gas for gas, _ in known)
        return gas, sum(wei for _, wei in known) if len(known) == len(hashes) else None

    def _read_lowest(self, call: RpcCall, parse: Callable[[msgspec.Raw], int]) -> int:
        return min(self.nodes.query_all(lambda session: parse(session.call_all([call])[0])))

    def _estimate_gas(self, call: WalletCall) -> int:
        """The gas that a call takes. Raises CallRefused with a node's words."""
        fields = {"from": self.wallet.address, "to": call.to, "data": "0x" + call.data.hex()}
        asked = [RpcCall("eth_estimateGas", ({**fields, "value": hex(call.value)},))]

        def ask(session: NodeSession) -> int | Refusal:
            (result,) = session.batch(asked)
            return result if isinstance(result, Refusal) else answers.parse_number(result)

        found = self.nodes.query_all(ask)
        known = sorted(gas for gas in found if not isinstance(gas, Refusal))
        if not known:
            words = next(one.words for one in found if isinstance(one, Refusal))
            raise CallRefused(
                f"a node refuses it, saying {words!r}" if words else "nodes refuse it"
            )
        return known[len(known) // 2]


def _parse_cost(raw: msgspec.Raw) -> tuple[int, int] | None:
    try:
        found = _RECEIPT.decode(raw)
    except msgspec.DecodeError as error:
        raise answers.BadResponse("the receipt has another form") from error
    if found is None:
        return None
    gas = answers.parse_quantity(found.gas_used)
    price = answers.parse_quantity(found.effective_gas_price, 1 << 128)
    data_fee = 0 if found.l1_fee is None else answers.parse_quantity(found.l1_fee, 1 << 128)
    return gas, gas * price + data_fee
