"""The chain port: the service's requirements of a chain, and what it never assumes.

Logs are the evidence: a transaction that succeeded without the expected log proves nothing.
Unknown is not failed: without an answer of the chain, the outcome stays open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, runtime_checkable

import attrs

from payments_core.addresses import NATIVE_ADDRESS
from payments_core.chains.typed_data import ZERO_ADDRESS
from payments_core.clock import Instant
from payments_core.networks import ChainType

AddressKind = Literal["vault", "escrow", "deposit", "operator"]

NetworkKind = Literal["real", "testnet", "local", "simulated"]
"""Where a chain is: on the network that everybody knows by its number, with real money or with a
testnet's; on a node of a sandbox's own; or in a sandbox's books alone.

A wallet knows a chain only by its number. What it sends for a chain of the last two kinds arrives
on the real network, at an address that belongs to nobody there.
"""


class ChainError(Exception):
    """A chain adapter could not carry out the request."""


class ChainUnavailable(ChainError):
    """No answer, or one that cannot be right yet. Try again."""


class ChainMismatch(ChainUnavailable):
    """The node serves another chain than configured: fatal at the start.

    A node that serves another chain later is ignored, and jobs wait until an operator repairs it.
    """


class UnsupportedByChain(ChainError):
    """The chain does not offer the called method."""


class SignerRefused(ChainError):
    """The signer will not sign this."""


class WrongSignature(SignerRefused):
    """A signature is by another key, or of other data: the signer or the curve library is wrong."""


@attrs.frozen
class AddressSpec:
    """The purpose of an address. Different specs never share an address."""

    environment_id: str
    kind: AddressKind
    owner_id: str


@attrs.frozen
class Contract:
    """One of our contracts: its purpose, as derived, and its address."""

    kind: AddressKind
    owner_id: str
    address: str


@attrs.frozen
class Block:
    """A block by height and hash, with its time.

    `time` is the chain's own timestamp of the block; a later block never has an earlier one. It
    decides whether a payment came in time. It is None in a scan, and on a chain that is only read.
    """

    number: int
    hash: str
    time: Instant | None = None

    def is_same(self, other: Block | None) -> bool:
        """Whether both are one block, although one of the reads may not have shown its time."""
        return other is not None and (self.number, self.hash) == (other.number, other.hash)


@attrs.frozen
class Heads:
    """The newest block, and the newest that is final under the chain's policy.

    `safe_height` is that of the newest block which nodes call safe, if the policy asks for it.
    """

    latest: Block
    final: Block
    safe_height: int | None = None


@attrs.frozen
class TransferLog:
    """A token transfer as the chain recorded it.

    `position` is the log's place within its transaction, which survives a reorg; `log_index` is
    its place within the block, which does not.
    """

    position: int
    log_index: int
    token_address: str
    sender: str
    recipient: str
    amount_atomic: int


@attrs.frozen
class TransactionView:
    """A transaction as the chain knows it now; outside a block, it has no `block`.

    A node may show one that succeeded before it shows its logs: without any of those that it must
    have, it proves nothing yet, and is not a failure.
    """

    hash: str
    block: Block | None
    succeeded: bool
    logs: tuple[TransferLog, ...]


@attrs.frozen
class ScannedTransfer:
    """A transfer that a scan found, and its block.

    A scan does not show its place within the transaction: the transaction itself has it.
    """

    transaction_hash: str
    block: Block
    log_index: int
    token_address: str
    sender: str
    recipient: str
    amount_atomic: int


@attrs.frozen
class ModuleIntent:
    """A step that puts the role module of a vault (`avatar`) in place.

    Without a signature it deploys the module, which may move `tokens`. With one, in hex, it brings
    to the vault the call that its owner signed over the vault's `nonce`: enable the module.
    """

    avatar: str
    module: str
    tokens: tuple[str, ...]
    nonce: int = 0
    signature: str | None = None


@attrs.frozen
class TransferIntent:
    """The action of a transaction of ours: move a token from one of our contracts.

    `escrow_of` is the owner of the recipient's escrow, if it is one. With a `module` step it moves
    nothing: its source is the operator, and its amount 0.
    """

    id: str
    environment_id: str
    token_address: str
    source: Contract
    recipient: str
    amount_atomic: int
    escrow_of: str | None = None
    module: ModuleIntent | None = None


def is_coin_log(transfer: ScannedTransfer) -> bool:
    """Whether it is a log of native coin that came without one: it moved nothing."""
    return (transfer.token_address, transfer.sender) == (NATIVE_ADDRESS, ZERO_ADDRESS)


def is_coin_report(intent: TransferIntent) -> bool:
    """Whether it only makes a log of the native coin that is at one of our addresses.

    Native coin arrives without a log; what has one can be seen, and paid back, like a token.
    """
    return intent.recipient == intent.source.address and intent.token_address == NATIVE_ADDRESS


@attrs.frozen
class SignedTransaction:
    """A signed transaction: its hash is known before it is sent."""

    hash: str
    raw: bytes


@attrs.frozen
class FinalBalances:
    """Token balances by holder, all of them at one final height."""

    height: int
    amounts: Mapping[str, int]


class Chain(Protocol):
    """A chain adapter. Every method may raise ChainUnavailable."""

    @property
    def chain_id(self) -> int:
        """The chain's number."""

    @property
    def chain_type(self) -> ChainType:
        """The family, which decides the form of addresses and signatures."""

    @property
    def max_scan_interval_ms(self) -> int:
        """How seldom the chain may be scanned if nothing was found for long."""

    @property
    def max_scan_blocks(self) -> int:
        """The maximum number of blocks of one `scan`."""

    @property
    def bump_after_ms(self) -> int | None:
        """How long a sent transaction may be in no block before it is bumped."""

    def derive(self, spec: AddressSpec) -> str:
        """The address for a purpose. Pure: no I/O, always the same answer."""

    def heads(self) -> Heads:
        """The newest and the newest final block, with their times."""

    def transaction(self, hash: str) -> TransactionView | None:
        """The transaction, or None if the node does not know it. Its block has its time."""

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        """As `transaction`, of many at once; those without an agreed answer are left out."""

    def block(self, number: int) -> Block | None:
        """The block that has this height now, with its time, or None above the newest."""

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        """Every transfer of these tokens in the blocks `first` to `last`, in the chain's order.

        Without `recipients`, transfers to any address. The transfers need not be final.
        """

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        """Balances at the newest final height."""

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        """Whether the contract at an address accepts a signature of 32 bytes (ERC-1271).

        A signature may be wrapped with the call that deploys the contract (ERC-6492): if no
        contract is there yet, the answer is the one that it would give once deployed; a contract
        that is there answers as it is. None if no contract is there, also after that call; a
        revert means no. The answer may change with every block. Raises UnsupportedByChain if
        accounts cannot be contracts.
        """

    def prepare(self, intent: TransferIntent, nonce: int) -> SignedTransaction:
        """Sign, and never send. The slot is one of the environment's sender, which is
        `derive(AddressSpec(environment_id, "operator", "operator"))`; it counts from 0.

        Signed again, the bytes may differ, as fees do: only the stored bytes count.
        """

    def prepare_noop(
        self, environment_id: str, nonce: int, sender: str | None = None
    ) -> SignedTransaction:
        """Sign a transaction that does nothing, for a slot that nothing else may take.

        The slot is one of `sender`, an address whose key was in use before; by default, the present
        sender. Raises SignerRefused if that key is no longer configured.
        """

    def bump(self, environment_id: str, signed: SignedTransaction) -> SignedTransaction | None:
        """A signed transaction again, with fees that let it replace the first; None if it cannot.

        The key that signed it signs again. Raises SignerRefused if it is no longer configured.
        """

    def final_nonce(self, sender: str) -> int:
        """How many nonces of a sender (its address) final transactions have used, ours or not."""

    def pending_nonce(self, sender: str) -> int:
        """How many nonces are used, counting those that are not final and those in the pool."""

    def find_payer(self, intent: TransferIntent) -> str:
        """The sender that a recipient sees in the logs. Pure: no I/O."""

    def broadcast(self, signed: SignedTransaction) -> None:
        """Send signed bytes; sending them again is harmless. The answer proves nothing."""


@runtime_checkable
class HasContracts(Protocol):
    """A chain with contracts of ours that are called and hold no money."""

    def contracts(self) -> Mapping[str, str]:
        """The addresses of the contracts, by their names. Pure: no I/O."""


@runtime_checkable
class UnloggedCoin(Protocol):
    """A chain on which native coin comes to our addresses without a log."""

    def find_unlogged_coin(
        self, environment_id: str, contracts: Sequence[Contract]
    ) -> Mapping[str, int]:
        """How much has come to each contract's address without a log, at the newest final height.

        Contracts that cannot pay it, and those with less than it costs to send it back, are left
        out. Raises ChainUnavailable.
        """


@runtime_checkable
class ReadsCode(Protocol):
    """A chain whose accounts may be contracts of strangers."""

    def find_code(self, addresses: Sequence[str]) -> frozenset[str]:
        """The ones of some addresses that are contracts now.

        An account with a key is none, even if it delegates to code (EIP-7702). Raises
        ChainUnavailable.
        """


@runtime_checkable
class ReadsContracts(Protocol):
    """A chain whose nodes answer calls of contracts of strangers, such as price feeds."""

    def read_contracts(self, asked: Sequence[tuple[str, bytes]]) -> tuple[bytes | None, ...]:
        """What contracts (address, calldata) return, all at one newest block.

        None for a call that is refused, as of a contract that reverts. The block may be a second
        old, so that requests can share its query. Raises ChainUnavailable.
        """


@attrs.frozen
class ContractLog:
    """A log of any contract, with hex in small letters; `data` is what is not in topics."""

    topics: tuple[str, ...]
    data: bytes
    transaction_hash: str
    block: Block


class ContractCaller(Protocol):
    """Calls contracts of strangers with one key of the signer. It sees no funds of environments.

    Every method may raise ChainUnavailable.
    """

    def find_address(self) -> str:
        """The address of the present key. Raises SignerRefused if the signer has none."""

    def count_mined(self, sender: str) -> int:
        """How many nonces of a sender are used in blocks, final or not."""

    def prepare_call(
        self, sender: str, nonce: int, to: str, data: bytes
    ) -> SignedTransaction | None:
        """Sign a call, and never send it; None if it would fail now, as nodes say.

        Raises SignerRefused if the key of `sender` is not configured.
        """

    def find_logs(
        self, address: str, topics: Sequence[str | None], first: int, last: int
    ) -> tuple[ContractLog, ...]:
        """A contract's logs with these topics in these blocks, in the chain's order.

        None stands for any topic.
        """


@runtime_checkable
class CallsContracts(ReadsContracts, Protocol):
    """A chain on which contracts of strangers can be called, as a router calls them."""

    def open_caller(self, key_name: str) -> ContractCaller:
        """A caller with the signer's key of this name, which is no environment's id. No I/O.

        Raises ValueError for an environment's id: an operator's key signs calls of ours alone.
        """
