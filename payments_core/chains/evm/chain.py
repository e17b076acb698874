"""An EVM chain: the port over nodes that must agree, our contracts, and a signer.

Every transaction of ours that moves money is a call of our factory by the environment's operator.
The contracts decide where it may go (`contracts/src/Factory.sol`); what a call has done is read
from logs. Besides there are the two calls that put a user's role module in place.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.chains.evm import answers, calls
from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.blocks import block_call, block_of
from payments_core.chains.evm.endpoints import Behind, Endpoints, Session, Settled
from payments_core.chains.evm.fees import (
    POLICIES,
    Action,
    FeePolicy,
    Fees,
    bumped,
    first,
    gas_limit,
)
from payments_core.chains.evm.finality import Finality, finality_of
from payments_core.chains.evm.reading import EvmReading
from payments_core.chains.evm.role_modules import ModuleCall, action_of
from payments_core.chains.evm.rpc import Call, Refusal
from payments_core.chains.evm.signers import Signer
from payments_core.chains.evm.transactions import Unsigned, decoded, signed, signing_hash
from payments_core.chains.port import (
    AddressSpec,
    ChainMismatch,
    ChainUnavailable,
    Signed,
    SignerRefused,
    TransferIntent,
)
from payments_core.clock import MINUTE, SECOND


@attrs.frozen
class _Market:
    """What a node says of prices: the next block's base fee, and the tip that it suggests."""

    base_fee: int
    priority: int


class EvmChain(EvmReading):
    """One EVM chain. Threads may share it."""

    longest_pause_ms = 15 * SECOND
    """A block comes every few seconds, whether or not it has anything for us."""

    longest_scan = 2_000
    """Most nodes take no longer range; those that take less are asked in halves."""

    patience_ms: int | None = 2 * MINUTE

    def __init__(
        self,
        endpoints: Endpoints,
        deployment: Deployment,
        signer: Signer,
        *,
        finality: Finality | None = None,
        fees: FeePolicy | None = None,
    ) -> None:
        """Raises ChainMismatch where nothing says when a block of the chain is final."""
        super().__init__(endpoints, finality or finality_of(endpoints.chain_id))
        self._deployment = deployment
        self._signer = signer
        self._fees = fees or POLICIES.get(endpoints.chain_id) or POLICIES[1]

    def check(self) -> None:
        """To be called before anything is done: are these the chain and the contracts?

        Raises ChainMismatch, and ChainUnavailable where too few nodes say so.
        """
        self._endpoints.check()
        factory = self._deployment.factory

        def ask(session: Session) -> bool:
            return answers.data(session.call("eth_getCode", factory, "latest")) != b""

        if not self._endpoints.agreed(ask):
            raise ChainMismatch(
                f"chain {self.chain_id} has no factory of ours at {factory} (docs/how-to/keys.md)"
            )

    # Writing.

    def derive(self, spec: AddressSpec) -> str:
        """See Chain."""
        if spec.kind == "operator":
            return self._signer.address(spec.environment_id)
        return self._deployment.address(spec.environment_id, spec.kind, spec.owner_id)

    def prepare(self, intent: TransferIntent, slot: int) -> Signed:
        """See Chain."""
        self._require_ours(intent)
        action, data = _call_of(intent)
        return self._sign(intent.environment_id, slot, self._deployment.factory, action, data)

    def prepare_call(self, environment_id: str, slot: int, call: ModuleCall) -> Signed:
        """Sign, and never send, a step that puts a user's role module in place.

        Raises SignerRefused for a call of anything else, and for a module that is not for this
        deployment, environment and operator.
        """
        module = call.module
        ours = (self._deployment.factory, environment_id, self._signer.address(environment_id))
        if (module.factory, module.environment_id, module.operator) != ours:
            raise SignerRefused("it is a role module of somebody else's")
        return self._sign(environment_id, slot, call.to, action_of(call), call.data)

    def fill(self, environment_id: str, slot: int) -> Signed:
        """See Chain: nothing, from the operator to itself."""
        operator = self._signer.address(environment_id)
        return self._sign(environment_id, slot, operator, "fill", b"")

    def bump(self, environment_id: str, signed: Signed) -> Signed | None:
        """See Chain."""
        before, sender = decoded(signed.raw, chain_id=self.chain_id)
        if sender != self._signer.address(environment_id):
            raise SignerRefused("it was signed with a key that is no longer the operator's")
        market = self._market()
        offered = Fees(before.max_fee, before.max_priority_fee)
        bump = bumped(offered, market.base_fee, market.priority, self._fees)
        if bump.is_held:
            return None
        fees = bump.fees
        raised = attrs.evolve(before, max_fee=fees.max_fee, max_priority_fee=fees.max_priority_fee)
        return self._signed(environment_id, raised)

    def broadcast(self, signed: Signed) -> None:
        """See Chain. Every node is told, and none is believed."""
        send = Call("eth_sendRawTransaction", ("0x" + signed.raw.hex(),))

        def ask(session: Session) -> bool:
            (result,) = session.batch([send])
            return not isinstance(result, Refusal)

        if any(self._endpoints.everyone(ask)):
            return
        # Refused, for one of a hundred reasons that nodes word as they like: that they have it
        # already is the best of them.
        if self.transaction(signed.hash) is None:
            raise ChainUnavailable(f"chain {self.chain_id}: no node takes {signed.hash}")

    def slots_used(self, sender: str) -> int:
        """See Chain: the sender's nonce at the newest final block."""
        final = self.heads().final

        def ask(session: Session) -> int:
            around = block_call(final.number)
            nonce = Call("eth_getTransactionCount", (sender, hex(final.number)))
            before, count, after = session.results([around, nonce, around])
            if not block_of(before, final.number) == block_of(after, final.number) == final:
                raise Behind(f"{session.name}: does not have block {final.number} of the others")
            return answers.number(count)

        return self._endpoints.agreed(ask)

    def _require_ours(self, intent: TransferIntent) -> None:
        """Raise SignerRefused unless the money is where the contracts look for it.

        An address that was derived by other contracts, or for another admin, is none of these.
        """
        source = intent.source
        spec = AddressSpec(intent.environment_id, source.kind, source.owner_id)
        if source.kind == "operator" or self.derive(spec) != source.address:
            raise SignerRefused(f"{intent.id}: {source.address} is no contract of this deployment")
        if intent.escrow_of is not None:
            escrow = AddressSpec(intent.environment_id, "escrow", intent.escrow_of)
            is_right = self.derive(escrow) == intent.recipient
        elif source.kind == "deposit":
            vault = AddressSpec(intent.environment_id, "vault", source.owner_id)
            is_right = self.derive(vault) == intent.recipient
        else:
            is_right = True
        if not is_right:
            raise SignerRefused(f"{intent.id}: the contracts would pay another recipient")

    def _sign(self, environment_id: str, slot: int, to: str, action: Action, data: bytes) -> Signed:
        operator = self._signer.address(environment_id)
        market = self._market()
        fees = first(market.base_fee, market.priority, self._fees)
        return self._signed(
            environment_id,
            Unsigned(
                chain_id=self.chain_id,
                nonce=slot,
                to=to,
                value=0,
                data=data,
                gas=gas_limit(action, self._estimate(operator, to, data)),
                max_fee=fees.max_fee,
                max_priority_fee=fees.max_priority_fee,
            ),
        )

    def _signed(self, environment_id: str, unsigned: Unsigned) -> Signed:
        return signed(unsigned, self._signer.sign(environment_id, signing_hash(unsigned)))

    def _estimate(self, operator: str, to: str, data: bytes) -> int:
        """The gas that nodes estimate; 0 where they say that it would fail, which it may do."""
        call = {"from": operator, "to": to, "data": "0x" + data.hex()}

        def ask(session: Session) -> int:
            (result,) = session.batch([Call("eth_estimateGas", (call,))])
            return 0 if isinstance(result, Refusal) else answers.number(result)

        return _middle(self._endpoints.everyone(ask))

    def _market(self) -> _Market:
        """What enough nodes say, each field the middle of them: one that lies moves little."""

        def ask(session: Session) -> _Market:
            history, tip = session.results(
                [Call("eth_feeHistory", ("0x1", "latest", [])), Call("eth_maxPriorityFeePerGas")]
            )
            return _Market(answers.next_base_fee(history), answers.wei(tip))

        enough = self._endpoints.enough
        told = self._endpoints.decided(
            ask, lambda told, is_last: Settled(tuple(told)) if len(told) >= enough else None
        )
        return _Market(
            _middle([market.base_fee for market in told]),
            _middle([market.priority for market in told]),
        )


def _middle(numbers: Sequence[int]) -> int:
    """The middle one: among three, one that lies cannot choose it."""
    return sorted(numbers)[len(numbers) // 2]


def _call_of(intent: TransferIntent) -> tuple[Action, bytes]:
    """The factory's function that does what is meant, and its calldata."""
    environment, token, amount = intent.environment_id, intent.token_address, intent.amount_atomic
    source, to = intent.source, intent.recipient
    if source.kind == "escrow":
        return "pay", calls.pay(environment, source.owner_id, token, to, amount)
    if source.kind == "deposit":
        return "sweep", calls.sweep(environment, source.owner_id, token, amount)
    if intent.escrow_of is not None:
        return "fund", calls.fund(environment, source.owner_id, intent.escrow_of, token, amount)
    return "pay_out", calls.pay_out(environment, source.owner_id, intent.id, token, to, amount)


def connect(
    urls: Sequence[str], chain_id: int, admin: str, signer: Signer, *, agreement: int | None = None
) -> EvmChain:
    """The chain behind these nodes, checked. `admin` is the factory's (docs/how-to/keys.md).

    Raises ChainMismatch, ChainUnavailable, ValueError.
    """
    endpoints = Endpoints(urls, chain_id, agreement)
    chain = EvmChain(endpoints, Deployment(admin), signer)
    chain.check()
    return chain
