"""The deployment's master keys: the first seals, every one of them opens (contract §2).

Each use has its own key, derived from the master key and the purpose, so that a value sealed
for one purpose never opens for another. A sealed value is also bound to a context, such as the id
of its row: sealed values cannot change places.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from functools import cache
from types import ModuleType

import attrs

from payments_core.entropy import Entropy, system_entropy

KEY_BYTES = 32
_NONCE_BYTES = 24
_ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


@cache
def _nacl() -> ModuleType:
    """PyNaCl, which takes 15 ms to import: only programs that seal wait for it."""
    import nacl.bindings
    import nacl.exceptions

    return nacl


class SealBroken(Exception):
    """The value was not sealed here for this purpose and context, or was changed since."""


class WeakKeyRing(ValueError):
    """The configured key ring cannot be used; the text says why and holds no key."""


@attrs.frozen
class MasterKey:
    """A key and its public name, which begins every value that it sealed."""

    id: str
    secret: bytes = attrs.field(repr=False)

    def __attrs_post_init__(self) -> None:
        if not 1 <= len(self.id) <= 16 or not _ID_CHARACTERS.issuperset(self.id):
            raise WeakKeyRing("the name of a key must have 1 to 16 lower-case letters and digits")
        if len(self.secret) != KEY_BYTES:
            raise WeakKeyRing(f"the key {self.id} must have {KEY_BYTES} bytes")
        if len(set(self.secret)) < 8:
            raise WeakKeyRing(f"the key {self.id} is not random")


class KeyRing:
    """Master keys in order: the first is current, the others only open and verify.

    `KeyRing.parse` reads one from configuration. Raises WeakKeyRing, which is a ValueError, for
    no key at all.

    >>> KeyRing.parse(KeyRing.generate(name="k2") + " " + KeyRing.generate(name="k1")).names
    ('k2', 'k1')
    """

    def __init__(self, keys: Iterable[MasterKey], entropy: Entropy = system_entropy) -> None:
        self._keys = {key.id: key for key in keys}
        if not self._keys:
            raise WeakKeyRing("the key ring has no key")
        self._current = next(iter(self._keys.values()))
        self._entropy = entropy
        self._derived: dict[tuple[str, str], bytes] = {}
        self._hmacs: dict[tuple[str, str], hmac.HMAC] = {}

    @classmethod
    def parse(cls, text: str, entropy: Entropy = system_entropy) -> KeyRing:
        """Keys as `name:base64`, separated by white space or commas, the current one first.

        Each has 32 bytes, and a name of 1 to 16 lower-case letters and digits. Raises WeakKeyRing.
        """
        keys = []
        for place, item in enumerate(text.replace(",", " ").split(), start=1):
            name, colon, encoded = item.partition(":")
            if not colon:  # the text may be the secret alone
                raise WeakKeyRing(f"key {place} is not name:base64")
            try:
                secret = base64.b64decode(encoded, validate=True)
            except ValueError:
                raise WeakKeyRing(f"key {place} is not name:base64") from None
            keys.append(MasterKey(name, secret))
        if len({key.id for key in keys}) != len(keys):
            raise WeakKeyRing("two keys have the same name")
        return cls(keys, entropy)

    @staticmethod
    def generate(entropy: Entropy = system_entropy, name: str = "k1") -> str:
        """A new key as `parse` reads it."""
        return f"{name}:{base64.b64encode(entropy(KEY_BYTES)).decode()}"

    def __repr__(self) -> str:
        return f"KeyRing({list(self._keys)})"

    @property
    def current_id(self) -> str:
        """The name of the key that seals."""
        return self._current.id

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all keys, the current one first."""
        return tuple(self._keys)

    def seal(self, purpose: str, context: str, plain: bytes) -> bytes:
        """Encrypt and authenticate with XChaCha20-Poly1305: key name, `:`, nonce, ciphertext."""
        return self._seal(purpose, context, plain, self._entropy(_NONCE_BYTES))

    def seal_repeatably(self, purpose: str, context: str, plain: bytes) -> bytes:
        """As `seal`, but the same input gives the same bytes: the nonce is a keyed hash of it."""
        key = self._derive_key(self._current, purpose + "/nonce")
        message = len(context).to_bytes(4, "big") + context.encode() + plain
        nonce = hashlib.blake2b(message, key=key, digest_size=_NONCE_BYTES).digest()
        return self._seal(purpose, context, plain, nonce)

    def open(self, purpose: str, context: str, sealed: bytes) -> bytes:
        """The value that was sealed. Raises SealBroken for anything else, without a reason."""
        key_id, _, rest = sealed.partition(b":")
        key = self._keys.get(key_id.decode("ascii", "replace"))
        if key is None or len(rest) < _NONCE_BYTES + 16:
            raise SealBroken
        nonce, cipher = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
        try:
            opened: bytes = _nacl().bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
                cipher, context.encode(), nonce, self._derive_key(key, purpose)
            )
        except _nacl().exceptions.CryptoError:
            raise SealBroken from None
        return opened

    def digest(self, purpose: str, value: str) -> str:
        """The keyed digest (HMAC-SHA-256) by which a secret is stored, under the current key."""
        return self._digest(self._current, purpose, value)

    def digests(self, purpose: str, value: str) -> tuple[str, ...]:
        """The digests under every key, current first: an older key's digests are still found."""
        return tuple(self._digest(key, purpose, value) for key in self._keys.values())

    def tag(self, purpose: str, message: bytes) -> bytes:
        """A 16-byte authenticator under the current key, for values that are not secret."""
        key = self._derive_key(self._current, purpose)
        return hashlib.blake2b(message, key=key, digest_size=16).digest()

    def tag_matches(self, purpose: str, message: bytes, tag: bytes) -> bool:
        """Whether any key of the ring made this tag."""
        return any(
            hmac.compare_digest(
                tag,
                hashlib.blake2b(
                    message, key=self._derive_key(key, purpose), digest_size=16
                ).digest(),
            )
            for key in self._keys.values()
        )

    def _seal(self, purpose: str, context: str, plain: bytes, nonce: bytes) -> bytes:
        key = self._derive_key(self._current, purpose)
        cipher: bytes = _nacl().bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(
            plain, context.encode(), nonce, key
        )
        return self._current.id.encode() + b":" + nonce + cipher

    def _digest(self, key: MasterKey, purpose: str, value: str) -> str:
        keyed = self._hmacs.get((key.id, purpose))
        if keyed is None:
            keyed = hmac.new(self._derive_key(key, purpose), digestmod="sha256")
            self._hmacs[key.id, purpose] = keyed
        code = keyed.copy()  # the key is hashed once, and not for each value
        code.update(value.encode("utf-8", "surrogatepass"))  # a foreign value need not be a text
        return code.hexdigest()

    def _derive_key(self, key: MasterKey, purpose: str) -> bytes:
        derived = self._derived.get((key.id, purpose))
        if derived is None:
            derived = hashlib.blake2b(
                purpose.encode(), key=key.secret, digest_size=KEY_BYTES, person=b"payments-core"
            ).digest()
            self._derived[key.id, purpose] = derived
        return derived
