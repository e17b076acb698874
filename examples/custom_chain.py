"""Your own chain adapter, which passes the suite of the port. The "chain" is a ledger in
memory with blocks, nonces and reorgs, so that the example needs nothing else; yours asks nodes.

Run it to see a Payment paid and released on it::

    .venv/bin/python examples/custom_chain.py
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from payments_core import KeyRing, NewPayment, PaymentsService, ToWallet, open_storage
from payments_core.addresses import encode_checksum_address
from payments_core.chains.port import (
    AddressSpec,
    Block,
    ChainUnavailable,
    FinalBalances,
    Heads,
    ScannedTransfer,
    SignedTransaction,
    TransactionView,
    TransferIntent,
    TransferLog,
    UnsupportedByChain,
)
from payments_core.clock import Clock, FixedClock, SystemClock
from payments_core.networks import ChainType, shipped_networks

FINALITY_BLOCKS = 3
MINT = encode_checksum_address(bytes(20))


@attrs.define
class Ledger:
    """The chain itself: the state of its nodes. Handles share one."""

    key: bytes
    clock: Clock = attrs.field(factory=SystemClock)
    blocks: list[list[TransactionView]] = attrs.field(factory=lambda: [[]])
    hashes: list[str] = attrs.field(factory=lambda: ["genesis"])
    times: list[int] = attrs.field(factory=lambda: [0])
    pool: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    used: dict[str, str] = attrs.field(factory=dict)  # "sender nonce" with the transaction's hash
    forks: int = 0
    down: bool = False

    def accept(self, raw: bytes) -> str:
        """Add a transaction to the pool, if its signature is valid; its hash."""
        body, _, mac = raw.rpartition(b"|")
        hash = "0x" + hashlib.sha256(raw).hexdigest()
        signed = hmac.new(self.key, body, "sha256").hexdigest().encode()
        if hmac.compare_digest(signed, mac) and self.find(hash) is None:
            self.pool[hash] = json.loads(body)
        return hash

    def mine(self, count: int = 1) -> None:
        """Add blocks; the pool's transactions go into the first, in each sender's order."""
        for _ in range(count):
            number = len(self.blocks)
            self.hashes.append(f"block-{number}-{self.forks}")
            self.times.append(max(self.times[-1], self.clock.now()))
            self.blocks.append([])
            for hash, it in sorted(self.pool.items(), key=lambda pair: pair[1]["nonce"]):
                if it["nonce"] == self.count_nonces(it["sender"], number):
                    self.blocks[number].append(self._execute(hash, it, number))
                    self.used[f"{it['sender']} {it['nonce']}"] = hash
            for view in self.blocks[number]:
                del self.pool[view.hash]

    def _execute(self, hash: str, it: dict[str, Any], number: int) -> TransactionView:
        token, source, amount = it["token"], it["source"], it["amount"]
        enough = source == MINT or self.balance(token, source, number) >= amount
        succeeded = enough and not it.get("fails", False)
        index = sum(len(view.logs) for view in self.blocks[number])
        log = TransferLog(0, index, token, source, it["recipient"], amount)
        logs = (log,) if succeeded and token else ()
        return TransactionView(hash, self.at(number), succeeded, logs)

    def reorg(self, depth: int) -> None:
        """Replace the last blocks by empty ones; their transactions are lost."""
        self.forks += 1
        for number in range(len(self.blocks) - depth, len(self.blocks)):
            gone = {view.hash for view in self.blocks[number]}
            self.used = {slot: hash for slot, hash in self.used.items() if hash not in gone}
            self.blocks[number], self.hashes[number] = [], f"block-{number}-{self.forks}"

    def at(self, number: int) -> Block:
        """The block of a height."""
        return Block(number, self.hashes[number], self.times[number])

    def find(self, hash: str) -> TransactionView | None:
        """A transaction in a block."""
        return next((one for block in self.blocks for one in block if one.hash == hash), None)

    def logs(self, last: int) -> Iterator[TransferLog]:
        """Every transfer up to a height."""
        return (log for block in self.blocks[: last + 1] for one in block for log in one.logs)

    def balance(self, token: str, holder: str, last: int) -> int:
        """The balance of an address after that block."""
        moved = [log for log in self.logs(last) if log.token_address == token]
        received = sum(log.amount_atomic for log in moved if log.recipient == holder)
        return received - sum(log.amount_atomic for log in moved if log.sender == holder)

    def count_nonces(self, sender: str, last: int) -> int:
        """How many nonces of a sender the blocks up to a height have used."""
        mined = {view.hash for block in self.blocks[: last + 1] for view in block}
        return sum(
            slot.rpartition(" ")[0] == sender and hash in mined for slot, hash in self.used.items()
        )


class LedgerChain:
    """The adapter: what your own distribution registers in `payments_core.chains`."""

    chain_type: ChainType = "evm"
    max_scan_interval_ms = 60_000
    max_scan_blocks = 1_000
    bump_after_ms = None  # there are no fees: no transaction is stuck

    def __init__(self, chain_id: int, ledger: Ledger) -> None:
        self.chain_id, self._known = chain_id, ledger

    @property
    def _ledger(self) -> Ledger:
        if self._known.down:
            raise ChainUnavailable("the ledger does not answer")
        return self._known

    def derive(self, spec: AddressSpec) -> str:
        text = json.dumps([self.chain_id, spec.environment_id, spec.kind, spec.owner_id])
        return encode_checksum_address(hashlib.sha256(text.encode()).digest()[:20])

    def heads(self) -> Heads:
        latest = len(self._ledger.blocks) - 1
        return Heads(self._known.at(latest), self._known.at(max(0, latest - FINALITY_BLOCKS)))

    def transaction(self, hash: str) -> TransactionView | None:
        waiting = TransactionView(hash, None, False, ()) if hash in self._ledger.pool else None
        return self._known.find(hash) or waiting

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return {hash: self.transaction(hash) for hash in hashes}

    def block(self, number: int) -> Block | None:
        return self._known.at(number) if number < len(self._ledger.blocks) else None

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        return tuple(
            ScannedTransfer(view.hash, view.block, log.log_index, log.token_address, log.sender,
                            log.recipient, log.amount_atomic)
            for block in self._ledger.blocks[max(0, first) : last + 1]
            for view in block
            if view.block is not None
            for log in view.logs
            if log.token_address in tokens and (recipients is None or log.recipient in recipients)
        )  # fmt: skip

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        height = self.heads().final.number
        found = {one: self._known.balance(token_address, one, height) for one in holders}
        return FinalBalances(height, found)

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        raise UnsupportedByChain("accounts are not contracts here")

    def prepare(self, intent: TransferIntent, nonce: int) -> SignedTransaction:
        if intent.module is not None:
            raise UnsupportedByChain("there are no role modules here")
        moved = {"token": intent.token_address, "source": intent.source.address,
                 "recipient": intent.recipient, "amount": intent.amount_atomic}  # fmt: skip
        return self._sign(intent.environment_id, nonce, id=intent.id, **moved)

    def prepare_noop(
        self, environment_id: str, nonce: int, sender: str | None = None
    ) -> SignedTransaction:
        return self._sign(environment_id, nonce, token="", source="", recipient="", amount=0)

    def bump(self, environment_id: str, signed: SignedTransaction) -> SignedTransaction | None:
        return None

    def final_nonce(self, sender: str) -> int:
        return self._ledger.count_nonces(sender, self.heads().final.number)

    def pending_nonce(self, sender: str) -> int:
        return self._ledger.count_nonces(sender, len(self._known.blocks))

    def find_payer(self, intent: TransferIntent) -> str:
        return intent.source.address

    def broadcast(self, signed: SignedTransaction) -> None:
        self._ledger.accept(signed.raw)

    def _sign(self, environment_id: str, nonce: int, **fields: Any) -> SignedTransaction:
        sender = self.derive(AddressSpec(environment_id, "operator", "operator"))
        return sign(self._known.key, sender=sender, nonce=nonce, **fields)


def sign(key: bytes, **fields: Any) -> SignedTransaction:
    """A transaction with its signature; its hash is known before it is sent."""
    body = json.dumps(fields, sort_keys=True).encode()
    raw = body + b"|" + hmac.new(key, body, "sha256").hexdigest().encode()
    return SignedTransaction("0x" + hashlib.sha256(raw).hexdigest(), raw)


def transfer(ledger: Ledger, token: str, recipient: str, amount: int, **more: Any) -> str:
    """A stranger's transfer of new tokens, in a block when it returns; its hash."""
    stranger = f"stranger {len(ledger.blocks)}"
    signed = sign(ledger.key, sender=stranger, nonce=0, token=token, source=MINT,
                  recipient=recipient, amount=amount, **more)  # fmt: skip
    ledger.accept(signed.raw)
    ledger.mine()
    return signed.hash


def main() -> None:
    """A Payment to a wallet: paid by a stranger's transfer, proven when final, released."""
    clock, base = FixedClock(), 8453
    ledger = Ledger(b"the operator's key", clock)
    chain = LedgerChain(base, ledger)
    service = PaymentsService(
        open_storage("memory://"),
        KeyRing.parse(KeyRing.generate()),
        chains={base: chain},
        clock=clock,
    )
    tenants = service.tenants
    shop = service.environment(tenants.create_app("Shop", "shop").environments["production"])
    wallet = encode_checksum_address(bytes(range(20)))
    order = NewPayment(amount="25.00", destination=ToWallet(address=wallet))
    created = shop.payments.receive(order)
    payment = created.payment
    print(payment.status)
    token = shipped_networks().find_asset(base, "USDC").address
    transfer(ledger, token, str(payment.escrow_address), 25_000_000)
    worker = service.worker("production")
    for _ in range(4):
        ledger.mine(FINALITY_BLOCKS)
        clock.advance(60)
        worker.run_until_idle()
        print(shop.payments.read(payment.id).payment.status)
    print("the wallet has", chain.balances(token, [wallet]).amounts[wallet])
    service.close()


if __name__ == "__main__":
    main()
