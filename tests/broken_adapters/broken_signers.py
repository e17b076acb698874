"""Signers that each break one promise of the port, made out of a sound one."""

from __future__ import annotations

import hashlib
import time

from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.port import ChainUnavailable, SignerRefused
from payments_core.chains.signatures import ORDER

SECRET = bytes(range(1, 33))
KNOWN = ("env_a", "env_b")


class Plain:
    """Sound: it has two keys, and stops when it is told to."""

    def __init__(self) -> None:
        self.is_down = False
        self.keys = LocalSigner(SECRET)

    def address(self, environment_id: str) -> str:
        self.require_known(environment_id)
        return self.keys.address(environment_id)

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        self.require_known(environment_id)
        if len(digest) != 32:
            raise SignerRefused("not a digest")
        if self.is_down:
            raise ChainUnavailable("the keys are away")
        return self.keys.sign(environment_id, digest)

    def require_known(self, environment_id: str) -> None:
        if environment_id not in KNOWN:
            raise SignerRefused("no key")


class ShowsNoChecksum(Plain):
    def address(self, environment_id: str) -> str:
        return super().address(environment_id).lower()


class ChangesItsAddress(Plain):
    calls = 0

    def address(self, environment_id: str) -> str:
        self.calls += 1
        return super().address(KNOWN[self.calls % 2])


class HasOneKey(Plain):
    def address(self, environment_id: str) -> str:
        super().address(environment_id)
        return super().address(KNOWN[0])


class LeavesSHigh(Plain):
    def sign(self, environment_id: str, digest: bytes) -> bytes:
        made = super().sign(environment_id, digest)
        high = ORDER - int.from_bytes(made[32:64], "big")
        return made[:32] + high.to_bytes(32, "big") + bytes([made[64] ^ 1])


class CountsFrom27(Plain):
    def sign(self, environment_id: str, digest: bytes) -> bytes:
        made = super().sign(environment_id, digest)
        return made[:64] + bytes([27 + made[64]])


class HashesTheDigest(Plain):
    def sign(self, environment_id: str, digest: bytes) -> bytes:
        hashed = hashlib.sha256(digest).digest() if len(digest) == 32 else digest
        return super().sign(environment_id, hashed)


class GuessesTheParity(Plain):
    def sign(self, environment_id: str, digest: bytes) -> bytes:
        return super().sign(environment_id, digest)[:64] + b"\0"


class ReducesTheDigest(Plain):
    """Takes a digest for a number, and drops its zeros."""

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        if len(digest) == 32:
            digest = digest.lstrip(b"\0").ljust(32, b"\0")
        return super().sign(environment_id, digest)


class SignsWithTheFirstKey(Plain):
    def sign(self, environment_id: str, digest: bytes) -> bytes:
        self.require_known(environment_id)
        return super().sign(KNOWN[0], digest)


class SignsAnyLength(Plain):
    def sign(self, environment_id: str, digest: bytes) -> bytes:
        return super().sign(environment_id, digest[:32].ljust(32, b"\0"))


class MakesKeysForAnyone(Plain):
    def require_known(self, environment_id: str) -> None:
        return


class SharesItsState(Plain):
    """Keeps the digest of a call where other calls find it."""

    digest = b""

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        self.digest = digest
        time.sleep(0.001)  # another thread runs
        return super().sign(environment_id, self.digest)


class RaisesTimeouts(Plain):
    def sign(self, environment_id: str, digest: bytes) -> bytes:
        if self.is_down:
            raise TimeoutError
        return super().sign(environment_id, digest)


class AsksForEachAddress(Plain):
    def address(self, environment_id: str) -> str:
        if self.is_down:
            raise ChainUnavailable("the keys are away")
        return super().address(environment_id)


class ShowsItsSecret(Plain):
    def __repr__(self) -> str:
        return f"ShowsItsSecret({SECRET.hex()})"


class QuotesItsSecret(Plain):
    def require_known(self, environment_id: str) -> None:
        if environment_id not in KNOWN:
            raise SignerRefused(f"{SECRET.hex()} has no key of {environment_id}")
