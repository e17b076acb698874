"""An EVM chain in memory as nodes with pools build it: blocks, fees, reorgs, and our contracts.

Transactions of ours are real signed bytes; strangers' are lists of moves. Nodes are `pool_node.py`.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import attrs
from eth_hash.auto import keccak

from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm import abi
from payments_core.chains.evm.addresses import Deployment, PurseKind, hash_id
from payments_core.chains.evm.transactions import decode_signed
from payments_core.clock import SECOND, Clock
from tests.chains.evm.fake_node import hashed, padded
from tests.shipped import CHAINS

CHAIN = 8453
GWEI = 10**9
QUIET_FEE = GWEI // 20
TOKEN = CHAINS[CHAIN].tokens[0].address
OTHER_TOKEN = "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359"
TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
ADMIN = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
FAUCET = "0x" + "0" * 40
WALLETS = tuple(
    encode_checksum_address((0xE0000 + number).to_bytes(20, "big")) for number in range(1, 6)
)
"""Strangers."""
SECRETS = tuple(f"secret {number} of the signer".encode().ljust(32, b"\0") for number in range(3))
"""Of the operator's keys."""
GAS_USED = 120_000
LEFT_OUT = 0.05
"""The share of transactions that a block has no room for."""

Move = tuple[str, str, str, int]
"""A token, from whom, to whom, how much."""


@attrs.define(eq=False)
class OurTransaction:
    """Signed bytes of ours."""

    hash: str
    sender: str
    nonce: int
    to: str
    data: bytes
    gas: int
    max_fee: int
    tip: int

    @classmethod
    def of(cls, raw: bytes) -> OurTransaction:
        """What the bytes say."""
        unsigned, sender = decode_signed(raw, chain_id=CHAIN)
        return cls(
            "0x" + keccak(raw).hex(), sender, unsigned.nonce, unsigned.to, unsigned.data,
            unsigned.gas, unsigned.max_fee, unsigned.max_priority_fee,
        )  # fmt: skip


@attrs.define(eq=False)
class StrangersTransaction:
    """Somebody's transaction; `lead` logs of another kind come before its own."""

    hash: str
    moves: list[Move]
    reverts: bool = False
    lead: int = 0


AnyTransaction = OurTransaction | StrangersTransaction


@attrs.frozen
class Receipt:
    """A transaction in a block; `index` is that of its first log."""

    transaction: AnyTransaction
    succeeded: bool
    logs: Sequence[Mapping[str, Any]]
    index: int


@attrs.define
class State:
    """What a block leaves: tokens by token and holder, nonces, and gas money."""

    tokens: dict[tuple[str, str], int] = attrs.field(factory=dict)
    nonces: dict[str, int] = attrs.field(factory=dict)
    gas_money: dict[str, int] = attrs.field(factory=dict)

    def copy(self) -> State:
        return State(dict(self.tokens), dict(self.nonces), dict(self.gas_money))

    def apply(self, moves: Sequence[Move]) -> bool:
        """Do all moves, or none where one is not covered."""
        trial = dict(self.tokens)
        for token, source, recipient, amount in moves:
            if source != FAUCET:
                if trial.get((token, source), 0) < amount:
                    return False
                trial[token, source] -= amount
            trial[token, recipient] = trial.get((token, recipient), 0) + amount
        self.tokens = trial
        return True


@attrs.frozen
class Block:
    """A block, with the state behind it."""

    number: int
    hash: str
    unix_s: int
    receipts: Sequence[Receipt]
    state: State


@attrs.define
class Pool:
    """What a node has waiting, by sender and nonce."""

    waiting: dict[tuple[str, int], OurTransaction] = attrs.field(factory=dict)


class Network:
    """One chain, whose blocks take what the pools of its nodes hold."""

    def __init__(self, rng: random.Random, clock: Clock, *, final_depth: int, nodes: int) -> None:
        self.rng = rng
        self.clock = clock
        self.final_depth = final_depth
        self.base_fee = QUIET_FEE
        self.is_mining = True
        self.blacklist: Collection[str] = frozenset()
        self.deployment = Deployment(ADMIN)
        self.operators: set[tuple[bytes, str]] = set()
        self.pools = [Pool() for _ in range(nodes)]
        self.signed: dict[str, OurTransaction] = {}
        self.strangers: list[StrangersTransaction] = []
        self.blocks = [Block(0, hashed("genesis"), clock.now() // SECOND, (), State())]
        self._ids: dict[bytes, str] = {}
        self._forks = 0
        for _ in range(12):
            self.mine()

    @property
    def tip(self) -> Block:
        return self.blocks[-1]

    def balance(self, token: str, holder: str) -> int:
        return self.tip.state.tokens.get((token, holder), 0)

    def learn(self, id: str) -> None:
        """Let the contracts' calls be read: they have the hashes of ids alone."""
        self._ids[hash_id(id)] = id

    def purse(self, environment_id: str, kind: PurseKind, owner_id: str) -> str:
        return self.deployment.address(environment_id, kind, owner_id)

    def mine(self) -> None:
        """Add a block."""
        state = self.tip.state.copy()
        ours = self._choose_ours(state)
        strangers: list[StrangersTransaction] = []
        if self.is_mining:
            strangers, self.strangers = self.strangers, []
        self.rng.shuffle(strangers)
        # Ours stay in the order of their nonces.
        mined = [*ours, *strangers] if self.rng.random() < 0.5 else [*strangers, *ours]
        receipts: list[Receipt] = []
        index = 0
        for transaction in mined:
            moves = self._execute(transaction, state)
            logs = [] if moves is None else self._logs(transaction, moves)
            receipts.append(Receipt(transaction, moves is not None, logs, index))
            index += len(logs)
        number = self.tip.number + 1
        hash = hashed(number, self._forks, self.tip.hash, [one.hash for one in mined])
        unix_s = max(self.tip.unix_s, self.clock.now() // SECOND)
        self.blocks.append(Block(number, hash, unix_s, receipts, state))
        for pool in self.pools:
            for sender, nonce in list(pool.waiting):
                if nonce < state.nonces.get(sender, 0):
                    del pool.waiting[sender, nonce]

    def reorganize(self, depth: int, *, lost: float, swapped: float, changed: float) -> None:
        """Undo the last blocks, and build others.

        Shares of what they had are lost, come back as another version for the same nonce, or, if
        they were a stranger's, with another amount.
        """
        depth = min(depth, len(self.blocks) - 2)
        undone, self.blocks = self.blocks[-depth:], self.blocks[:-depth]
        self._forks += 1
        back: list[StrangersTransaction] = []
        for receipt in (receipt for block in undone for receipt in block.receipts):
            transaction = receipt.transaction
            if isinstance(transaction, OurTransaction):
                self._return_to_pools(transaction, lost, swapped)
            elif self.rng.random() >= lost:
                transaction.lead = self.rng.randint(0, 3)
                if self.rng.random() < changed and len(transaction.moves) == 1:
                    ((token, source, recipient, amount),) = transaction.moves
                    amount = max(0, amount + self.rng.choice((-1, 1, amount)))
                    transaction.moves = [(token, source, recipient, amount)]
                back.append(transaction)
        self.strangers = back + self.strangers
        for _ in range(depth + self.rng.randint(0, 2)):
            self.mine()

    def gossip(self) -> None:
        """Let every pool have the best that any has."""
        best = self._best_offers()
        for pool in self.pools:
            pool.waiting.update(best)

    def _return_to_pools(self, transaction: OurTransaction, lost: float, swapped: float) -> None:
        key = (transaction.sender, transaction.nonce)
        versions = [one for one in self.signed.values() if (one.sender, one.nonce) == key]
        chosen = self.rng.choice(versions) if self.rng.random() < swapped else transaction
        if self.rng.random() >= lost:
            for pool in self.pools:
                pool.waiting[key] = chosen

    def _best_offers(self) -> dict[tuple[str, int], OurTransaction]:
        best: dict[tuple[str, int], OurTransaction] = {}
        for pool in self.pools:
            for key, transaction in pool.waiting.items():
                if key not in best or transaction.max_fee > best[key].max_fee:
                    best[key] = transaction
        return best

    def _choose_ours(self, state: State) -> list[OurTransaction]:
        chosen: list[OurTransaction] = []
        by_sender: defaultdict[str, dict[int, OurTransaction]] = defaultdict(dict)
        for (sender, nonce), transaction in self._best_offers().items():
            by_sender[sender][nonce] = transaction
        for sender, waiting in by_sender.items():
            nonce = state.nonces.get(sender, 0)
            while nonce in waiting and self.is_mining:
                if waiting[nonce].max_fee < self.base_fee or self.rng.random() < LEFT_OUT:
                    break
                chosen.append(waiting[nonce])
                nonce += 1
        return chosen

    def _execute(self, transaction: AnyTransaction, state: State) -> Sequence[Move] | None:
        """What a transaction moves; None where it fails."""
        if isinstance(transaction, StrangersTransaction):
            done = not transaction.reverts and state.apply(transaction.moves)
            return transaction.moves if done else None
        sender = transaction.sender
        state.nonces[sender] = transaction.nonce + 1
        price = min(transaction.max_fee, self.base_fee + transaction.tip)
        paid = min(transaction.gas, GAS_USED) * price
        state.gas_money[sender] = state.gas_money.get(sender, 0) - paid
        moves = self._read_call(transaction)
        if not moves:
            return moves
        if moves[-1][2] in self.blacklist or not state.apply(moves):
            return None
        return moves

    def _read_call(self, transaction: OurTransaction) -> Sequence[Move] | None:
        """What a call of the factory is to move; nothing for another call, None if not allowed."""
        if transaction.to != self.deployment.factory:
            return ()
        for function in (abi.FUND, abi.PAY, abi.PAY_OUT, abi.SWEEP):
            arguments = function.decode_arguments(transaction.data)
            if arguments is None:
                continue
            key, owner, *rest = arguments
            if (key, transaction.sender) not in self.operators:
                return None
            environment, owner_id = self._ids[key], self._ids[owner]
            if function is abi.FUND:
                escrow_of, token, amount = rest
                path = [
                    self.purse(environment, "vault", owner_id),
                    self.purse(environment, "escrow", self._ids[escrow_of]),
                ]
            elif function is abi.PAY:
                token, recipient, amount = rest
                path = [self.purse(environment, "escrow", owner_id), _checksum(recipient)]
            elif function is abi.PAY_OUT:
                through, token, recipient, amount = rest
                path = [
                    self.purse(environment, "vault", owner_id),
                    self.purse(environment, "escrow", self._ids[through]),
                    _checksum(recipient),
                ]
            else:
                token, amount = rest
                path = [
                    self.purse(environment, "deposit", owner_id),
                    self.purse(environment, "vault", owner_id),
                ]
            return [
                (_checksum(token), source, recipient, amount)
                for source, recipient in pairwise(path)
            ]
        return ()

    def _logs(self, transaction: AnyTransaction, moves: Sequence[Move]) -> list[Mapping[str, Any]]:
        lead = transaction.lead if isinstance(transaction, StrangersTransaction) else 0
        other = {"address": OTHER_TOKEN.lower(), "topics": [hashed("other")], "data": "0x"}
        return [other] * lead + [
            {
                "address": token.lower(),
                "topics": [TRANSFER, padded(source), padded(recipient)],
                "data": f"0x{amount:064x}",
            }
            for token, source, recipient, amount in moves
        ]


def _checksum(address: str) -> str:
    return encode_checksum_address(bytes.fromhex(address[2:]))
