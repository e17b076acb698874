"""Checks of signers at the start: sign, recover, compare; and of the curve library itself.

Every signature and every recovery of the service is made by one library. A build of it that is
broken would agree with itself, so it is compared with a second implementation, OpenSSL's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from payments_core.chains.loader import SignerCheck
from payments_core.chains.port import ChainUnavailable, SignerRefused, WrongSignature
from payments_core.chains.rotated_signer import OperatorSigner, RotatedSigner
from payments_core.chains.signatures import (
    HALF_ORDER,
    ORDER,
    SignatureError,
    address_of,
    recover_signer_from_bytes,
)
from payments_core.entropy import Entropy, system_entropy

_PURPOSE = b"payments-core/signer check/"

_KNOWN_KEY = bytes([0x46]) * 32
_KNOWN_ADDRESS = "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F"
_KNOWN_DIGEST = bytes.fromhex("daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53")
_KNOWN_R = 18515461264373351373200002665853028612451056578545711640558177340181847433846
_KNOWN_S = 46948507304638947509940763649030358759909902576025900602547168820602576006531
"""The example of EIP-155, which the library must sign in the same way (RFC 6979)."""


def check_signers(
    signer: OperatorSigner, environment_ids: Iterable[str], *, entropy: Entropy = system_entropy
) -> Iterator[SignerCheck]:
    """See ChecksSigners."""
    require_sound_curve(entropy)
    environment_ids = tuple(environment_ids)
    former = signer.former if isinstance(signer, RotatedSigner) else ()
    current = signer.current if isinstance(signer, RotatedSigner) else signer
    for one in (current, *former):
        for environment_id in environment_ids:
            found = _check_key(one, environment_id, one is not current, entropy)
            yield found
            if found.state == "silent":
                break


def check_signature(signer: OperatorSigner, environment_id: str, entropy: Entropy) -> str:
    """The address of the operator, after it signed a new digest.

    The digest is a hash of a text of ours, so that the signature is of no transaction.
    Raises WrongSignature, SignerRefused, ChainUnavailable.
    """
    digest = hashlib.sha256(_PURPOSE + entropy(32)).digest()
    address = signer.address(environment_id)
    signature = signer.sign(environment_id, digest)
    try:
        recovered = recover_signer_from_bytes(digest, signature)
    except SignatureError as error:
        raise WrongSignature(f"the signature of the signer {error}") from error
    if recovered != address:
        raise WrongSignature(f"the signer of {address} signed with another key or other data")
    return address


def require_sound_curve(entropy: Entropy = system_entropy) -> None:
    """Compare the curve library with OpenSSL, with a new key and digest, and with a known example.

    Raises WrongSignature.
    """
    if not _agrees_with_example() or not _agrees_with_openssl(entropy):
        raise WrongSignature("libsecp256k1 computes other signatures than OpenSSL or EIP-155")


def _check_key(
    signer: OperatorSigner, environment_id: str, is_former: bool, entropy: Entropy
) -> SignerCheck:
    try:
        address = check_signature(signer, environment_id, entropy)
    except WrongSignature as error:
        return SignerCheck(environment_id, is_former, "wrong", says=str(error))
    except SignerRefused as error:
        return SignerCheck(environment_id, is_former, "refused", says=str(error))
    except ChainUnavailable as error:
        return SignerCheck(environment_id, is_former, "silent", says=str(error))
    return SignerCheck(environment_id, is_former, "sound", address)


def _agrees_with_example() -> bool:
    from btclib_libsecp256k1 import keys, recovery

    pair, parity = recovery.sign(_KNOWN_DIGEST, _KNOWN_KEY)
    expected = _KNOWN_R.to_bytes(32, "big") + _KNOWN_S.to_bytes(32, "big")
    address = address_of(keys.pubkey_from_prvkey(_KNOWN_KEY, compressed=False))
    found = _recover(_KNOWN_DIGEST, pair + bytes([parity]))
    return (pair, address, found) == (expected, _KNOWN_ADDRESS, _KNOWN_ADDRESS)


def _agrees_with_openssl(entropy: Entropy) -> bool:
    """Each makes a signature that the other accepts, of one key whose point both compute."""
    from btclib_libsecp256k1 import keys, recovery
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    digest = hashlib.sha256(_PURPOSE + entropy(32)).digest()
    number = int.from_bytes(entropy(32), "big") % (ORDER - 1) + 1
    raw = number.to_bytes(32, "big")
    private = ec.derive_private_key(number, ec.SECP256K1())
    public = private.public_key()
    point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    if point != keys.pubkey_from_prvkey(raw, compressed=False):
        return False
    prehashed = ec.ECDSA(utils.Prehashed(hashes.SHA256()))
    pair, parity = recovery.sign(digest, raw)
    ours = utils.encode_dss_signature(
        int.from_bytes(pair[:32], "big"), int.from_bytes(pair[32:], "big")
    )
    try:
        public.verify(ours, digest, prehashed)
    except InvalidSignature:
        return False
    r, s = utils.decode_dss_signature(private.sign(digest, prehashed))
    low = s if s <= HALF_ORDER else ORDER - s
    theirs = r.to_bytes(32, "big") + low.to_bytes(32, "big")
    recovered = [_recover(digest, theirs + bytes([bit])) for bit in (0, 1)]
    address = address_of(point)
    return address in recovered and _recover(digest, pair + bytes([parity])) == address


def _recover(digest: bytes, signature: bytes) -> str | None:
    try:
        return recover_signer_from_bytes(digest, signature)
    except SignatureError:
        return None
