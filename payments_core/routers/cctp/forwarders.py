"""The forwarders of routes: their terms, their addresses, and the calls of them. Pure.

The contracts are `contracts/src/CctpForwarders.sol` and `CctpForwarder.sol`. A forwarder's address
follows from all terms of its route, so that money can arrive before it exists, and nobody can
change the terms.
"""

from __future__ import annotations

from functools import cache, cached_property

import attrs

from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm.abi import Function, deploy
from payments_core.chains.evm.addresses import (
    DEPLOYER,
    SALT,
    create2_address,
    create_address,
    hash_id,
    proxy_creation_code,
)
from payments_core.chains.evm.artifacts import load_contract

OFFER_PAYMENT = "0x" + 64 * "0"
"""The name of an offer's one payment; a send's payments are named by their transactions."""

MILLION = 1_000_000

_ROUTE = "(bytes32,address,address,address,uint32,bytes32,address,uint256,uint32,uint32,uint64)"

# CctpForwarders
BURN = Function("burn", (_ROUTE, "bytes32", "uint256", "uint256"))
GIVE_BACK = Function("giveBack", (_ROUTE, "bytes32", "uint256"))
SWEEP = Function("sweep", (_ROUTE, "address"))
IS_SPENT = Function("isSpent", ("address", "bytes32"))
# MessageTransmitterV2
RECEIVE_MESSAGE = Function("receiveMessage", ("bytes", "bytes"))
USED_NONCES = Function("usedNonces", ("bytes32",))


def _topic(event: str) -> str:
    from eth_hash.auto import keccak

    return "0x" + keccak(event.encode()).hex()


@cache
def burned_topic() -> str:
    """The first topic of the log of a burn."""
    return _topic("Burned(address,bytes32,uint256)")


@cache
def returned_topic() -> str:
    """The first topic of the log of a return."""
    return _topic("Returned(address,bytes32,address,uint256)")


@cache
def received_topic() -> str:
    """The first topic of MessageTransmitterV2's log of a mint; the third is the nonce."""
    return _topic("MessageReceived(address,uint32,bytes32,bytes32,uint32,bytes)")


def address_topic(address: str) -> str:
    """An address as a topic of a log."""
    return "0x" + address[2:].lower().rjust(64, "0")


@attrs.frozen(kw_only=True)
class RouteTerms:
    """The terms of a route, as the contract has them; addresses have their checksum.

    `operator` alone burns. An offer has an `amount`, which is burned exactly once; a send has 0.
    `max_fee_ppm` bounds Circle's fee in millionths of what is burned. From `returnable_from_s`,
    Unix seconds, anybody may have all of it given back to `refund_to`.
    """

    key: str
    operator: str
    token_address: str
    messenger: str
    destination_domain: int
    recipient: str
    refund_to: str
    amount: int
    max_fee_ppm: int
    min_finality: int
    returnable_from_s: int

    @property
    def values(self) -> tuple[object, ...]:
        """The fields in the order of the contract's `Route`."""
        return (
            hash_id(self.key), self.operator, self.token_address, self.messenger,
            self.destination_domain, bytes(12) + bytes.fromhex(self.recipient[2:]),
            self.refund_to, self.amount, self.max_fee_ppm, self.min_finality,
            self.returnable_from_s,
        )  # fmt: skip

    @property
    def address(self) -> str:
        """Where the forwarder is, or will be."""
        from eth_abi.abi import encode
        from eth_hash.auto import keccak

        contracts = forwarders()
        salt = keccak(encode((_ROUTE,), (self.values,)))
        creation = proxy_creation_code(contracts.implementation)
        made = create2_address(bytes.fromhex(contracts.address[2:]), salt, creation)
        return encode_checksum_address(made)

    def max_fee(self, amount_atomic: int) -> int:
        """The highest fee that a burn of this amount may allow."""
        return amount_atomic * self.max_fee_ppm // MILLION

    def burn(self, payment: str, amount_atomic: int) -> bytes:
        """To the forwarders, by the operator: burn a payment, once."""
        fee = self.max_fee(amount_atomic)
        return BURN.call(self.values, bytes.fromhex(payment[2:]), amount_atomic, fee)

    def give_back(self, payment: str, amount_atomic: int) -> bytes:
        """To the forwarders, by the operator: give a payment of a send back, once."""
        return GIVE_BACK.call(self.values, bytes.fromhex(payment[2:]), amount_atomic)

    def sweep(self, token: str) -> bytes:
        """To the forwarders, by anybody: give back all of a token that is not to be burned."""
        return SWEEP.call(self.values, token)


def gross_up(amount_atomic: int, max_fee_ppm: int) -> int:
    """The least amount to burn of which this much is left after the highest fee."""
    return (amount_atomic - 1) * MILLION // (MILLION - max_fee_ppm) + 1


class _Forwarders:
    """The contract that creates forwarders: one address on every chain, since it has no terms."""

    @cached_property
    def creation(self) -> bytes:
        """The code that creates it."""
        return load_contract("CctpForwarders").creation

    @cached_property
    def address(self) -> str:
        """Where it is, or will be."""
        made = create2_address(bytes.fromhex(DEPLOYER[2:]), SALT, self.creation)
        return encode_checksum_address(made)

    @cached_property
    def implementation(self) -> str:
        """The code behind every forwarder. The constructor creates it first."""
        return encode_checksum_address(create_address(bytes.fromhex(self.address[2:]), 1))

    @property
    def deployment(self) -> tuple[str, bytes]:
        """The call that creates it, by anybody: to the deterministic deployer."""
        return DEPLOYER, deploy(self.creation)


@cache
def forwarders() -> _Forwarders:
    """The contract of all routes."""
    return _Forwarders()
