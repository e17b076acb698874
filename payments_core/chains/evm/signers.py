"""The signers of an environment's operator: a key file for development, or a remote signer.

A signer sees only digests, and refuses those that it cannot sign. No key is in a repr, a log or an
error. How keys are made, kept and changed: docs/how-to/keys.md.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import math
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import attrs

from payments_core.chains.port import ChainUnavailable, SignerRefused, WrongSignature
from payments_core.chains.signatures import (
    ORDER,
    SignatureError,
    address_of,
    recover_signer_from_bytes,
)
from payments_core.entropy import Entropy, system_entropy
from payments_core.plain_calls import require_plain_methods

SECRET_BYTES = 32
FILE_MODE = 0o600
ASK_AGAIN_S = 5
"""A key service that did not answer is asked for public keys after this time."""

_PURPOSE = b"payments-core/operator key/"
_EXPANDED_BYTES = 48  # sixteen more than a key, so that the remainder prefers none (FIPS 186-5 A.2)


class Signer(Protocol):
    """The keys of the environments' operators. Every method may raise SignerRefused."""

    def address(self, environment_id: str) -> str:
        """The address of the environment's operator, with its checksum; always the same.

        The first call for an environment may do I/O, and raises ChainUnavailable if a key service
        does not answer: ask again.
        """

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        """A signature of 32 bytes by that address: r, s and 0 or 1, 65 bytes, with a low s.

        It may do I/O, and is never called in a transaction. Raises ChainUnavailable if a key
        service does not answer: ask again.
        """


class LocalSigner:
    """Signs with keys made from one secret in a file: for development, and for tests.

    Each environment has its own key, which follows from the secret and the environment's id.
    The same digest gives the same signature (RFC 6979).
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != SECRET_BYTES:
            raise SignerRefused(f"the secret must be {SECRET_BYTES} bytes")
        self._secret = secret

    @classmethod
    def open(cls, path: Path, *, entropy: Entropy = system_entropy) -> LocalSigner:
        """The signer of a file, which is created if missing.

        Raises SignerRefused for a file that others may read, that somebody else owns, or that
        contains anything except a secret.
        """
        try:
            secret = _read_secret_file(path)
            if secret is None:
                _create_secret_file(path, entropy(SECRET_BYTES), entropy(8).hex())
                secret = _read_secret_file(path)
        except OSError as error:
            raise SignerRefused(f"the key file {path} cannot be used: {error.strerror}") from error
        if secret is None:
            raise SignerRefused(f"the key file {path} was removed")
        return cls(secret)

    def address(self, environment_id: str) -> str:
        """See Signer."""
        from btclib_libsecp256k1 import keys

        return address_of(keys.pubkey_from_prvkey(self._key(environment_id), compressed=False))

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        """See Signer. libsecp256k1 always makes the low s."""
        # It loads a C library: only signers wait for it.
        from btclib_libsecp256k1 import recovery

        _require_digest(digest)
        pair, parity = recovery.sign(digest, self._key(environment_id))
        return pair + bytes([parity])

    def __repr__(self) -> str:
        return "LocalSigner()"

    def _key(self, environment_id: str) -> bytes:
        """A number from 1 to the order less one, by HKDF-SHA-256 (RFC 5869) without salt."""
        start = hmac.digest(bytes(hashlib.sha256().digest_size), self._secret, "sha256")
        purpose = _PURPOSE + environment_id.encode()
        block = hmac.digest(start, purpose + b"\x01", "sha256")
        expanded = block + hmac.digest(start, block + purpose + b"\x02", "sha256")
        number = int.from_bytes(expanded[:_EXPANDED_BYTES], "big") % (ORDER - 1) + 1
        return number.to_bytes(32, "big")


class KeyService(Protocol):
    """The port of a key service; write an adapter for yours (docs/how-to/keys.md)."""

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        """Sign these 32 bytes as they are, without hashing them again: r and s, 64 bytes.

        Any s is accepted: it is lowered here. Raises SignerRefused if the service
        refuses, ChainUnavailable if it does not answer within a few seconds, which you set;
        neither text contains a credential. If it retries, then a few times within seconds.
        """


@runtime_checkable
class PublicKeys(Protocol):
    """A key service that can also be asked for the public key of an environment."""

    def public_key(self, environment_id: str) -> bytes:
        """The point in 65 bytes, the uncompressed form. Raises as `KeyService.sign` does."""


@attrs.frozen
class RemoteSigner:
    """Signs with keys that a service holds, and checks every signature.

    `addresses` are by environment, from your configuration. For another environment the service is
    asked once, if it has PublicKeys; it could name any key then, but the factory lets only the
    operator move funds whom the admin has named. The same digest may give another signature each
    time. Raises TypeError for a key service whose `sign` is asynchronous.
    """

    keys: KeyService = attrs.field(repr=False)
    addresses: Mapping[str, str]
    _asked: _Asked = attrs.field(factory=lambda: _Asked(), init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        require_plain_methods(self.keys, "key service", KeyService, PublicKeys)

    def address(self, environment_id: str) -> str:
        """See Signer."""
        from eth_utils.address import to_checksum_address

        address = self.addresses.get(environment_id)
        if address is not None:
            return to_checksum_address(address)
        if not isinstance(self.keys, PublicKeys):
            raise SignerRefused(f"no operator of {environment_id} is configured")
        if environment_id not in self._asked.addresses:
            key = self._asked.ask(self.keys, environment_id)
            self._asked.addresses[environment_id] = address_of(key)
        return self._asked.addresses[environment_id]

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        """See Signer. Raises WrongSignature for a signature by any other key."""
        _require_digest(digest)
        expected = self.address(environment_id)
        pair = self.keys.sign(environment_id, digest)
        if len(pair) != 64:
            raise WrongSignature("the response of the key service has no r and s")
        s = int.from_bytes(pair[32:], "big")
        low = min(s, ORDER - s) if s < ORDER else s
        for parity in (0, 1):  # key services do not say which, and only one gives our address
            signature = pair[:32] + low.to_bytes(32, "big") + bytes([parity])
            if _is_signed_by(expected, digest, signature):
                return signature
        raise WrongSignature("the key service signed with another key or signed other data")


@attrs.define
class _Asked:
    """The addresses that a key service named. One that did not answer is left alone for a while:
    otherwise every request of an environment would wait for it.
    """

    addresses: dict[str, str] = attrs.field(factory=dict)
    silent_until_s: float = -math.inf

    def ask(self, keys: PublicKeys, environment_id: str) -> bytes:
        """Raises as `PublicKeys.public_key` does."""
        if time.monotonic() < self.silent_until_s:
            raise ChainUnavailable("the key service did not answer a moment ago")
        try:
            return keys.public_key(environment_id)
        except ChainUnavailable:
            self.silent_until_s = time.monotonic() + ASK_AGAIN_S
            raise


def from_der(der: bytes) -> bytes:
    """The 64 bytes r and s of a signature in DER, as AWS KMS and Google Cloud KMS return it.

    Raises SignerRefused.
    """
    from btclib_libsecp256k1 import dsa

    try:
        return dsa.to_compact(der)
    except ValueError:
        raise WrongSignature("the key service's signature is not in DER") from None


def _is_signed_by(expected: str, digest: bytes, signature: bytes) -> bool:
    try:
        return recover_signer_from_bytes(digest, signature) == expected
    except SignatureError:
        return False


def _require_digest(digest: bytes) -> None:
    if len(digest) != 32:
        raise SignerRefused("only a digest of 32 bytes can be signed")


def _read_secret_file(path: Path) -> bytes | None:
    """The content of the file; None if there is none. Checks the opened file, not its name."""
    try:
        descriptor = os.open(
            path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        )  # in case it is a pipe
    except FileNotFoundError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise SignerRefused(f"the key file {path} is not a file")
        if found.st_uid != os.geteuid():
            raise SignerRefused(f"the key file {path} belongs to another user")
        if found.st_mode & 0o077:
            raise SignerRefused(f"the key file {path} is readable by other users: chmod 600 {path}")
        secret = os.read(descriptor, SECRET_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(secret) != SECRET_BYTES:
        raise SignerRefused(f"the key file {path} must contain {SECRET_BYTES} bytes")
    return secret


def _create_secret_file(path: Path, secret: bytes, suffix: str) -> None:
    """Write a new file; after a crash it is complete or absent, and of two concurrent writers one
    creates it.

    `suffix` is random, so that two writers do not collide.
    """
    unfinished = path.with_name(f"{path.name}.{suffix}.new")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(descriptor)
        os.link(unfinished, path)  # which never replaces a file, as a rename would
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
    finally:
        unfinished.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
