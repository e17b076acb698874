"""What an EVM node may answer, decoded strictly: what cannot be right is ChainUnavailable.

The forms are those of the Ethereum JSON-RPC specification. A quantity has no leading zeros and at
least one digit ("0x0"); a node that writes one otherwise is not guessed at. Hex letters may be of
either case. Fields that are not asked for are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import attrs
import msgspec

from payments_core.addresses import checksummed
from payments_core.chains.port import (
    Block,
    ChainUnavailable,
    ScannedTransfer,
    TransactionView,
    TransferLog,
)

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""keccak256("Transfer(address,address,uint256)"), the first topic of an ERC-20 transfer."""

MOST_NUMBER = 2**63
"""Below this are heights and places; 2**256 bounds everything else."""

MOST_LOGS = 100_000
_MOST_TOPICS = 4  # of the EVM itself
_QUANTITY = re.compile(r"0x(?:0|[1-9a-fA-F][0-9a-fA-F]{0,63})", re.ASCII)
_DATA = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_WORD = re.compile(r"0x[0-9a-fA-F]{64}", re.ASCII)
_CLEAN = "0x" + 24 * "0"
"""What an address begins with where it fills 32 bytes."""


class BadAnswer(ChainUnavailable):
    """A node's answer that cannot be right."""


@attrs.frozen
class Log:
    """A log, with hex in small letters."""

    address: str
    topics: tuple[str, ...]
    data: str
    block: Block
    transaction_hash: str
    index: int


@attrs.frozen
class Receipt:
    """What a transaction did, and in which block."""

    transaction_hash: str
    block: Block
    succeeded: bool
    logs: tuple[Log, ...]


class _Block(msgspec.Struct):
    number: str
    hash: str


class _Transaction(msgspec.Struct):
    hash: str


class _Log(msgspec.Struct, rename="camel"):
    address: str
    topics: list[str]
    data: str
    block_number: str
    block_hash: str
    transaction_hash: str
    log_index: str
    removed: bool = False


class _Fees(msgspec.Struct):
    base_fees: list[str] = msgspec.field(name="baseFeePerGas")


class _Receipt(msgspec.Struct, rename="camel"):
    transaction_hash: str
    block_number: str
    block_hash: str
    status: str
    logs: list[_Log]


T = TypeVar("T")

_TEXTS = msgspec.json.Decoder(str)
_BLOCKS = msgspec.json.Decoder(_Block | None)
_TRANSACTIONS = msgspec.json.Decoder(_Transaction | None)
_RECEIPTS = msgspec.json.Decoder(_Receipt | None)
_LOGS = msgspec.json.Decoder(list[_Log])
_FEES = msgspec.json.Decoder(_Fees)


def number(raw: msgspec.Raw, below: int = MOST_NUMBER) -> int:
    """A number, as of `eth_chainId`."""
    return quantity(_read(_TEXTS, raw), below)


def wei(raw: msgspec.Raw) -> int:
    """An amount of the chain's own coin."""
    return quantity(_read(_TEXTS, raw), 1 << 256)


def next_base_fee(raw: msgspec.Raw) -> int:
    """The base fee of the block after the newest, of `eth_feeHistory`; it is told last."""
    fees = _read(_FEES, raw).base_fees
    if not fees:
        raise BadAnswer("a history of fees without any")
    return quantity(fees[-1], 1 << 256)


def data(raw: msgspec.Raw) -> bytes:
    """Bytes of any length, as of `eth_call`."""
    text = _read(_TEXTS, raw)
    if not _DATA.fullmatch(text):
        raise BadAnswer("bytes are not in hex")
    return bytes.fromhex(text[2:])


def uint256(raw: msgspec.Raw) -> int:
    """The number that a call of a contract returned, exactly 32 bytes."""
    return int(word(_read(_TEXTS, raw)), 16)


def block(raw: msgspec.Raw) -> Block | None:
    """A block, or None where there is none."""
    found = _read(_BLOCKS, raw)
    return None if found is None else Block(quantity(found.number), word(found.hash))


def is_known(raw: msgspec.Raw, transaction_hash: str) -> bool:
    """Whether the node knows a transaction, in a block or not."""
    found = _read(_TRANSACTIONS, raw)
    if found is not None and word(found.hash) != transaction_hash:
        raise BadAnswer("another transaction than was asked for")
    return found is not None


def receipt(raw: msgspec.Raw, transaction_hash: str) -> Receipt | None:
    """The receipt of that transaction, or None where there is none.

    Its logs must all be of it, and stand one after the other in the block: with one left out,
    those behind it would seem to be elsewhere than they are.
    """
    said = _read(_RECEIPTS, raw)
    if said is None:
        return None
    if word(said.transaction_hash) != transaction_hash:
        raise BadAnswer("a receipt of another transaction than was asked for")
    where = Block(quantity(said.block_number), word(said.block_hash))
    succeeded = quantity(said.status, below=2) == 1
    found = _logs(said.logs)
    for place, log in enumerate(found):
        if log.transaction_hash != transaction_hash or log.block != where:
            raise BadAnswer("a receipt with a log of another transaction or block")
        if log.index != found[0].index + place:
            raise BadAnswer("a receipt whose logs are not one after the other")
    # Polygon's nodes log the fee of a failed transaction too; a transfer cannot be in one.
    if not succeeded and any(map(is_transfer, found)):
        raise BadAnswer("a failed transaction with transfers")
    return Receipt(transaction_hash, where, succeeded, found)


def logs(raw: msgspec.Raw) -> tuple[Log, ...]:
    """A list of logs in the order in which it came."""
    return _logs(_read(_LOGS, raw))


def in_order(found: Sequence[Log]) -> tuple[Log, ...]:
    """Logs in the chain's order, each once.

    Two of one place, or two hashes of one height, cannot both be right.
    """
    places: dict[tuple[int, int], Log] = {}
    hashes: dict[int, str] = {}
    for log in found:
        if hashes.setdefault(log.block.number, log.block.hash) != log.block.hash:
            raise BadAnswer("logs of two blocks of one height")
        if places.setdefault((log.block.number, log.index), log) != log:
            raise BadAnswer("two logs of one place")
    return tuple(places[place] for place in sorted(places))


def view(receipt: Receipt) -> TransactionView:
    """A transaction that is in a block, with its transfers.

    Logs that are none keep their place: a transfer's position counts them too.
    """
    places = enumerate(receipt.logs)
    transfers = tuple(transfer(log, position) for position, log in places if is_transfer(log))
    return TransactionView(receipt.transaction_hash, receipt.block, receipt.succeeded, transfers)


def is_transfer(log: Log) -> bool:
    """Whether a log is well formed as a transfer of an ERC-20 token.

    Those of ERC-721 have a fourth topic, and what has bytes before an address no token wrote.
    """
    return (
        len(log.topics) == 3
        and log.topics[0] == TRANSFER
        and len(log.data) == 66
        and log.topics[1].startswith(_CLEAN)
        and log.topics[2].startswith(_CLEAN)
    )


def transfer(log: Log, position: int) -> TransferLog:
    """The transfer of a log that is one."""
    return TransferLog(
        position,
        log.index,
        address_text(log.address),
        address_text("0x" + log.topics[1][26:]),
        address_text("0x" + log.topics[2][26:]),
        int(log.data, 16),
    )


def scanned(log: Log) -> ScannedTransfer:
    """The transfer of a log that is one, without its place in the transaction."""
    return ScannedTransfer(
        log.transaction_hash,
        log.block,
        log.index,
        address_text(log.address),
        address_text("0x" + log.topics[1][26:]),
        address_text("0x" + log.topics[2][26:]),
        int(log.data, 16),
    )


@lru_cache(maxsize=65_536)
def address_text(address: str) -> str:
    """The EIP-55 text of an address in hex; the same few thousand come again and again."""
    return checksummed(bytes.fromhex(address[2:]))


def quantity(text: str, below: int = MOST_NUMBER) -> int:
    """A number from its text."""
    if not _QUANTITY.fullmatch(text):
        raise BadAnswer("a number is not one")
    found = int(text, 16)
    if found >= below:
        raise BadAnswer("a number is too large")
    return found


def word(text: str) -> str:
    """32 bytes, such as a hash: `0x` and 64 small hex digits."""
    if not _WORD.fullmatch(text):
        raise BadAnswer("32 bytes are not in hex, or not 32")
    return text.lower()


def _logs(said: list[_Log]) -> tuple[Log, ...]:
    if len(said) > MOST_LOGS:
        raise BadAnswer("more logs than are read")
    return tuple(map(_log, said))


def _log(said: _Log) -> Log:
    if said.removed:
        raise BadAnswer("a log that was removed again")
    if not _ADDRESS.fullmatch(said.address) or not _DATA.fullmatch(said.data):
        raise BadAnswer("an address or bytes that are not in hex")
    if len(said.topics) > _MOST_TOPICS:
        raise BadAnswer("a log with more topics than there can be")
    return Log(
        said.address.lower(),
        tuple(map(word, said.topics)),
        said.data.lower(),
        Block(quantity(said.block_number), word(said.block_hash)),
        word(said.transaction_hash),
        quantity(said.log_index),
    )


def _read(decoder: msgspec.json.Decoder[T], raw: msgspec.Raw) -> T:
    """An answer of the right form; what else is in it is not looked at."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadAnswer("an answer of another form than it must have") from error
