"""The answers of an EVM node, decoded strictly: an impossible answer is ChainUnavailable.

The forms are those of the Ethereum JSON-RPC specification. A quantity has no leading zeros and at
least one digit ("0x0"); any other form is refused. Hex letters may be of
either case. Fields that are not needed are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import attrs
import msgspec

from payments_core.chains.port import (
    Block,
    ChainUnavailable,
    ScannedTransfer,
    TransactionView,
    TransferLog,
)
from payments_core.clock import SECOND

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""keccak256("Transfer(address,address,uint256)"), the first topic of an ERC-20 transfer."""

MAX_NUMBER = 2**63
"""The upper bound of heights and places; 2**256 bounds everything else."""

MAX_UNIX_SECONDS = 2**40
"""The upper bound of timestamps: in milliseconds they are still exact everywhere."""

MAX_LOGS = 100_000
_MAX_TOPICS = 4  # of the EVM itself
_QUANTITY = re.compile(r"0x(?:0|[1-9a-fA-F][0-9a-fA-F]{0,63})", re.ASCII)
_DATA = re.compile(r"0x(?:[0-9a-fA-F]{2})*", re.ASCII)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_WORD = re.compile(r"0x[0-9a-fA-F]{64}", re.ASCII)
_CLEAN = "0x" + 24 * "0"
"""The prefix of an address that fills 32 bytes."""


class BadResponse(ChainUnavailable):
    """An impossible answer of a node."""


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
    """The receipt of a transaction, and its block."""

    transaction_hash: str
    block: Block
    succeeded: bool
    logs: tuple[Log, ...]


class _Block(msgspec.Struct):
    number: str
    hash: str
    timestamp: str


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

_TEXT_DECODER = msgspec.json.Decoder(str)
_BLOCK_DECODER = msgspec.json.Decoder(_Block | None)
_TRANSACTION_DECODER = msgspec.json.Decoder(_Transaction | None)
_RECEIPT_DECODER = msgspec.json.Decoder(_Receipt | None)
_LOGS_DECODER = msgspec.json.Decoder(list[_Log])
_LIST_DECODER = msgspec.json.Decoder(list[msgspec.Raw])
_FEES_DECODER = msgspec.json.Decoder(_Fees)


def parse_number(raw: msgspec.Raw, below: int = MAX_NUMBER) -> int:
    """A number, for example of `eth_chainId`."""
    return parse_quantity(_decode(_TEXT_DECODER, raw), below)


def parse_wei(raw: msgspec.Raw) -> int:
    """An amount of the chain's own coin."""
    return parse_quantity(_decode(_TEXT_DECODER, raw), 1 << 256)


def parse_next_base_fee(raw: msgspec.Raw) -> int:
    """The base fee of the block after the newest, of `eth_feeHistory`; it is the last."""
    fees = _decode(_FEES_DECODER, raw).base_fees
    if not fees:
        raise BadResponse("the fee history is empty")
    return parse_quantity(fees[-1], 1 << 256)


def parse_data(raw: msgspec.Raw) -> bytes:
    """Bytes of any length, for example of `eth_call`."""
    text = _decode(_TEXT_DECODER, raw)
    if not _DATA.fullmatch(text):
        raise BadResponse("the bytes are not hex")
    return bytes.fromhex(text[2:])


def parse_uint256(raw: msgspec.Raw) -> int:
    """The number that a call of a contract returned, exactly 32 bytes."""
    return int(parse_word(_decode(_TEXT_DECODER, raw)), 16)


def parse_block(raw: msgspec.Raw) -> Block | None:
    """A block, or None if there is none."""
    found = _decode(_BLOCK_DECODER, raw)
    if found is None:
        return None
    time = parse_quantity(found.timestamp, MAX_UNIX_SECONDS) * SECOND
    return Block(parse_quantity(found.number), parse_word(found.hash), time)


def is_known(raw: msgspec.Raw, transaction_hash: str) -> bool:
    """Whether the node knows a transaction, in a block or not."""
    found = _decode(_TRANSACTION_DECODER, raw)
    if found is not None and parse_word(found.hash) != transaction_hash:
        raise BadResponse("the transaction is not the requested transaction")
    return found is not None


def parse_receipt(raw: msgspec.Raw, transaction_hash: str) -> Receipt | None:
    """The receipt of that transaction, or None if there is none.

    Its logs must all be of it, and consecutive in the block: if one were left out,
    those after it would seem to be in other places.
    """
    said = _decode(_RECEIPT_DECODER, raw)
    if said is None:
        return None
    if parse_word(said.transaction_hash) != transaction_hash:
        raise BadResponse("the receipt is not of the requested transaction")
    where = Block(parse_quantity(said.block_number), parse_word(said.block_hash))
    succeeded = parse_quantity(said.status, below=2) == 1
    found = _to_logs(said.logs)
    for place, log in enumerate(found):
        if log.transaction_hash != transaction_hash or log.block != where:
            raise BadResponse("a log of the receipt is of another transaction or block")
        if log.index != found[0].index + place:
            raise BadResponse("the logs of the receipt are not consecutive")
    # Polygon's nodes log the fee of a failed transaction too; a transfer cannot be in one.
    if not succeeded and any(map(is_transfer, found)):
        raise BadResponse("a failed transaction has transfers")
    return Receipt(transaction_hash, where, succeeded, found)


def parse_logs(raw: msgspec.Raw) -> tuple[Log, ...]:
    """A list of logs in the given order."""
    return _to_logs(_decode(_LOGS_DECODER, raw))


def count_logs(raw: msgspec.Raw) -> int:
    """How many logs a list has, without a look at them."""
    return len(_decode(_LIST_DECODER, raw))


def sort_logs(found: Sequence[Log]) -> tuple[Log, ...]:
    """Logs in the chain's order, each once.

    Two logs of one place, or two hashes of one height, cannot both be right. Two transactions of a
    block may claim one place: some nodes of Polygon number the logs of a state sync from zero.
    Their receipts decide, which a log is never believed without.
    """
    places: dict[tuple[int, int, str], Log] = {}
    hashes: dict[int, str] = {}
    for log in found:
        if hashes.setdefault(log.block.number, log.block.hash) != log.block.hash:
            raise BadResponse("the logs are of two blocks with the same height")
        place = (log.block.number, log.index, log.transaction_hash)
        if places.setdefault(place, log) != log:
            raise BadResponse("two logs have the same index")
    return tuple(places[place] for place in sorted(places))


def to_transaction_view(receipt: Receipt) -> TransactionView:
    """A transaction that is in a block, with its transfers.

    Other logs keep their place: a transfer's position counts them too.
    """
    places = enumerate(receipt.logs)
    transfers = tuple(
        to_transfer_log(log, position) for position, log in places if is_transfer(log)
    )
    return TransactionView(receipt.transaction_hash, receipt.block, receipt.succeeded, transfers)


def is_transfer(log: Log) -> bool:
    """Whether a log is well formed as a transfer of an ERC-20 token.

    Transfers of ERC-721 have a fourth topic, and no token writes bytes before an address.
    """
    return (
        len(log.topics) == 3
        and log.topics[0] == TRANSFER
        and len(log.data) == 66
        and log.topics[1].startswith(_CLEAN)
        and log.topics[2].startswith(_CLEAN)
    )


def to_transfer_log(log: Log, position: int) -> TransferLog:
    """The transfer of a transfer log."""
    return TransferLog(
        position,
        log.index,
        checksum_address(log.address),
        checksum_address("0x" + log.topics[1][26:]),
        checksum_address("0x" + log.topics[2][26:]),
        int(log.data, 16),
    )


def to_scanned_transfer(log: Log) -> ScannedTransfer:
    """The transfer of a transfer log, without its place in the transaction."""
    return ScannedTransfer(
        log.transaction_hash,
        log.block,
        log.index,
        checksum_address(log.address),
        checksum_address("0x" + log.topics[1][26:]),
        checksum_address("0x" + log.topics[2][26:]),
        int(log.data, 16),
    )


@lru_cache(maxsize=65_536)
def checksum_address(address: str) -> str:
    """The EIP-55 text of an address in hex; the same few thousand recur."""
    from eth_utils.address import to_checksum_address

    return to_checksum_address(address)


def parse_quantity(text: str, below: int = MAX_NUMBER) -> int:
    """A number from its text."""
    if not _QUANTITY.fullmatch(text):
        raise BadResponse("a number is not valid")
    found = int(text, 16)
    if found >= below:
        raise BadResponse("a number is too large")
    return found


def parse_word(text: str) -> str:
    """32 bytes, such as a hash: `0x` and 64 small hex digits."""
    if not _WORD.fullmatch(text):
        raise BadResponse("a value is not 32 bytes in hex")
    return text.lower()


def _to_logs(said: list[_Log]) -> tuple[Log, ...]:
    if len(said) > MAX_LOGS:
        raise BadResponse("there are more logs than the limit")
    return tuple(map(_to_log, said))


def _to_log(said: _Log) -> Log:
    if said.removed:
        raise BadResponse("a log is marked as removed")
    if not _ADDRESS.fullmatch(said.address) or not _DATA.fullmatch(said.data):
        raise BadResponse("an address or data field is not hex")
    if len(said.topics) > _MAX_TOPICS:
        raise BadResponse("a log has more than four topics")
    return Log(
        said.address.lower(),
        tuple(map(parse_word, said.topics)),
        said.data.lower(),
        Block(parse_quantity(said.block_number), parse_word(said.block_hash)),
        parse_word(said.transaction_hash),
        parse_quantity(said.log_index),
    )


def _decode(decoder: msgspec.json.Decoder[T], raw: msgspec.Raw) -> T:
    """An answer of the right form; other content is ignored."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise BadResponse("the response has an unexpected form") from error
