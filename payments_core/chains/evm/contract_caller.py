"""Calls of strangers' contracts by a key that is no environment's, as a router makes them.

What such a key signs can move nothing of an environment: the factory knows it as no operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.blocks import block_call, parse_block_at
from payments_core.chains.evm.fee_market import estimate_gas, estimate_market
from payments_core.chains.evm.fees import MAX_GAS, initial_fees
from payments_core.chains.evm.quorum import NodeLagging, NodeQuorum, NodeSession, QuorumResult
from payments_core.chains.evm.responses import BadResponse, Log
from payments_core.chains.evm.rpc import Refusal, RpcCall, require_results
from payments_core.chains.evm.signers import Signer
from payments_core.chains.evm.transactions import UnsignedTransaction, sign_transaction
from payments_core.chains.port import ChainUnavailable, ContractLog, SignedTransaction
from payments_core.chains.rotated_signer import RotatedSigner, find_signer
from payments_core.networks import FeePolicy

ENVIRONMENT_PREFIX = "env_"

_MARGIN = (3, 2)
"""The gas limit over the nodes' estimate: a contract of a stranger may cost more a block later."""


class EvmContractCaller:
    """See ContractCaller. Threads may share it."""

    def __init__(
        self,
        endpoints: NodeQuorum,
        signer: Signer | RotatedSigner,
        fees: FeePolicy,
        key_name: str,
    ) -> None:
        """Raises ValueError for the id of an environment."""
        if key_name.startswith(ENVIRONMENT_PREFIX):
            raise ValueError("an environment's key signs no calls of strangers' contracts")
        self._endpoints = endpoints
        self._signer = signer
        self._fees = fees
        self._key_name = key_name

    def find_address(self) -> str:
        """See ContractCaller."""
        return self._signer.address(self._key_name)

    def count_mined(self, sender: str) -> int:
        """See ContractCaller: the highest count that enough nodes reach."""
        enough = self._endpoints.enough

        def ask(session: NodeSession) -> int:
            return answers.parse_number(session.call("eth_getTransactionCount", sender, "latest"))

        replies = self._endpoints.query_until_decided(
            ask,
            lambda replies, is_last: (
                QuorumResult(tuple(replies)) if len(replies) >= enough else None
            ),
        )
        return sorted(replies, reverse=True)[enough - 1]

    def prepare_call(
        self, sender: str, nonce: int, to: str, data: bytes
    ) -> SignedTransaction | None:
        """See ContractCaller."""
        signer = find_signer(self._signer, self._key_name, sender)
        estimate = estimate_gas(self._endpoints, sender, to, data)
        if not estimate:
            return None
        gas = -(-estimate * _MARGIN[0] // _MARGIN[1])
        if gas > MAX_GAS:
            raise ChainUnavailable("the node's gas estimate is above the limit of a transaction")
        market = estimate_market(self._endpoints)
        fees = initial_fees(market.base_fee, market.priority, self._fees)
        unsigned = UnsignedTransaction(
            chain_id=self._endpoints.chain_id,
            nonce=nonce,
            to=to,
            value=0,
            data=data,
            gas=gas,
            max_fee=fees.max_fee,
            max_priority_fee=fees.max_priority_fee,
        )
        return sign_transaction(signer, self._key_name, unsigned)

    def find_logs(
        self, address: str, topics: Sequence[str | None], first: int, last: int
    ) -> tuple[ContractLog, ...]:
        """See ContractCaller: only logs on which enough nodes agree."""
        query = {"address": address.lower(), "topics": list(topics)}

        def ask(session: NodeSession) -> tuple[Log, ...]:
            found = tuple(
                log
                for piece in _read_pieces(session, query, first, last)
                for log in answers.parse_logs(piece)
            )
            for log in found:
                _require_matching(log, address, topics, first, last)
            return answers.sort_logs(found)

        return tuple(
            ContractLog(log.topics, bytes.fromhex(log.data[2:]), log.transaction_hash, log.block)
            for log in self._endpoints.query_agreed(ask)
        )


def _read_pieces(
    session: NodeSession, query: Mapping[str, object], first: int, last: int
) -> list[msgspec.Raw]:
    """A node's logs. It must have the last block before and after: else it missed some."""
    around = block_call(last)
    span = {"fromBlock": hex(first), "toBlock": hex(last)}
    before, found, after = session.batch(
        [around, RpcCall("eth_getLogs", ({**query, **span},)), around]
    )
    pieces = (
        session.read_logs(query, first, last, lambda answer: False)
        if isinstance(found, Refusal)
        else [found]
    )
    ends = require_results(session.name, [around, around], [before, after])
    blocks = [parse_block_at(end, last) for end in ends]
    if blocks[0] is None or blocks[0] != blocks[1]:
        raise NodeLagging(f"{session.name}: does not have block {last} yet")
    return pieces


def _require_matching(
    log: Log, address: str, topics: Sequence[str | None], first: int, last: int
) -> None:
    """Raises BadResponse for a log that was not asked for."""
    asked = zip(topics, log.topics, strict=False)
    if (
        log.address != address.lower()
        or len(log.topics) < len(topics)
        or not first <= log.block.number <= last
        or any(wanted is not None and wanted != found for wanted, found in asked)
    ):
        raise BadResponse("a log was not requested")
