"""The read side of the chain port for EVM chains: only answers on which enough nodes agree.

Every answer is checked against the same node's view of the chain: a receipt's block must be
the one of its height, logs must be of the requested blocks, balances of the final block by its
hash. Inconsistent answers raise ChainUnavailable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from payments_core.acceptance import Acceptance, Tag
from payments_core.addresses import NATIVE_ADDRESS
from payments_core.chains.evm import contract_probe as questions
from payments_core.chains.evm import contract_signatures, scans
from payments_core.chains.evm import responses as answers
from payments_core.chains.evm import transaction_status as sightings
from payments_core.chains.evm.blocks import call_at_block, read_blocks, try_at_block
from payments_core.chains.evm.contract_probe import ProbeResult
from payments_core.chains.evm.quorum import (
    CHAIN_ID,
    NodeLagging,
    NodeQuorum,
    NodeSession,
    QuorumResult,
    find_agreed_value,
    require_chain,
)
from payments_core.chains.evm.responses import BadResponse, Log
from payments_core.chains.evm.rpc import Refusal, RpcCall, require_results
from payments_core.chains.evm.scans import Scan
from payments_core.chains.evm.sender_gas import EvmGas, agree_on_gas, gas_calls, parse_gas
from payments_core.chains.evm.transaction_status import TransactionStatus
from payments_core.chains.gas import GasReadings
from payments_core.chains.port import (
    Block,
    ChainUnavailable,
    FinalBalances,
    Heads,
    ScannedTransfer,
    TransactionView,
)
from payments_core.chains.shared_read import SharedRead
from payments_core.clock import SECOND
from payments_core.evolve import evolve
from payments_core.networks import ChainType

HEADS_GRACE_S = 0.25
"""How long the heads of more nodes than necessary are awaited: one may be far behind."""

FORK_BLOCKS = 4
"""How far below the newest block a common block of enough nodes is searched."""

_DELEGATION = bytes.fromhex("ef0100")
"""What the code of an account with a key begins with, if it delegates to a contract (EIP-7702)."""

_BALANCE_OF = "0x70a08231" + 24 * "0"
"""The selector of `balanceOf(address)`, and the bytes before the address."""


@attrs.frozen
class _Tip:
    """The newest block of a node, the block with each of the policy's tags, and what it says of the
    gas of senders."""

    latest: Block
    tagged: Mapping[str, Block]
    gas: Mapping[str, EvmGas]

    def at(self, height: int) -> Block | None:
        """The block of these with this height."""
        blocks = (*self.tagged.values(), self.latest)
        return next((block for block in blocks if block.number == height), None)


_Votes = tuple[TransactionStatus | None, ...]
_Views = dict[str, TransactionView | None]


class EvmReader:
    """Reads one EVM chain. Threads may share it."""

    chain_type: ChainType = "evm"

    heads_shared_for_s: float = 1.0
    """How long readers of `token_balances` share one query of the heads."""

    coin_contract: str | None = None
    """The contract whose logs and balances are those of native coin; without one there are none."""

    def __init__(self, endpoints: NodeQuorum, acceptance: Sequence[Acceptance]) -> None:
        """`acceptance` are the rows of the network's policy; the last says what is final."""
        self._endpoints = endpoints
        self._finality = acceptance[-1]
        tags = dict.fromkeys(row.tag for row in acceptance)
        self._tags = tuple(tag for tag in tags if tag is not None and tag != "latest")
        self._shared_heads = SharedRead(self.heads, self.heads_shared_for_s)
        self._gas = GasReadings[EvmGas](lambda: int(endpoints.clock() * SECOND))

    @property
    def chain_id(self) -> int:
        """The chain's number."""
        return self._endpoints.chain_id

    def heads(self) -> Heads:
        """The highest block that enough nodes have, and the highest that is final for enough.

        The batch also reads what followed senders have for gas, of each every ten seconds.
        """
        enough = self._endpoints.enough

        def decide(replies: Sequence[_Tip], is_last: bool) -> QuorumResult[tuple[_Tip, ...]] | None:
            return QuorumResult(tuple(replies)) if len(replies) >= enough else None

        senders = self._gas.choose_due()
        tips = self._endpoints.query_until_decided(
            lambda session: self._read_tip(session, senders), decide, patience_s=HEADS_GRACE_S
        )
        self._gas.keep(agree_on_gas(senders, [tip.gas for tip in tips], enough))
        newest = _agreed_height((tip.latest for tip in tips), enough)
        tagged: Mapping[Tag, int] = {
            tag: _agreed_height((tip.tagged[tag] for tip in tips), enough) for tag in self._tags
        }
        height = self._finality.find_height(newest, tagged.get(self._finality.tag or "latest"))
        latest = find_agreed_value(
            (tip.latest for tip in tips if tip.latest.number == newest), enough
        )
        final = find_agreed_value((tip.at(height) for tip in tips), enough)
        if latest is not None and final is not None:
            return Heads(latest, final, tagged.get("safe"))
        return evolve(self._find_common_heads(newest, height), safe_height=tagged.get("safe"))

    def block(self, number: int) -> Block | None:
        """The block of this height, or None above the newest."""
        return self._endpoints.query_agreed(lambda session: read_blocks(session, [number])[0])

    def transaction(self, hash: str) -> TransactionView | None:
        """The transaction, or None if the nodes do not know it."""
        return self.transactions([hash])[hash]

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        """The known state of each transaction; those without an agreed answer are left out.

        So one transaction without an answer does not hold up the others.
        """
        views = self._read_transactions(hashes)
        return {hash: self._name_coin(view) for hash, view in views.items()}

    def _read_transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        wanted = tuple(dict.fromkeys(hashes))
        if not wanted:
            return {}
        enough = self._endpoints.enough

        def decide(replies: Sequence[_Votes], is_last: bool) -> QuorumResult[_Views] | None:
            views: _Views = {}
            for hash, votes in zip(wanted, zip(*replies, strict=True), strict=True):
                settled = sightings.agree_on_transaction(hash, votes, enough)
                if settled is not None:
                    views[hash] = settled.value
            return QuorumResult(views) if len(views) == len(wanted) or (is_last and views) else None

        def ask(session: NodeSession) -> _Votes:
            return sightings.read_statuses(session, wanted)

        return self._endpoints.query_until_decided(ask, decide)

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        """Every transfer of these tokens in the blocks `first` to `last`, in the chain's order.

        Without `recipients`, transfers to any address. The transfers need not be final.
        """
        scan = Scan.of(self._to_contracts(tokens), recipients, first, last)
        if scan.is_empty:
            return ()
        found = self._endpoints.query_until_decided(
            lambda session: scans.scan_node(session, scan),
            lambda replies, is_last: scans.agree_on_scan(replies, is_last, self._endpoints.enough),
        )
        logs = answers.sort_logs(found.agreed + self._prove_logs(found.disputed))
        found_transfers = map(answers.to_scanned_transfer, logs)
        return tuple(
            evolve(one, token_address=self._to_token(one.token_address)) for one in found_transfers
        )

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        """Balances at the newest final block."""
        return self._read_balances([token_address], holders, self.heads().final)[token_address]

    def token_balances(
        self, token_addresses: Sequence[str], holders: Sequence[str]
    ) -> Mapping[str, FinalBalances]:
        """See ReadsTokenBalances: one batch, with one query of the heads each second."""
        return self._read_balances(token_addresses, holders, self._shared_heads.get().final)

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        """Whether the contract at an address accepts a signature of 32 bytes (ERC-1271).

        None if there is no contract.
        """
        call = contract_signatures.build_eth_call(address, digest, signature)
        if call is None:
            return False
        latest = self.heads().latest

        def ask(session: NodeSession) -> bool | None:
            (raw,) = call_at_block(session, [call], latest)
            return contract_signatures.accepts(answers.parse_data(raw))

        return self._endpoints.query_agreed(ask)

    def find_code(self, addresses: Sequence[str]) -> frozenset[str]:
        """See ReadsCode: one batch, at each node's newest block."""
        asked = tuple(dict.fromkeys(addresses))
        calls = [RpcCall("eth_getCode", (address, "latest")) for address in asked]

        def ask(session: NodeSession) -> tuple[bool, ...]:
            codes = map(answers.parse_data, session.call_all(calls))
            return tuple(bool(code) and not code.startswith(_DELEGATION) for code in codes)

        found = self._endpoints.query_agreed(ask) if asked else ()
        return frozenset(one for one, has_code in zip(asked, found, strict=True) if has_code)

    def call_contracts(self, asked: Sequence[tuple[str, bytes]]) -> tuple[ProbeResult, ...]:
        """The answers of contracts (address, calldata), all at the same newest block.

        A revert is an answer too. No calldata may be longer than
        `questions.MAX_CALLDATA_BYTES`.
        """
        put = [questions.build_eth_call(address, data) for address, data in asked]
        latest = self.heads().latest

        def ask(session: NodeSession) -> tuple[ProbeResult, ...]:
            return tuple(
                questions.parse_result(answers.parse_data(raw))
                for raw in call_at_block(session, put, latest)
            )

        return self._endpoints.query_agreed(ask)

    def read_contracts(self, asked: Sequence[tuple[str, bytes]]) -> tuple[bytes | None, ...]:
        """See ReadsContracts: one batch, with one query of the heads each second."""
        calls = [{"to": address, "data": "0x" + data.hex()} for address, data in asked]
        latest = self._shared_heads.get().latest

        def ask(session: NodeSession) -> tuple[bytes | None, ...]:
            return tuple(
                None if isinstance(found, Refusal) else answers.parse_data(found)
                for found in try_at_block(session, calls, latest)
            )

        return self._endpoints.query_agreed(ask)

    def _read_balances(
        self, token_addresses: Sequence[str], holders: Sequence[str], final: Block
    ) -> dict[str, FinalBalances]:
        pairs = [(token, holder) for token in dict.fromkeys(token_addresses) for holder in holders]
        calls = [
            {"to": self._to_contract(token), "data": _BALANCE_OF + holder[2:].lower()}
            for token, holder in pairs
        ]

        def ask(session: NodeSession) -> tuple[int, ...]:
            return tuple(map(answers.parse_uint256, call_at_block(session, calls, final)))

        amounts: dict[str, dict[str, int]] = {token: {} for token in token_addresses}
        for (token, holder), amount in zip(pairs, self._endpoints.query_agreed(ask), strict=True):
            amounts[token][holder] = amount
        return {token: FinalBalances(final.number, held) for token, held in amounts.items()}

    def _to_contract(self, token_address: str) -> str:
        """The contract that is asked about a token."""
        is_coin = token_address == NATIVE_ADDRESS
        return self.coin_contract or token_address if is_coin else token_address

    def _to_contracts(self, token_addresses: Sequence[str]) -> list[str]:
        return [self._to_contract(token) for token in token_addresses]

    def _to_token(self, contract: str) -> str:
        return NATIVE_ADDRESS if contract == self.coin_contract else contract

    def _name_coin(self, view: TransactionView | None) -> TransactionView | None:
        """A transaction whose logs of native coin have its address as their token's."""
        if view is None or all(log.token_address != self.coin_contract for log in view.logs):
            return view
        logs = (evolve(log, token_address=self._to_token(log.token_address)) for log in view.logs)
        return evolve(view, logs=tuple(logs))

    def _read_tip(self, session: NodeSession, senders: Sequence[str]) -> _Tip:
        tags = ("latest", *self._tags)
        needed = [CHAIN_ID, *(RpcCall("eth_getBlockByNumber", (tag, False)) for tag in tags)]
        try:
            answered = session.batch([*needed, *gas_calls(senders)])
        except ChainUnavailable:
            if senders:  # a node that fails on the gas still counts for the heads
                return self._read_tip(session, ())
            raise
        results = require_results(session.name, needed, answered[: len(needed)])
        require_chain(session.name, results[0], self.chain_id)
        found: dict[str, Block] = {}
        for tag, raw in zip(tags, results[1:], strict=True):
            block = answers.parse_block(raw)
            if block is None:
                raise NodeLagging(f"{session.name}: has no {tag} block yet")
            if block.number > found.get("latest", block).number:
                raise BadResponse(f"the {tag} block is above the latest block")
            found[tag] = block
        return _Tip(found.pop("latest"), found, parse_gas(senders, answered[len(needed) :]))

    def _find_common_heads(self, newest: int, final: int) -> Heads:
        """The highest block of the last few on which enough nodes agree, and the final one."""
        lowest = max(final, newest - FORK_BLOCKS + 1)
        heights = (final, *range(newest, lowest - 1, -1))
        enough = self._endpoints.enough

        def decide(
            replies: Sequence[tuple[Block | None, ...]], is_last: bool
        ) -> QuorumResult[Heads] | None:
            last, *firsts = (
                find_agreed_value(blocks, enough) for blocks in zip(*replies, strict=True)
            )
            first = next((block for block in firsts if block is not None), None)
            return None if first is None or last is None else QuorumResult(Heads(first, last))

        return self._endpoints.query_until_decided(
            lambda session: read_blocks(session, heights), decide
        )

    def _prove_logs(self, disputed: tuple[Log, ...]) -> tuple[Log, ...]:
        """The logs that some nodes did not report, but that enough have in the receipt."""
        views = self._read_transactions([log.transaction_hash for log in disputed])
        proven = []
        for log in disputed:
            if log.transaction_hash not in views:
                raise ChainUnavailable(f"chain {self.chain_id}: too few nodes agree on logs")
            view = views[log.transaction_hash]
            if view is not None and log.block.is_same(view.block):
                transfers = {evolve(transfer, position=0) for transfer in view.logs}
                proven += [log] if answers.to_transfer_log(log, 0) in transfers else []
        return tuple(proven)


def _agreed_height(blocks: Iterable[Block], enough: int) -> int:
    """The highest height that enough of these reach."""
    return sorted((block.number for block in blocks), reverse=True)[enough - 1]
