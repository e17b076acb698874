"""Calldata of contracts: encoded for every function that Python calls, and decoded.

Sources of the functions: `contracts/src`, ERC-20, and Safe for the modules.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs

from payments_core.chains.evm.addresses import PURSE_KINDS, SALT, PurseKind, hash_id
from payments_core.chains.role_modules import CALL
from payments_core.chains.typed_data import ZERO_ADDRESS

_NO_REFUND = (0, 0, 0, ZERO_ADDRESS, ZERO_ADDRESS)
"""A Safe's safeTxGas, baseGas, gasPrice, gasToken and refundReceiver: it pays nobody for gas."""


@attrs.frozen
class Function:
    """A contract's function: its name and the types of its arguments."""

    name: str
    types: tuple[str, ...]

    @property
    def signature(self) -> str:
        """The Solidity signature, from which the selector is made."""
        return f"{self.name}({','.join(self.types)})"

    @cached_property
    def selector(self) -> bytes:
        """The first four bytes of a call."""
        from eth_hash.auto import keccak

        return keccak(self.signature.encode())[:4]

    def call(self, *arguments: object) -> bytes:
        """The calldata. Raises ValueError for arguments that do not fit the types."""
        from eth_abi.abi import encode
        from eth_abi.exceptions import EncodingError

        try:
            return self.selector + encode(self.types, arguments)
        except EncodingError as error:
            raise ValueError(f"{self.signature}: {error}") from error

    def decode_arguments(self, data: bytes) -> tuple[Any, ...] | None:
        """The arguments of calldata that is exactly a call to this function; None for any other.

        Encoded again it must be the same, so that nothing is missing, appended or hidden.
        """
        from eth_abi.abi import decode
        from eth_abi.exceptions import DecodingError

        if data[:4] != self.selector:
            return None
        try:
            arguments = decode(self.types, data[4:])
        except (DecodingError, UnicodeDecodeError, OverflowError):
            return None
        return arguments if self.call(*arguments) == data else None


# Factory
FUND = Function("fund", ("bytes32", "bytes32", "bytes32", "address", "uint256"))
PAY = Function("pay", ("bytes32", "bytes32", "address", "address", "uint256"))
PAY_OUT = Function("payOut", ("bytes32", "bytes32", "bytes32", "address", "address", "uint256"))
SWEEP = Function("sweep", ("bytes32", "bytes32", "address", "uint256"))
SWEEP_ALL = Function("sweepAll", ("bytes32", "bytes32", "address"))
REPORT = Function("report", ("bytes32", "uint8", "bytes32"))
UNREPORTED = Function("unreported", ("address",))
SET_OPERATOR = Function("setOperator", ("bytes32", "address", "bool"))
SET_VAULT_OWNER = Function("setVaultOwner", ("bytes32", "bytes32", "address"))
OFFER_ADMIN = Function("offerAdmin", ("address",))
TAKE_ADMIN = Function("takeAdmin", ())
ADDRESS_OF = Function("addressOf", ("bytes32", "uint8", "bytes32"))
IS_OPERATOR = Function("isOperator", ("bytes32", "address"))

# Vault, and Safe if it has the same
EXECUTE = Function("execute", ("address", "uint256", "bytes", "uint8", "bytes"))
NONCE = Function("nonce", ())
OWNER = Function("owner", ())
SET_FACTORY_ROLE = Function("setFactoryRole", ("bool",))
ENABLE_MODULE = Function("enableModule", ("address",))
DISABLE_MODULE = Function("disableModule", ("address", "address"))
IS_MODULE_ENABLED = Function("isModuleEnabled", ("address",))

# Safe
EXEC_TRANSACTION = Function(
    "execTransaction",
    (
        "address",
        "uint256",
        "bytes",
        "uint8",
        "uint256",
        "uint256",
        "uint256",
        "address",
        "address",
        "bytes",
    ),
)
CHECK_SIGNATURES = Function("checkSignatures", ("bytes32", "bytes", "bytes"))

# RoleModule
EXEC = Function("exec", ("address", "bytes", "bytes32"))

# ERC-20
TRANSFER = Function("transfer", ("address", "uint256"))
BALANCE_OF = Function("balanceOf", ("address",))
# Only the test token (contracts/src/testing/TestToken.sol)
MINT = Function("mint", ("address", "uint256"))
MOVE_FROM = Function("moveFrom", ("address", "address", "uint256"))


def deploy(creation: bytes) -> bytes:
    """To the deterministic deployer: create this. It is refused if it exists already."""
    return SALT + creation


def set_operator(environment_id: str, operator: str, *, allowed: bool) -> bytes:
    """To the factory, by its admin: let somebody operate an environment, or no longer."""
    return SET_OPERATOR.call(hash_id(environment_id), operator, allowed)


def offer_admin(next_admin: str) -> bytes:
    """To the factory, by its admin: offer the role to another, who then has to take it."""
    return OFFER_ADMIN.call(next_admin)


def take_admin() -> bytes:
    """To the factory, by the address to which the role was offered."""
    return TAKE_ADMIN.call()


def fund(
    environment_id: str, vault_owner_id: str, escrow_owner_id: str, token: str, amount_atomic: int
) -> bytes:
    """To the factory, by an operator: from a vault to an escrow."""
    owners = (hash_id(vault_owner_id), hash_id(escrow_owner_id))
    return FUND.call(hash_id(environment_id), *owners, token, amount_atomic)


def pay(
    environment_id: str, escrow_owner_id: str, token: str, recipient: str, amount_atomic: int
) -> bytes:
    """To the factory, by an operator: from an escrow to anybody."""
    escrow = (hash_id(environment_id), hash_id(escrow_owner_id))
    return PAY.call(*escrow, token, recipient, amount_atomic)


def pay_out(
    environment_id: str,
    vault_owner_id: str,
    transit_id: str,
    token: str,
    recipient: str,
    amount_atomic: int,
) -> bytes:
    """To the factory, by an operator: from a vault through the escrow `transit_id` to anybody."""
    owners = (hash_id(vault_owner_id), hash_id(transit_id))
    return PAY_OUT.call(hash_id(environment_id), *owners, token, recipient, amount_atomic)


def sweep(environment_id: str, owner_id: str, token: str, amount_atomic: int) -> bytes:
    """To the factory, by an operator: exactly this amount from a deposit to its vault."""
    return SWEEP.call(hash_id(environment_id), hash_id(owner_id), token, amount_atomic)


def sweep_all(environment_id: str, owner_id: str, token: str) -> bytes:
    """To the factory, by anybody: the whole balance of a deposit to its vault."""
    return SWEEP_ALL.call(hash_id(environment_id), hash_id(owner_id), token)


def report(environment_id: str, kind: PurseKind, owner_id: str) -> bytes:
    """To the factory, by anybody: make a log of the native coin that has come to a purse."""
    return REPORT.call(hash_id(environment_id), PURSE_KINDS[kind], hash_id(owner_id))


def set_vault_owner(environment_id: str, owner_id: str, wallet: str) -> bytes:
    """To the factory, by an operator: give a vault its owner, once."""
    return SET_VAULT_OWNER.call(hash_id(environment_id), hash_id(owner_id), wallet)


def execute(to: str, value: int, data: bytes, signature: bytes, *, operation: int = CALL) -> bytes:
    """To a vault, by anybody: carry out the call that its owner signed."""
    return EXECUTE.call(to, value, data, operation, signature)


def exec_transaction(to: str, data: bytes, signatures: bytes) -> bytes:
    """To a Safe, by anybody: make the call that its owners signed, and refund nobody."""
    return EXEC_TRANSACTION.call(to, 0, data, CALL, *_NO_REFUND, signatures)


def check_signatures(digest: bytes, message: bytes, signatures: bytes) -> bytes:
    """To a Safe of 1.3 or 1.4, as a query: it reverts unless enough owners signed.

    `message` is the preimage of the digest, since owners that are contracts are asked about it.
    """
    return CHECK_SIGNATURES.call(digest, message, signatures)


def set_factory_role(*, allowed: bool) -> bytes:
    """To a vault, by itself: let the factory pay from it, or no longer."""
    return SET_FACTORY_ROLE.call(allowed)


def enable_module(module: str) -> bytes:
    """To a vault or a Safe, by itself."""
    return ENABLE_MODULE.call(module)


def disable_module(before: str, module: str) -> bytes:
    """To a vault or a Safe, by itself. A Safe needs the previous module in its list."""
    return DISABLE_MODULE.call(before, module)


def exec_transfer(token: str, escrow: str, amount_atomic: int, escrow_owner_id: str) -> bytes:
    """To a role module, by its operator: move a token from the avatar to that owner's escrow."""
    return EXEC.call(token, transfer(escrow, amount_atomic), hash_id(escrow_owner_id))


def transfer(recipient: str, amount_atomic: int) -> bytes:
    """To a token."""
    return TRANSFER.call(recipient, amount_atomic)


def decode_transfer(data: bytes) -> tuple[str, int] | None:
    """The recipient and the amount of a token's `transfer`; None for any other calldata."""
    arguments = TRANSFER.decode_arguments(data)
    return None if arguments is None else (_to_checksum(arguments[0]), arguments[1])


def decode_execution(data: bytes) -> tuple[str, int, bytes, int] | None:
    """Target, value, data and operation of an owner's call of a vault or a Safe.

    None for any other calldata, and for a call that makes a Safe refund somebody.
    """
    vaults = EXECUTE.decode_arguments(data)
    if vaults is not None:
        to, value, inner, operation, _ = vaults
        return _to_checksum(to), value, inner, operation
    safes = EXEC_TRANSACTION.decode_arguments(data)
    if safes is None or safes[4:9] != _NO_REFUND:
        return None
    to, value, inner, operation = safes[:4]
    return _to_checksum(to), value, inner, operation


def _to_checksum(decoded: str) -> str:
    from eth_utils.address import to_checksum_address

    return to_checksum_address(decoded)
