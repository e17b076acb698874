"""The self-check of signers and of the curve library, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from btclib_libsecp256k1 import recovery
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_core.chains.evm.signer_checks import check_signers, require_sound_curve
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.port import ChainUnavailable, SignerRefused, WrongSignature
from payments_core.chains.rotated_signer import RotatedSigner
from payments_core.chains.signatures import ORDER, address_of, recover_signer_from_bytes
from payments_core.entropy import system_entropy
from tests.signers import sign_digest

SECRET = bytes(range(1, 33))
LOCAL = LocalSigner(SECRET)
FORMER = LocalSigner(SECRET[::-1])


@attrs.define
class Odd:
    """A signer whose signatures are changed, or that raises."""

    change: Callable[[bytes], bytes] = lambda signature: signature
    error: Exception | None = None
    signed: list[bytes] = attrs.field(factory=list)

    def address(self, environment_id: str) -> str:
        return LOCAL.address(environment_id)

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        self.signed.append(digest)
        if self.error is not None:
            raise self.error
        return self.change(LOCAL.sign(environment_id, digest))


def test_a_sound_signer_is_found_with_its_address() -> None:
    found = list(check_signers(LOCAL, ["env_a", "env_b"]))
    assert [one.state for one in found] == ["sound", "sound"]
    assert [one.address for one in found] == [LOCAL.address("env_a"), LOCAL.address("env_b")]


def test_former_signers_are_checked_too() -> None:
    wrong = Odd(lambda signature: FORMER.sign("env_a", bytes(32)))
    found = list(check_signers(RotatedSigner(LOCAL, (FORMER, wrong)), ["env_a"]))
    states = [(one.is_former, one.state) for one in found]
    assert states == [(False, "sound"), (True, "sound"), (True, "wrong")]


@pytest.mark.parametrize(
    "change",
    [
        lambda made: LOCAL.sign("env_a", bytes(32)),  # of other data
        lambda made: made[:64] + bytes([made[64] ^ 1]),  # the other recovery id
        lambda made: made[:32] + (ORDER - int.from_bytes(made[32:64], "big")).to_bytes(32, "big")
        + made[64:],
        lambda made: made[:64],
        lambda made: bytes(65),
    ],
)  # fmt: skip
def test_a_signature_that_is_not_the_operators_is_found(change: Callable[[bytes], bytes]) -> None:
    [found] = check_signers(Odd(change), ["env_a"])
    assert (found.state, found.address) == ("wrong", None)


def test_a_key_that_is_missing_stops_no_other_but_a_silent_service_does() -> None:
    refused = list(check_signers(Odd(error=SignerRefused("no key")), ["env_a", "env_b"]))
    assert [(one.state, one.says) for one in refused] == [("refused", "no key")] * 2
    silent = list(check_signers(Odd(error=ChainUnavailable("away")), ["env_a", "env_b"]))
    assert [(one.state, one.says) for one in silent] == [("silent", "away")]


def test_each_check_signs_another_digest() -> None:
    signer = Odd()
    list(check_signers(signer, ["env_a", "env_a"]))
    assert len(set(signer.signed)) == 2


@given(st.binary(min_size=32, max_size=32), st.integers(1, ORDER - 1))
@settings(max_examples=40)
def test_the_curve_library_recovers_what_openssl_signs(digest: bytes, key: int) -> None:
    private = ec.derive_private_key(key, ec.SECP256K1())
    r, s = utils.decode_dss_signature(
        private.sign(digest, ec.ECDSA(utils.Prehashed(hashes.SHA256())))
    )
    pair = r.to_bytes(32, "big") + min(s, ORDER - s).to_bytes(32, "big")
    numbers = private.public_key().public_numbers()
    point = b"\4" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
    recovered = {recover_signer_from_bytes(digest, pair + bytes([bit])) for bit in (0, 1)}
    assert address_of(point) in recovered
    assert recover_signer_from_bytes(digest, sign_digest(key, digest)) == address_of(point)


@pytest.mark.parametrize("function", ["sign", "recover"])
@pytest.mark.parametrize("is_example_right", [True, False])
def test_a_curve_library_that_computes_something_else_is_found(
    monkeypatch: pytest.MonkeyPatch, function: str, is_example_right: bool
) -> None:
    sound: Any = getattr(recovery, function)
    calls = 0

    def lie(digest: bytes, *rest: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if is_example_right and calls == 1:
            return sound(digest, *rest, **more)
        return sound(digest[::-1], *rest, **more)

    monkeypatch.setattr(recovery, function, lie)
    with pytest.raises(WrongSignature, match="computes other signatures"):
        require_sound_curve(system_entropy)
    with pytest.raises(WrongSignature):
        next(iter(check_signers(LOCAL, ["env_a"])))
