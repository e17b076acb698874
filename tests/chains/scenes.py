"""A merchant and a payer on a chain: the same calls, whether it is simulated or a real node."""

from __future__ import annotations

import math
import threading
from base64 import b64decode
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

import attrs
from eth_account.signers.local import LocalAccount

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.artifacts import load_contract
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.outbox.record import OutboundTransfer, Replacement, replacement_id
from payments_core.chains.port import (
    AddressSpec,
    Chain,
    ChainUnavailable,
    Contract,
    TransferIntent,
)
from payments_core.chains.simulated.records import SimulatedLog, SimulatedTransaction
from payments_core.chains.simulated.transfers import balance_id
from payments_core.clock import SECOND, FixedClock
from payments_core.payments.details import PaymentDetails
from payments_core.payments.record import Payment
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import SIMULATED, Snapshot
from payments_core_http.cli.anvil.chain import MAX_BLOCKS_PER_ADVANCE, AnvilChain
from tests.chains.cable import Cable
from tests.chains.evm.deployed import batched
from tests.chains.evm.nodes import ACCOUNTS, Node
from tests.service.deposit_harness import SimulatedBalance
from tests.service.faults import FaultyChain
from tests.service.world import BASE, USDC, WALLET, World, atomic, write

T = TypeVar("T")

ELSEWHERE = "0x00000000000000000000000000000000000E15e0"
SIMULATED_TOKEN = "0x00000000000000000000000000000000fa1EC0D2"
PAYERS_KEY: LocalAccount = ACCOUNTS[4]
FEE = 10**10
GAS = 1_000_000
LOW_BASE_FEE = 10**9 // 20
"""Below what any transaction of ours offers."""


SETTINGS = Settings(public_url="https://pay.example")


class Scene(World):
    """A world on one kind of chain; what differs between the kinds is below."""

    wallet = WALLET
    """Somebody who pays from outside."""

    def restarted(self, *given: Any, **more: Any) -> PaymentsService:
        """See World; its links lead somewhere, so that no warning of them is logged."""
        return super().restarted(*given, **{"settings": SETTINGS, **more})

    def begin(self) -> None:
        """The tenant, funds for the payer and the wallet, and all of it beyond any reorg."""
        self._numbers = count()
        self.open()
        self.chain.prepare_noop(
            self.environment_id, 0
        )  # never sent; a sandbox's operator begins with it
        self.fund("100.00")
        self.stranger("1000.00", to=self.wallet)
        self.chain.mine(60)
        self.run()

    def stranger(
        self,
        amount: str,
        *,
        to: str,
        source: str | None = None,
        token: str = USDC.address,
        reverts: bool = False,
    ) -> str:
        """A transfer from outside, in a block and not final; the hash."""
        name = f"{self.environment_id}/{next(self._numbers)}"
        amount_atomic = atomic(amount)
        hash: str = self.chain.transfer(token, source, to, amount_atomic, name, reverts=reverts)
        return hash

    def look(self) -> None:
        """Have the chain scanned now, and do what is due."""
        self.service.worker("sandbox")
        self.service.parts.scanner("sandbox").wake(BASE)
        self.run()

    def finish(self) -> None:
        """What is on the chain is seen, and all that is under way comes to its end."""
        self.look()
        super().finish()

    def until(self, payment: PaymentDetails, status: str) -> Payment:
        """Go on, block by block, until the Payment has that status."""
        for _ in range(60):
            found = self.paid(payment.payment.id)
            if found.status == status:
                return found
            self.advance(1)
        raise AssertionError(found.status)

    def receipts(self, payment: PaymentDetails) -> list[tuple[str, str | None, int]]:
        """The Payment's receipts, oldest first: status, reason, amount."""
        evidenced = self.service.acting_as(self.server).payments.list_receipts(payment.payment.id)
        return [
            (it.status, it.rejection_reason, it.amount_atomic) for it in evidenced.receipts.records
        ]

    def newest(self, holder: str) -> int:
        """What an address holds when everything so far is final."""
        return self.on_chain(holder)

    def check_books(self) -> None:
        """Every Payment's journal adds up, and what it says is held lies at its escrow."""

        def read(snapshot: Snapshot) -> tuple[Payment, ...]:
            return tuple(snapshot.find(Payment, "by_created", limit=100).records)

        for payment in self.storage.read(self.environment_id, read):
            totals = dict.fromkeys(attrs.asdict(payment.books), 0)
            for _, postings in self.journal(payment.id):
                assert sum(postings.values()) == 0
                for account, amount in postings.items():
                    totals[account] += amount
            assert totals == attrs.asdict(payment.books)
            if payment.escrow_address is not None:
                assert self.on_chain(payment.escrow_address) == payment.books.held_atomic

    # What differs.

    def other_token(self) -> str:
        """A token that is not one of ours, and says of itself what it likes."""
        raise NotImplementedError

    def in_one_transaction(self, *transfers: tuple[str, str]) -> str:
        """The wallet's transfers, each to somebody and of an amount, in one transaction."""
        raise NotImplementedError

    def call_without_code(self, address: str) -> str:
        """A transaction to an address without code, as if that were a token; it succeeds."""
        raise NotImplementedError

    def spend(self, amount: str, to: str) -> str:
        """The wallet's transfer to somebody, in a block of its own."""
        raise NotImplementedError

    def spend_otherwise(self, depth: int, amount: str, to: str) -> None:
        """So many blocks are undone, and another transfer of the wallet's is there instead."""
        raise NotImplementedError

    def sweep_all(self, account_id: str, token: str = USDC.address) -> None:
        """Somebody who is nobody brings all from an account's deposit address to its vault."""
        raise NotImplementedError

    def cut(self) -> None:
        """The node is out of reach from now on."""
        raise NotImplementedError

    def mend(self) -> None:
        """The node can be reached again."""
        raise NotImplementedError


class SimulatedScene(Scene):
    """On the simulated chain."""

    def __init__(self) -> None:
        super().__init__(MemoryStorage())
        self.begin()

    def other_token(self) -> str:
        return SIMULATED_TOKEN

    def in_one_transaction(self, *transfers: tuple[str, str]) -> str:
        (first, *others) = transfers
        hash = self.spend(first[1], first[0])
        for to, amount in others:
            self._add(hash, to, atomic(amount))
        return hash

    def call_without_code(self, address: str) -> str:
        hash = self.stranger("0", to=address)
        self._rewrite(hash, lambda row: attrs.evolve(row, logs=()))
        return hash

    def spend(self, amount: str, to: str) -> str:
        return self.stranger(amount, to=to, source=self.wallet)

    def spend_otherwise(self, depth: int, amount: str, to: str) -> None:
        self.reorg(depth)
        self.spend(amount, to)

    def sweep_all(self, account_id: str, token: str = USDC.address) -> None:
        deposit = self.chain.derive(AddressSpec(self.environment_id, "deposit", account_id))
        vault = self.chain.derive(AddressSpec(self.environment_id, "vault", account_id))
        self.chain.mine(self.final_after)
        intent = TransferIntent(
            "sweep-all",
            "env_stranger",
            token,
            Contract("deposit", account_id, deposit),
            vault,
            self.chain.balances(token, [deposit]).amounts[deposit],
        )
        self.chain.broadcast(self.chain.prepare(intent, 0))

    def cut(self) -> None:
        self.service = self.restarted(chains={BASE: _Cut(self.chain)})

    def mend(self) -> None:
        self.service = self.restarted()

    def _add(self, hash: str, to: str, amount: int) -> None:
        log = SimulatedLog(
            token_address=USDC.address, sender=self.wallet, recipient=to, amount_atomic=amount
        )
        self._rewrite(hash, lambda row: attrs.evolve(row, logs=(*row.logs, log)))
        for holder, more in ((to, amount), (self.wallet, -amount)):
            self._credit(hash, holder, more)

    def _credit(self, hash: str, holder: str, more: int) -> None:
        id = balance_id(BASE, USDC.address, holder)
        block = self.chain.transaction(hash).block.number

        def work(tx: Any) -> None:
            balance = tx.get(SimulatedBalance, id, for_update=True)
            if balance is None:
                tx.insert(SimulatedBalance(id=id, total_atomic=more, recent=((block, more),)))
                return
            recent = (*balance.recent, (block, more))
            tx.replace(
                attrs.evolve(balance, total_atomic=balance.total_atomic + more, recent=recent)
            )

        write(self.storage, SIMULATED, work)

    def _rewrite(
        self, hash: str, change: Callable[[SimulatedTransaction], SimulatedTransaction]
    ) -> None:
        def work(tx: Any) -> None:
            row = tx.get(SimulatedTransaction, f"{BASE}:{hash}", for_update=True)
            tx.replace(change(row))

        write(self.storage, SIMULATED, work)


class FreshChain(EvmChain):
    """Asks for the heads each time: a scene makes more blocks in a second than a node keeps."""

    heads_shared_for_s = 0.0


class AnvilScene(Scene):
    """On a real node; blocks come with transactions, and when a test says so.

    Only one that is reached through a cable can be cut off.
    """

    final_after = 10
    wallet = PAYERS_KEY.address

    def __init__(self, chain: AnvilChain, node: Node, cable: Cable | None) -> None:
        begins_at = chain.heads().latest.time  # by the node's clock, which stamps its blocks
        assert begins_at is not None
        super().__init__(MemoryStorage(), {BASE: chain}, FixedClock(begins_at))
        self.node = node
        self.cable = cable
        self.begin()

    def _move(self, instant: int) -> None:
        """See World; the node's blocks come whether or not we can reach it."""
        before = self.clock.now()
        self.clock.advance_to(instant)
        self.node.ask("evm_setTime", self.clock.now())
        blocks = min(math.ceil((self.clock.now() - before) / SECOND), MAX_BLOCKS_PER_ADVANCE)
        if blocks and self.is_mining:
            self.node.ask("anvil_mine", hex(blocks))

    is_mining = True

    def stop_mining(self) -> None:
        """No block is added until it is asked for."""
        self.is_mining = False
        self.node.ask("evm_setAutomine", False)

    def pass_over(self, count: int) -> None:
        """Add blocks that take none of the operator's transactions: they are too expensive."""
        base_fee = max(self.pooled_fees()) * 5 // 4
        for _ in range(count):
            self.mine_at(base_fee)

    def mine_at(self, base_fee: int) -> None:
        """Add a block of this base fee, in wei."""
        self.node.ask("anvil_setNextBlockBaseFeePerGas", hex(base_fee))
        self.node.ask("evm_mine")

    def pooled_fees(self) -> list[int]:
        """What each transaction in the node's pool offers, in wei."""
        pool = self.node.ask("txpool_content")["pending"]
        return [int(it["maxFeePerGas"], 16) for slots in pool.values() for it in slots.values()]

    def mine_alone(self, raw: bytes) -> None:
        """A block with this transaction and none of those that waited; then mining goes on."""
        self.node.ask("anvil_dropAllTransactions")
        self.mine_at(LOW_BASE_FEE)
        hash = self.node.ask("eth_sendRawTransaction", "0x" + raw.hex())
        self.node.ask("evm_mine")
        assert self.node.ask("eth_getTransactionReceipt", hash) is not None
        self.is_mining = True
        self.node.ask("evm_setAutomine", True)

    def outgoing(self, id: str | None) -> list[tuple[str, bytes]]:
        """The hash and bytes of all that was signed for a transfer of ours, in their order."""
        first = self.get(OutboundTransfer, str(id))
        later = [
            self.get(Replacement, replacement_id(first.id, number + 1))
            for number in range(first.replacements)
        ]
        return [(str(it.transaction_hash), b64decode(str(it.raw))) for it in (first, *later)]

    def sent(self) -> int:
        """The operator's transactions in blocks, of whatever outcome."""
        return int(self.node.ask("eth_getTransactionCount", self.operator, "latest"), 16)

    @property
    def operator(self) -> str:
        """Who sends for the environment."""
        address: str = self.chain.derive(AddressSpec(self.environment_id, "operator", "operator"))
        return address

    def other_token(self) -> str:
        return self.node.create(load_contract("SpoofToken").creation)

    def in_one_transaction(self, *transfers: tuple[str, str]) -> str:
        batch = self.node.create(load_contract("Batch").creation)
        moves = [
            (USDC.address, calls.MOVE_FROM.call(self.wallet, to, atomic(amount)))
            for to, amount in transfers
        ]
        return self._hash(self.node.do(self.wallet, batch, batched(*moves)))

    def call_without_code(self, address: str) -> str:
        data = calls.transfer(address, atomic("25.00"))
        return self._hash(self.node.do(self.wallet, ELSEWHERE, data))

    def spend(self, amount: str, to: str) -> str:
        self._spent_slot = self._slot()
        hash: str = self.node.ask("eth_sendRawTransaction", self._signed(amount, to))
        self.node.receipt(hash)
        return hash

    def spend_otherwise(self, depth: int, amount: str, to: str) -> None:
        instead = self._signed(amount, to)
        self.node.ask("anvil_reorg", depth, [[instead, 0]])

    def sweep_all(self, account_id: str, token: str = USDC.address) -> None:
        factory = self.chain._deployment.factory
        data = calls.sweep_all(self.environment_id, account_id, token)
        self.node.do(self.wallet, factory, data)

    def cut(self) -> None:
        assert self.cable
        self.cable.cut()

    def mend(self) -> None:
        assert self.cable
        self.cable.mend()
        until_it_answers(self.chain)

    def outgoing_status(self, id: str | None) -> tuple[str, str | None]:
        """How far a transfer of ours has come, and the bytes that were signed."""
        found = self.get(OutboundTransfer, str(id))
        return found.status, found.raw

    def put_token(self, name: str) -> None:
        """Give USDC another code, with the same balances."""
        code = load_contract(name).runtime
        assert code is not None
        self.node.ask("anvil_setCode", USDC.address, "0x" + code.hex())

    def _slot(self) -> int:
        return int(self.node.ask("eth_getTransactionCount", self.wallet, "latest"), 16)

    def _signed(self, amount: str, to: str) -> str:
        transaction = {
            "chainId": BASE,
            "nonce": self._spent_slot,
            "to": USDC.address,
            "data": calls.transfer(to, atomic(amount)),
            "value": 0,
            "gas": GAS,
            "maxFeePerGas": FEE,
            "maxPriorityFeePerGas": 0,
        }
        return "0x" + bytes(PAYERS_KEY.sign_transaction(transaction).raw_transaction).hex()

    def _hash(self, receipt: Any) -> str:
        return str(receipt.raw["transactionHash"])


def signer() -> LocalSigner:
    """The keys of the operators, and of the sandbox's admin."""
    return LocalSigner(b"the tests' own signer" + bytes(11))


def until_it_answers(chain: Chain) -> None:
    """Wait as long as a node that failed is left alone."""
    for _ in range(500):
        try:
            chain.heads()
            return
        except ChainUnavailable:
            threading.Event().wait(0.02)
    raise AssertionError("the node is not asked again")


class _Cut(FaultyChain):
    """A node that cannot be reached."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, 0, lambda call: call())

    def _through(self, call: Callable[[], T]) -> T:
        raise ChainUnavailable("no answer")
