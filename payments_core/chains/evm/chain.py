"""An EVM chain: the port over nodes that must agree, our contracts, and a signer.

Every transaction of ours that moves money is a call of our factory by the environment's operator.
The contracts decide where it may go (`contracts/src/Factory.sol`); the result of a call is read
from logs. Two more calls put a user's role module in place.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from payments_core.chains.evm import abi as calls
from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.addresses import GENERATIONS, Deployment, RoleModule, hash_id
from payments_core.chains.evm.blocks import block_call, call_at_block, parse_block_at
from payments_core.chains.evm.contract_caller import EvmContractCaller
from payments_core.chains.evm.fee_market import estimate_gas, estimate_market
from payments_core.chains.evm.fees import (
    MEASURED_GAS,
    Action,
    Fees,
    bump_fees,
    count_affordable,
    gas_limit,
    initial_fees,
)
from payments_core.chains.evm.intents import encode_intent, find_deployment, find_payer
from payments_core.chains.evm.node_checks import check_node, require_decimals
from payments_core.chains.evm.quorum import (
    CHAIN_ID,
    NodeLagging,
    NodeQuorum,
    NodeSession,
    QuorumResult,
    require_chain,
)
from payments_core.chains.evm.reader import HEADS_GRACE_S, EvmReader
from payments_core.chains.evm.role_modules import (
    ModuleCall,
    action_of,
    deployment_call,
    encode_execution,
    read_module_state,
)
from payments_core.chains.evm.rpc import Refusal, RpcCall
from payments_core.chains.evm.sender_gas import EvmGas
from payments_core.chains.evm.signer_checks import check_signers
from payments_core.chains.evm.signers import Signer
from payments_core.chains.evm.transactions import (
    UnsignedTransaction,
    decode_signed,
    sign_transaction,
)
from payments_core.chains.gas import TransferAction
from payments_core.chains.loader import NodeCheck, SignerCheck
from payments_core.chains.port import (
    AddressSpec,
    ChainMismatch,
    ChainUnavailable,
    Contract,
    ModuleIntent,
    SignedTransaction,
    SignerRefused,
    TransferIntent,
)
from payments_core.chains.role_modules import AvatarCall, ModuleState
from payments_core.chains.rotated_signer import RotatedSigner, find_signer
from payments_core.clock import MINUTE, SECOND, Instant
from payments_core.evolve import evolve
from payments_core.extras import require_packages
from payments_core.networks import Network, shipped_networks
from payments_core.plain_calls import require_plain_methods


class EvmChain(EvmReader):
    """One EVM chain. Threads may share it."""

    max_scan_interval_ms = 15 * SECOND
    """A block comes every few seconds, with or without our transactions."""

    max_scan_blocks = 2_000
    """Most nodes accept no longer range; others are asked in halves."""

    bump_after_ms: int | None = 2 * MINUTE

    def __init__(
        self,
        endpoints: NodeQuorum,
        deployment: Deployment,
        signer: Signer | RotatedSigner,
        *,
        network: Network | None = None,
        refuses_first: bool = False,
    ) -> None:
        """`network` is the shipped one with the nodes' chain id, unless given. `refuses_first` is
        for a deployment that does not say its generation of the contracts: its chain is refused
        where the first one is, since its addresses may be of that.

        Raises ChainMismatch without a network or its fee policy: another chain's limits may cost a
        fortune. Raises TypeError for a signer with an asynchronous method, and ExtraMissing without
        the packages of the extra `evm`.
        """
        require_plain_methods(signer, "signer", Signer)
        require_packages("an EVM chain", "eth_abi", "rlp", "cryptography")
        network = network or shipped_networks().get(endpoints.chain_id)
        if network is None or network.chain_id != endpoints.chain_id:
            raise ChainMismatch(f"chain {endpoints.chain_id} is not registered: give its network")
        if network.fees is None:
            missing = f"the fee policy of chain {network.chain_id} is not configured"
            raise ChainMismatch(f"{missing}: its network has no `fees`")
        super().__init__(endpoints, network.acceptance)
        self._deployment = deployment
        others = (Deployment(deployment.admin, generation) for generation in GENERATIONS)
        self._deployments = tuple(dict.fromkeys((deployment, *others)))
        self._refuses_first = refuses_first
        self.coin_contract: str | None = deployment.factory if deployment.pays_coin else None
        self._signer = signer
        self._network = network
        self._fees = network.fees

    def check(self) -> None:
        """To be called first: check that the chain and the contracts are the right ones.

        Raises ChainMismatch, and ChainUnavailable if too few nodes answer.
        """
        self._endpoints.check()
        if self._refuses_first and self._has_code(Deployment(self._deployment.admin, 1).factory):
            raise ChainMismatch(
                f"chain {self.chain_id} has the first generation of the contracts: set "
                "generation to 1 if this deployment began with it, else to 2; "
                "see docs/explanation/contracts.md"
            )
        factory = self._deployment.factory
        if not self._has_code(factory):
            raise ChainMismatch(
                f"chain {self.chain_id} has no payments-core factory at {factory}; "
                "see docs/how-to/keys.md"
            )
        require_decimals(self._endpoints, self._network)

    def check_nodes(self, now: Instant) -> Iterator[NodeCheck]:
        """See ChecksNodes."""
        # No generator itself: a chain's methods are plain functions (`plain_calls.py`).
        return itertools.chain.from_iterable(
            check_node(node, self._network, now) for node in self._endpoints.nodes
        )

    def check_signers(self, environment_ids: Iterable[str]) -> Iterator[SignerCheck]:
        """See ChecksSigners."""
        return check_signers(self._signer, environment_ids)

    def find_refused_operators(self, environment_ids: Iterable[str]) -> Mapping[str, str]:
        """See ChecksOperators."""
        operators = {}
        for id in environment_ids:
            with contextlib.suppress(SignerRefused):
                operators[id] = self._signer.address(id)
        if not operators:
            return {}
        latest, factory = self.heads().latest, self._deployment.factory
        put = [
            {"to": factory, "data": "0x" + calls.IS_OPERATOR.call(hash_id(id), operator).hex()}
            for id, operator in operators.items()
        ]

        def ask(session: NodeSession) -> tuple[int, ...]:
            return tuple(map(answers.parse_uint256, call_at_block(session, put, latest)))

        allowed = self._endpoints.query_agreed(ask)
        found = zip(operators.items(), allowed, strict=True)
        return {id: operator for (id, operator), is_allowed in found if not is_allowed}

    def _has_code(self, address: str) -> bool:
        def ask(session: NodeSession) -> bool:
            return answers.parse_data(session.call("eth_getCode", address, "latest")) != b""

        return self._endpoints.query_agreed(ask)

    # Writing.

    def derive(self, spec: AddressSpec) -> str:
        """See Chain."""
        if spec.kind == "operator":
            return self._signer.address(spec.environment_id)
        return self._deployment.address(spec.environment_id, spec.kind, spec.owner_id)

    def contracts(self) -> Mapping[str, str]:
        """See HasContracts."""
        deployment = self._deployment
        return {
            "factory": deployment.factory,
            "vault implementation": deployment.vault_implementation,
            "purse implementation": deployment.purse_implementation,
        }

    def prepare(self, intent: TransferIntent, nonce: int) -> SignedTransaction:
        """See Chain."""
        if intent.module is not None:
            call = self._module_call(intent.environment_id, intent.module)
            return self.prepare_call(intent.environment_id, nonce, call)
        made = encode_intent(self._deployments, intent)
        return self._sign(intent.environment_id, nonce, made.factory, made.action, made.data)

    def prepare_call(self, environment_id: str, nonce: int, call: ModuleCall) -> SignedTransaction:
        """Sign, and never send, a step that puts a user's role module in place.

        Raises SignerRefused for any other call, and for a module that is not for this
        deployment, environment and operator.
        """
        module = call.module
        ours = (self._deployment.factory, environment_id, self._signer.address(environment_id))
        if (module.factory, module.environment_id, module.operator) != ours:
            raise SignerRefused("the role module belongs to another owner")
        return self._sign(environment_id, nonce, call.to, action_of(call), call.data)

    def open_caller(self, key_name: str) -> EvmContractCaller:
        """See CallsContracts."""
        return EvmContractCaller(self._endpoints, self._signer, self._fees, key_name)

    def find_module(self, environment_id: str, avatar: str, tokens: tuple[str, ...]) -> str:
        """See ModuleChain."""
        return self._role_module(environment_id, avatar, tokens).address

    def read_module(
        self, environment_id: str, avatar: str, tokens: tuple[str, ...]
    ) -> ModuleState | None:
        """See ModuleChain."""
        return read_module_state(self, self._role_module(environment_id, avatar, tokens))

    def prepare_noop(
        self, environment_id: str, nonce: int, sender: str | None = None
    ) -> SignedTransaction:
        """See Chain: a transfer of zero, from the operator to itself."""
        operator = sender or self._signer.address(environment_id)
        return self._sign(environment_id, nonce, operator, "fill", b"", sender=operator)

    def bump(self, environment_id: str, signed: SignedTransaction) -> SignedTransaction | None:
        """See Chain."""
        before, sender = decode_signed(signed.raw, chain_id=self.chain_id)
        signer = find_signer(self._signer, environment_id, sender)
        market = estimate_market(self._endpoints)
        offered = Fees(before.max_fee, before.max_priority_fee)
        bump = bump_fees(offered, market.base_fee, market.priority, self._fees)
        if bump.is_held:
            return None
        fees = bump.fees
        raised = evolve(before, max_fee=fees.max_fee, max_priority_fee=fees.max_priority_fee)
        return sign_transaction(signer, environment_id, raised)

    def broadcast(self, signed: SignedTransaction) -> None:
        """See Chain. The transaction goes to every node, and no answer is trusted."""
        send = RpcCall("eth_sendRawTransaction", ("0x" + signed.raw.hex(),))

        def ask(session: NodeSession) -> Refusal | None:
            (result,) = session.batch([send])
            return result if isinstance(result, Refusal) else None

        refusals = self._endpoints.query_all(ask)
        if None in refusals:
            return
        # Refused, for one of many reasons that nodes word differently: that they have it
        # already is the best one.
        if self.transaction(signed.hash) is None:
            words = next((one.words for one in refusals if one and one.words), "")
            why = f": {words}" if words else ""  # such as that the sender has too few coins
            raise ChainUnavailable(f"chain {self.chain_id}: no node accepts {signed.hash}{why}")

    def final_nonce(self, sender: str) -> int:
        """See Chain: the sender's nonce at the newest final block."""
        final = self.heads().final

        def ask(session: NodeSession) -> int:
            around = block_call(final.number)
            nonce = RpcCall("eth_getTransactionCount", (sender, hex(final.number)))
            served, before, count, after = session.call_all([CHAIN_ID, around, nonce, around])
            require_chain(session.name, served, self.chain_id)
            if (
                not parse_block_at(before, final.number)
                == parse_block_at(after, final.number)
                == final
            ):
                raise NodeLagging(
                    f"{session.name}: does not have block {final.number} of the other nodes"
                )
            return answers.parse_number(count)

        return self._endpoints.query_agreed(ask)

    def pending_nonce(self, sender: str) -> int:
        """See Chain. The highest count that enough nodes reach: a pool may belong to one node."""
        asked = [RpcCall("eth_getTransactionCount", (sender, tag)) for tag in ("latest", "pending")]

        def ask(session: NodeSession) -> int:
            return max(answers.parse_number(count) for count in session.call_all(asked))

        enough = self._endpoints.enough
        replies = self._endpoints.query_until_decided(
            ask,
            lambda replies, is_last: (
                QuorumResult(tuple(replies)) if len(replies) >= enough else None
            ),
            patience_s=HEADS_GRACE_S,
        )
        return sorted(replies, reverse=True)[enough - 1]

    def follow_senders(self, senders: Collection[str]) -> None:
        """See ReportsGas."""
        self._gas.follow(senders)

    def count_affordable(self, sender: str, action: TransferAction) -> int | None:
        """See ReportsGas: by the coins that a node requires before it takes the transaction."""
        known = self._gas.find(sender)
        return None if known is None else self._count_affordable(known, action)

    def list_affordable(self) -> Mapping[str, int]:
        """See ReportsGas: by the most expensive kind of transfer."""
        counted = {
            sender: self._count_affordable(known, "pay_out")
            for sender, known in self._gas.list_recent().items()
        }
        return {sender: count for sender, count in counted.items() if count is not None}

    def _count_affordable(self, known: EvmGas, action: TransferAction) -> int | None:
        market = known.market
        return count_affordable(action, known.balance, market.base_fee, market.priority, self._fees)

    def find_unlogged_coin(
        self, environment_id: str, contracts: Sequence[Contract]
    ) -> Mapping[str, int]:
        """See UnloggedCoin. Nobody can send back what is at contracts of the first generation."""
        addresses = [
            contract.address
            for contract in contracts
            if find_deployment(self._deployments[:1], environment_id, contract) is not None
        ]
        if self.coin_contract is None or not addresses:
            return {}
        final = self.heads().final
        put = [
            {"to": self.coin_contract, "data": "0x" + calls.UNREPORTED.call(address).hex()}
            for address in addresses
        ]

        def ask(session: NodeSession) -> tuple[int, ...]:
            return tuple(map(answers.parse_uint256, call_at_block(session, put, final)))

        found = dict(zip(addresses, self._endpoints.query_agreed(ask), strict=True))
        if not any(found.values()):
            return {}
        market = estimate_market(self._endpoints)
        fees = initial_fees(market.base_fee, market.priority, self._fees)
        cost = (MEASURED_GAS["report"] + MEASURED_GAS["pay"]) * fees.max_fee
        return {address: amount for address, amount in found.items() if amount > cost}

    def find_payer(self, intent: TransferIntent) -> str:
        """See Chain."""
        return find_payer(self._deployments, intent)

    def _role_module(self, environment_id: str, avatar: str, tokens: tuple[str, ...]) -> RoleModule:
        operator = self._signer.address(environment_id)
        return RoleModule(self._deployment.factory, environment_id, avatar, operator, tokens)

    def _module_call(self, environment_id: str, step: ModuleIntent) -> ModuleCall:
        """The transaction of a step, made again. Raises SignerRefused."""
        module = self._role_module(environment_id, step.avatar, step.tokens)
        if module.address != step.module:
            raise SignerRefused("the role module belongs to a key that is no longer configured")
        if step.signature is None:
            return deployment_call(module)
        enable = AvatarCall(
            self.chain_id, step.avatar, step.nonce, step.avatar, calls.enable_module(step.module)
        )
        data = encode_execution(enable, bytes.fromhex(step.signature))
        return ModuleCall(module, step.avatar, data)

    def _sign(
        self,
        environment_id: str,
        nonce: int,
        to: str,
        action: Action,
        data: bytes,
        *,
        sender: str | None = None,
    ) -> SignedTransaction:
        operator = sender or self._signer.address(environment_id)
        self._gas.follow([operator])
        signer = find_signer(self._signer, environment_id, operator)
        market = estimate_market(self._endpoints)
        fees = initial_fees(market.base_fee, market.priority, self._fees)
        return sign_transaction(
            signer,
            environment_id,
            UnsignedTransaction(
                chain_id=self.chain_id,
                nonce=nonce,
                to=to,
                value=0,
                data=data,
                gas=gas_limit(
                    action, estimate_gas(self._endpoints, operator, to, data), self._fees
                ),
                max_fee=fees.max_fee,
                max_priority_fee=fees.max_priority_fee,
            ),
        )
