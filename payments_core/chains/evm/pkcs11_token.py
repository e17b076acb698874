"""Signs with keys in a token with a PKCS#11 module, such as an HSM. See docs/how-to/keys.md.

The URL is a PKCS #11 URI (RFC 7512):
`pkcs11:token=payments;object=payments?module-path=/usr/lib/softhsm/libsofthsm2.so&pin-source=/path`
"""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import attrs

from payments_core.chains.evm.key_urls import key_name, split_pins
from payments_core.chains.evm.signers import RemoteSigner
from payments_core.chains.port import ChainUnavailable, SignerRefused
from payments_core.fork_safety import register_fork_reset

BUSY_S = 5
"""A call that waits for longer for other calls to the token is to be repeated later."""

_CURVE = bytes.fromhex("06052b8104000a")
"""The name of secp256k1 as CKA_EC_PARAMS has it: its OID 1.3.132.0.10 in DER."""
_POINT = bytes.fromhex("0441")
"""Before a point of 65 bytes, in DER; some tokens leave it out."""

_EXPECTED = (
    "expected pkcs11:token=LABEL;object=PREFIX?module-path=/path/to/module.so"
    "&pin-source=/path/to/pin"
)

T = TypeVar("T")


def open_url(url: str) -> RemoteSigner:
    """The signer of a PKCS #11 URI; the module is loaded at the first use.

    The path has `token`, its label, and `object`, the prefix of the labels of keys. The query has
    `module-path`, `pin-source`, a file that no other user may read, or `pin-value`; and `env_…=0x…`
    for the address of an environment's operator, which is then not asked for.
    Raises ValueError, SignerRefused for a module that does not exist, and ImportError without the
    packages of the extra `pkcs11`.
    """
    import pkcs11  # noqa: F401 - to say now what is missing

    path, _, query = url.removeprefix("pkcs11:").partition("?")
    place, wrong = split_pins(_read_attributes(path, ";"), ("token", "object"))
    options = ("module-path", "pin-source", "pin-value")
    given, pins = split_pins(_read_attributes(query, "&"), options)
    pin_count = sum(name in given for name in ("pin-source", "pin-value"))
    if wrong or pin_count != 1 or not all(place.values()) or len(place) != 2:
        raise ValueError(_EXPECTED)
    module = Path(given.get("module-path", ""))
    if not module.is_absolute():
        raise ValueError("module-path must be the absolute path of a PKCS#11 module")
    if not module.exists():
        raise SignerRefused(f"the PKCS#11 module {module} does not exist")
    source = given.get("pin-source")
    pin = Pin(_read_path(source) if source is not None else None, given.get("pin-value"))
    return RemoteSigner(TokenKeys(find_token(module, place["token"], pin), place["object"]), pins)


@attrs.frozen
class Pin:
    """The user's PIN of a token: in a file, which is read at each login, or given."""

    file: Path | None
    value: str | None = attrs.field(repr=False)

    def read(self) -> str:
        """Raises SignerRefused for a file that cannot be read, or that others may read."""
        if self.file is None:
            return self.value or ""
        try:
            if self.file.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH):
                raise SignerRefused(
                    f"the PIN file {self.file} is open to all users: chmod o-rw {self.file}"
                )
            return self.file.read_text().strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise SignerRefused(f"the PIN file {self.file} cannot be read: {reason}") from error


class TokenKeys:
    """The keys of a token whose labels begin with a prefix. Has PublicKeys."""

    def __init__(self, token: LoggedInToken, prefix: str) -> None:
        self._token = token
        self._prefix = prefix

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        """See KeyService."""
        from pkcs11 import Mechanism

        label = key_name(self._prefix, environment_id)

        def sign_with(session: Any) -> bytes:
            key = self._token.find_key(session, label, "PRIVATE_KEY")
            signature: bytes = key.sign(digest, mechanism=Mechanism.ECDSA)
            return signature

        return self._token.use(sign_with)

    def public_key(self, environment_id: str) -> bytes:
        """See PublicKeys. The token needs the object of the public key, with the same label."""
        from pkcs11 import Attribute

        label = key_name(self._prefix, environment_id)

        def read(session: Any) -> tuple[bytes, bytes]:
            key = self._token.find_key(session, label, "PUBLIC_KEY")
            return bytes(key[Attribute.EC_PARAMS]), bytes(key[Attribute.EC_POINT])

        curve, point = self._token.use(read)
        point = point.removeprefix(_POINT) if len(point) == 67 else point
        if curve != _CURVE or len(point) != 65 or point[0] != 4:
            raise SignerRefused(f"the key {label} is not on secp256k1")
        return point


class LoggedInToken:
    """A token in which this process is logged in; one call at a time.

    A lost session is opened again, once for each call. After a fork the child logs in by itself.
    """

    def __init__(self, module: Path, label: str, pin: Pin) -> None:
        self._module = module
        self._label = label
        self._pin = pin
        self._lock = threading.Lock()
        self._session: Any = None
        self._keys: dict[tuple[str, str], Any] = {}
        self._inherited: list[Any] = []
        self._refused_pin: str | None = None
        register_fork_reset(self)

    def use(self, call: Callable[[Any], T]) -> T:
        """The result of a call with a session. Raises SignerRefused, ChainUnavailable."""
        from pkcs11.exceptions import PKCS11Error

        if not self._lock.acquire(timeout=BUSY_S):
            raise ChainUnavailable(f"the token {self._label} is busy")
        try:
            is_fresh = self._session is None
            try:
                return call(self._open())
            except PKCS11Error as error:
                self._forget_session()
                if is_fresh or is_refusal(error):
                    raise self._explain(error) from error
            try:
                return call(self._open())
            except PKCS11Error as error:
                self._forget_session()
                raise self._explain(error) from error
        finally:
            self._lock.release()

    def find_key(self, session: Any, label: str, kind: str) -> Any:
        """The one key of a kind with a label. Raises SignerRefused."""
        from pkcs11 import KeyType, ObjectClass
        from pkcs11.exceptions import MultipleObjectsReturned, NoSuchKey

        known = self._keys.get((label, kind))
        if known is not None:
            return known
        what = f"{kind.lower().replace('_', ' ')} {label}"
        try:
            found = session.get_key(
                object_class=ObjectClass[kind], key_type=KeyType.EC, label=label
            )
        except NoSuchKey:
            raise SignerRefused(f"the token {self._label} has no {what}") from None
        except MultipleObjectsReturned:
            raise SignerRefused(f"the token {self._label} has more than one {what}") from None
        self._keys[label, kind] = found
        return found

    def reset_after_fork(self) -> None:
        """See ForkSafe. What is the parent's is kept, since to drop it would close it."""
        self._lock = threading.Lock()
        self._inherited += [self._session, self._keys]
        self._session, self._keys = None, {}

    def _open(self) -> Any:
        import pkcs11

        if self._session is None:
            try:
                loaded: Any = pkcs11.lib(str(self._module))
            except pkcs11.PKCS11Error as error:
                if type(error) is not pkcs11.PKCS11Error:
                    raise
                raise SignerRefused(f"the module {self._module} cannot be loaded") from error
            if self._inherited:
                self._inherited.clear()
                loaded.reinitialize()
            token = loaded.get_token(token_label=self._label)
            self._session = self._log_in(token)
        return self._session

    def _log_in(self, token: Any) -> Any:
        """A session. A PIN that was wrong is not tried again: some attempts lock a token."""
        from pkcs11.exceptions import PinIncorrect, UserAlreadyLoggedIn

        pin = self._pin.read()
        if pin == self._refused_pin:
            raise SignerRefused(f"the token {self._label} refuses: PinIncorrect")
        try:
            return token.open(user_pin=pin)
        except UserAlreadyLoggedIn:  # another part of this program did it, for the whole process
            return token.open()
        except PinIncorrect:
            self._refused_pin = pin
            raise

    def _forget_session(self) -> None:
        from pkcs11.exceptions import PKCS11Error

        session, self._session, self._keys = self._session, None, {}
        if session is not None:
            try:
                session.close()
            except PKCS11Error:  # it is closed already, or the token is gone
                return

    def _explain(self, error: Exception) -> ChainUnavailable | SignerRefused:
        what = f"the token {self._label}"
        if is_refusal(error):
            return SignerRefused(f"{what} refuses: {type(error).__name__}")
        return ChainUnavailable(f"{what} does not answer: {type(error).__name__}")


def is_refusal(error: Exception) -> bool:
    """Whether the token answered and does not want to: to ask again gives the same answer.

    A wrong PIN is among them, because to repeat it would lock the token.
    """
    return type(error).__name__ in _REFUSALS


_REFUSALS = frozenset({
    "AttributeTypeInvalid", "DataLenRange", "FunctionNotSupported", "FunctionRejected",
    "KeySizeRange", "KeyTypeInconsistent", "MechanismInvalid", "PinExpired", "PinIncorrect",
    "PinInvalid", "PinLenRange", "PinLocked", "UserPinNotInitialized",
})  # fmt: skip


@cache
def find_token(module: Path, label: str, pin: Pin) -> LoggedInToken:
    """A token is one object in a process: PKCS#11 logs in a process, not a session."""
    return LoggedInToken(module, label, pin)


def _read_attributes(text: str, separator: str) -> list[tuple[str, str]]:
    pairs = (one.partition("=") for one in text.split(separator) if one)
    return [(unquote(name), unquote(value)) for name, _, value in pairs]


def _read_path(source: str) -> Path:
    """A path, or `file:` with one (RFC 7512)."""
    path = Path(unquote(urlsplit(source).path) if source.startswith("file:") else source)
    if not path.is_absolute():
        raise ValueError("pin-source must be the absolute path of a file")
    return path
