"""Chains whose contracts are kept in a list, each with one fault in what it says of signatures."""

from __future__ import annotations

import hashlib
import hmac

import attrs

from payments_core.addresses import encode_checksum_address
from payments_core.chains.signatures import WRAPPED_SUFFIX, WrappedSignature, unwrap_signature
from payments_core.chains.simulated.chain import SimulatedChain

FACTORY = "0x" + "Fa" * 20


def address_of(secret: bytes) -> str:
    """Where the contract with that secret is, or will be."""
    return encode_checksum_address(hashlib.sha256(secret).digest()[-20:])


class Plain(SimulatedChain):
    """The good one: `codes` has the secrets of deployed contracts by their addresses."""

    codes: dict[str, bytes]

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        wrapped = unwrap_signature(signature)
        secret = self.codes.get(address)
        if wrapped is not None:
            signature = wrapped.signature
            secret = secret or self._simulate(address, wrapped)
        return None if secret is None else self._accepts(secret, digest, signature)

    def _simulate(self, address: str, wrapped: WrappedSignature) -> bytes | None:
        deployed = wrapped.factory_data
        return deployed if address_of(deployed) == address else None

    def _accepts(self, secret: bytes, digest: bytes, signature: bytes) -> bool:
        return signature == hmac.digest(secret, digest, "sha256")


class AcceptsAnything(Plain):
    def _accepts(self, secret: bytes, digest: bytes, signature: bytes) -> bool:
        return True


class RefusesForTheAbsent(Plain):
    def check_contract_signature(self, address: str, digest: bytes, signature: bytes) -> bool:
        return super().check_contract_signature(address, digest, signature) is True


class KnowsNoWrapping(Plain):
    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        secret = self.codes.get(address)
        return None if secret is None else self._accepts(secret, digest, signature)


class UnwrapsForTheAbsentAlone(Plain):
    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        if address in self.codes:
            return self._accepts(self.codes[address], digest, signature)
        return super().check_contract_signature(address, digest, signature)


class DeploysWhatItSimulates(Plain):
    def _simulate(self, address: str, wrapped: WrappedSignature) -> bytes | None:
        found = super()._simulate(address, wrapped)
        if found is not None:
            self.codes[address] = found
        return found


class TrustsAnyDeployment(Plain):
    def _simulate(self, address: str, wrapped: WrappedSignature) -> bytes | None:
        return wrapped.factory_data


class AsksTheDeployedInstead(Plain):
    """The contract of the deployment answers, though another is at the address."""

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        wrapped = unwrap_signature(signature)
        if wrapped is not None and address in self.codes:
            return self._accepts(wrapped.factory_data, digest, wrapped.signature)
        return super().check_contract_signature(address, digest, signature)


@attrs.frozen
class ListedWallet:
    """A contract wallet on such chains."""

    secret: bytes
    codes: dict[str, bytes]

    @property
    def address(self) -> str:
        return address_of(self.secret)

    def sign(self, digest: bytes) -> bytes:
        return hmac.digest(self.secret, digest, "sha256")

    def wrap(self, signature: bytes) -> bytes:
        def padded(part: bytes) -> bytes:
            return len(part).to_bytes(32, "big") + part + bytes(-len(part) % 32)

        data, inner = padded(self.secret), padded(signature)
        head = (int(FACTORY, 16), 96, 96 + len(data))
        words = b"".join(number.to_bytes(32, "big") for number in head)
        return words + data + inner + WRAPPED_SUFFIX

    def deploy(self) -> None:
        self.codes[self.address] = self.secret
