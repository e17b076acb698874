"""The address of each purpose on every EVM chain: CREATE2, computed without asking a chain.

The deterministic deployer creates the factory, and has the same address on all chains;
the factory's address follows from its code and its admin, and from it the address of every vault,
escrow and deposit (`contracts/src/Factory.sol`, `addressOf`).
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Literal

import attrs

from payments_core.addresses import encode_checksum_address, normalize_address
from payments_core.chains.evm.artifacts import load_contract

DEPLOYER = "0x4e59b44847b379578588920cA78FbF26c0B4956C"
"""The deterministic deployer: it creates a contract from a salt and the code to run."""

SALT = bytes(32)

PurseKind = Literal["vault", "escrow", "deposit"]
PURSE_KINDS: dict[PurseKind, int] = {"vault": 0, "escrow": 1, "deposit": 2}

Generation = Literal[1, 2]
_FACTORIES: dict[Generation, str] = {1: "first/Factory", 2: "Factory"}
"""The contracts of each generation."""

GENERATIONS = tuple(_FACTORIES)


@attrs.frozen
class Deployment:
    """One generation of our contracts, for one admin: the admin's address decides all others."""

    admin: str
    generation: Generation = 2

    @property
    def pays_coin(self) -> bool:
        """Whether the contracts can pay the chain's native coin."""
        return self.generation > 1

    @cached_property
    def creation(self) -> bytes:
        """The code that creates the factory."""
        return load_contract(_FACTORIES[self.generation]).creation + _address_word(
            normalize_address("evm", self.admin)
        )

    @cached_property
    def factory(self) -> str:
        """Where the factory is, or will be."""
        return encode_checksum_address(
            create2_address(_address_bytes(DEPLOYER), SALT, self.creation)
        )

    @cached_property
    def vault_implementation(self) -> str:
        """The code behind every vault. The factory's constructor creates it first."""
        return encode_checksum_address(create_address(_address_bytes(self.factory), 1))

    @cached_property
    def purse_implementation(self) -> str:
        """The code behind every escrow and deposit. The factory's constructor creates it second."""
        return encode_checksum_address(create_address(_address_bytes(self.factory), 2))

    def address(self, environment_id: str, kind: PurseKind, owner_id: str) -> str:
        """Where a vault, an escrow or a deposit is, or will be. Pure."""
        implementation = self.vault_implementation if kind == "vault" else self.purse_implementation
        return _purse_address(self.factory, implementation, environment_id, kind, owner_id)


@attrs.frozen
class RoleModule:
    """A user's own role module: all that it is made from, which also determines its address.

    `avatar` is the Safe or vault that it acts for; `tokens` are the ones that it may move.
    """

    factory: str
    environment_id: str
    avatar: str
    operator: str
    tokens: tuple[str, ...]

    @cached_property
    def creation(self) -> bytes:
        """The code that creates it."""
        from eth_abi.abi import encode

        # One order for one set, since another order would give another address.
        tokens = sorted({normalize_address("evm", token) for token in self.tokens})
        arguments = encode(
            ("address", "address", "address", "bytes32", "address[]"),
            (self.avatar, self.operator, self.factory, hash_id(self.environment_id), tokens),
        )
        return load_contract("RoleModule").creation + arguments

    @cached_property
    def address(self) -> str:
        """Where it is, or will be."""
        return encode_checksum_address(
            create2_address(_address_bytes(DEPLOYER), SALT, self.creation)
        )


@lru_cache(maxsize=10_000)
def hash_id(id: str) -> bytes:
    """The contracts' name of an environment or an owner: the hash of its id."""
    return _keccak(id.encode())


def create2_address(creator: bytes, salt: bytes, creation: bytes) -> bytes:
    """The address of the contract that `creator` creates from this salt and code (EIP-1014)."""
    return _keccak(b"\xff" + creator + salt + _keccak(creation))[12:]


@lru_cache(maxsize=10_000)
def _purse_address(
    factory: str, implementation: str, environment_id: str, kind: PurseKind, owner_id: str
) -> str:
    name = hash_id(environment_id) + PURSE_KINDS[kind].to_bytes(32, "big") + hash_id(owner_id)
    return encode_checksum_address(
        create2_address(_address_bytes(factory), _keccak(name), proxy_creation_code(implementation))
    )


def proxy_creation_code(implementation: str) -> bytes:
    """The code that creates a minimal proxy (EIP-1167)."""
    return (
        bytes.fromhex("3d602d80600a3d3981f3363d3d373d3d3d363d73")
        + _address_bytes(implementation)
        + bytes.fromhex("5af43d82803e903d91602b57fd5bf3")
    )


def create_address(creator: bytes, nonce: int) -> bytes:
    """The address of the contract that `creator` creates by CREATE as its `nonce`-th.

    In the RLP of a list, 0xd6 means 22 bytes, 0x94 a text of 20, and a nonce below 128 is itself.
    """
    return _keccak(b"\xd6\x94" + creator + bytes([nonce]))[12:]


def _address_word(address: str) -> bytes:
    return bytes(12) + _address_bytes(address)


def _address_bytes(address: str) -> bytes:
    return bytes.fromhex(address.removeprefix("0x"))


def _keccak(data: bytes) -> bytes:
    # Its import takes a tenth of a second, so only its users wait for it.
    from eth_hash.auto import keccak

    return keccak(data)
