"""The chain of the example: a node whose blocks, pool and tokens are in a file of SQLite.

It stands for the nodes of your chain, and for a client library of theirs. Run a node that adds a
block every second, and pay somebody on it::

    python -m custom_chain.node ledger.db run
    python -m custom_chain.node ledger.db pay TOKEN ADDRESS 25000000
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import attrs

from payments_core.addresses import encode_checksum_address, normalize_address
from payments_core.chains.signatures import SignatureError, recover_signer_from_bytes
from payments_core.clock import Clock, SystemClock

CHAIN_ID = 77
STRANGER = encode_checksum_address(b"stranger".rjust(20, b"\1"))
SCHEMA = """
CREATE TABLE blocks (number INTEGER PRIMARY KEY, hash TEXT, time_ms INTEGER);
CREATE TABLE operators (environment_id TEXT PRIMARY KEY, address TEXT);
CREATE TABLE transactions (
    hash TEXT PRIMARY KEY, sender TEXT, nonce INTEGER, token TEXT, source TEXT, recipient TEXT,
    amount TEXT, must_fail INTEGER, block INTEGER, place INTEGER DEFAULT 0,
    succeeded INTEGER DEFAULT 0);
"""
FIND = """
SELECT t.hash, block, place, succeeded, token, source, recipient, amount, b.hash, b.time_ms
FROM transactions t LEFT JOIN blocks b ON b.number = t.block
"""


class NodeDown(Exception):
    """The node does not answer."""


@attrs.frozen
class Sighting:
    """A transaction as the node knows it: in the pool it has no block."""

    hash: str
    block: int | None
    place: int
    succeeded: bool = attrs.field(converter=bool)
    token: str
    source: str
    recipient: str
    amount: int = attrs.field(converter=int)
    block_hash: str | None
    block_time_ms: int | None


def contract_address(environment_id: str, kind: str, owner_id: str) -> str:
    """The address of a contract of ours, which the operator of its environment moves tokens of."""
    text = json.dumps([environment_id, kind, owner_id])
    return encode_checksum_address(hashlib.sha256(text.encode()).digest()[:20])


class Ledger:
    """A node. Threads and processes may share its file."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self.path, self._clock = path, clock or SystemClock()

    def create(self) -> None:
        """Begin the chain, with a block that everybody knows."""
        with closing(sqlite3.connect(self.path)) as rows, rows:
            rows.executescript(f"PRAGMA user_version = {CHAIN_ID}; {SCHEMA}")
            self._add_block(rows)

    # What a node answers. Every method raises NodeDown.

    def chain_id(self) -> int:
        """Which chain this is."""
        with self._open() as rows:
            return int(rows.execute("PRAGMA user_version").fetchone()[0])

    def height(self) -> int:
        """The number of the newest block."""
        with self._open() as rows:
            return _height(rows)

    def block(self, number: int) -> tuple[int, str, int] | None:
        """The number, the hash and the time of a block."""
        with self._open() as rows:
            found = rows.execute("SELECT * FROM blocks WHERE number = ?", [number]).fetchone()
        return None if found is None else (found[0], found[1], found[2])

    def find(self, hash: str) -> Sighting | None:
        """A transaction in a block or in the pool."""
        with self._open() as rows:
            return next(_find(rows, "WHERE t.hash = ?", hash), None)

    def transfers(self, first: int, last: int) -> list[Sighting]:
        """What succeeded in these blocks, in order."""
        with self._open() as rows:
            return _transfers(rows, first, last)

    def balance(self, token: str, holder: str, last: int) -> int:
        """What an address has after that block."""
        with self._open() as rows:
            return _balance(rows, token, holder, last)

    def count_nonces(self, sender: str, last: int) -> int:
        """How many nonces of a sender the blocks up to that one have used."""
        with self._open() as rows:
            return _count_nonces(rows, sender, last)

    def submit(self, raw: bytes) -> None:
        """Put signed bytes into the pool; nothing happens if they are known or not right.

        The first key that signs for an environment is its operator; a real chain's contract would
        ask its admin.
        """
        signed = json.loads(raw)
        call = json.loads(signed["call"])
        with suppress(SignatureError), self._open(is_write=True) as rows:
            digest = hashlib.sha256(signed["call"].encode()).digest()
            sender = recover_signer_from_bytes(digest, bytes.fromhex(signed["signature"]))
            id, token = call["environment_id"], call["token"]
            if token:
                rows.execute("INSERT OR IGNORE INTO operators VALUES (?, ?)", [id, sender])
            known = rows.execute("SELECT address FROM operators WHERE environment_id = ?", [id])
            source = contract_address(id, *call["source"])
            if not token or known.fetchone() == (sender,):
                hash = "0x" + hashlib.sha256(raw).hexdigest()
                _pool(rows, hash, sender, call["nonce"], token, source, call["recipient"],
                      call["amount"])  # fmt: skip

    # What happens on it.

    def pay(
        self, token: str, recipient: str, amount: int, payer: str = STRANGER, *, fails: bool = False
    ) -> str:
        """A stranger's transfer, in a block when it returns; its hash.

        Strangers have as many tokens as they like.
        """
        hash, token = "0x" + secrets.token_hex(32), normalize_address("evm", token)
        recipient = normalize_address("evm", recipient)
        with self._open(is_write=True) as rows:
            nonce = _count_nonces(rows, payer, _height(rows))
            _pool(rows, hash, payer, nonce, token, payer, recipient, amount, fails=fails)
            self._add_block(rows)
        return hash

    def mine(self, count: int = 1) -> None:
        """Add blocks; the pool's transactions go into the first, in each sender's order."""
        with self._open(is_write=True) as rows:
            for _ in range(count):
                self._add_block(rows)

    def reorg(self, depth: int) -> None:
        """Replace the last blocks by empty ones; their transactions are lost."""
        with self._open(is_write=True) as rows:
            top = _height(rows)
            for number in range(top - depth + 1, top + 1):
                rows.execute("DELETE FROM transactions WHERE block = ?", [number])
                rows.execute("UPDATE blocks SET hash = ? WHERE number = ?", [_new_hash(), number])

    def _add_block(self, rows: sqlite3.Connection) -> None:
        number = _height(rows) + 1
        [before] = rows.execute("SELECT MAX(time_ms) FROM blocks").fetchone()
        time_ms = max(self._clock.now(), before or 0)
        rows.execute("INSERT INTO blocks VALUES (?, ?, ?)", [number, _new_hash(), time_ms])
        pool = rows.execute("SELECT hash, sender, nonce, must_fail FROM transactions "
                            "WHERE block IS NULL ORDER BY nonce, rowid")  # fmt: skip
        for place, (hash, sender, nonce, must_fail) in enumerate(pool.fetchall()):
            if nonce == _count_nonces(rows, sender, number):
                [one] = _find(rows, "WHERE t.hash = ?", hash)
                has_enough = _balance(rows, one.token, one.source, number) >= one.amount
                succeeded = not must_fail and (has_enough or sender == one.source)
                rows.execute("UPDATE transactions SET block = ?, place = ?, succeeded = ? "
                             "WHERE hash = ?", [number, place, succeeded, hash])  # fmt: skip

    @contextmanager
    def _open(self, *, is_write: bool = False) -> Iterator[sqlite3.Connection]:
        file = f"{self.path.absolute().as_uri()}?mode=rw"
        try:
            with closing(sqlite3.connect(file, uri=True, timeout=10)) as rows, rows:
                rows.execute("PRAGMA synchronous = OFF")
                rows.execute("BEGIN IMMEDIATE" if is_write else "BEGIN")
                yield rows
        except sqlite3.Error as error:
            raise NodeDown(str(error)) from error


def _new_hash() -> str:
    return "0x" + secrets.token_hex(32)


def _height(rows: sqlite3.Connection) -> int:
    [number] = rows.execute("SELECT MAX(number) FROM blocks").fetchone()
    return -1 if number is None else int(number)


def _find(rows: sqlite3.Connection, where: str, *values: object) -> Iterator[Sighting]:
    for found in rows.execute(FIND + where, values).fetchall():
        yield Sighting(*found)


def _transfers(rows: sqlite3.Connection, first: int, last: int) -> list[Sighting]:
    where = "WHERE succeeded AND token <> '' AND block BETWEEN ? AND ? ORDER BY block, place"
    return list(_find(rows, where, first, last))


def _balance(rows: sqlite3.Connection, token: str, holder: str, last: int) -> int:
    moved = [one for one in _transfers(rows, 0, last) if one.token == token]
    received = sum(one.amount for one in moved if one.recipient == holder)
    return received - sum(one.amount for one in moved if one.source == holder)


def _count_nonces(rows: sqlite3.Connection, sender: str, last: int) -> int:
    found = rows.execute("SELECT COUNT(*) FROM transactions WHERE sender = ? AND block <= ?",
                         [sender, last])  # fmt: skip
    return int(found.fetchone()[0])


def _pool(
    rows: sqlite3.Connection, hash: str, sender: str, nonce: int, token: str, source: str,
    recipient: str, amount: int, *, fails: bool = False,
) -> None:  # fmt: skip
    rows.execute(
        "INSERT OR IGNORE INTO transactions (hash, sender, nonce, token, source, recipient, "
        "amount, must_fail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [hash, sender, nonce, token, source, recipient, str(amount), fails],
    )


def main(file: str, command: str, *values: str) -> None:
    """Run a node, or pay somebody."""
    ledger = Ledger(Path(file))
    if not ledger.path.exists():
        ledger.create()
    if command == "pay":
        token, recipient, amount = values
        print(ledger.pay(token, recipient, int(amount)))
    while command == "run":
        time.sleep(1)
        ledger.mine()


if __name__ == "__main__":
    main(*sys.argv[1:])
