"""Keys in an HSM by PKCS#11, which SoftHSM 2 plays: the real module, loaded by the real library."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pkcs11
import pytest
from pkcs11 import exceptions as raised

from payments_core.chains.evm import pkcs11_token
from payments_core.chains.evm.pkcs11_token import TokenKeys, find_token
from payments_core.chains.evm.signers import RemoteSigner
from payments_core.chains.loader import open_signer
from payments_core.chains.port import ChainUnavailable, SignerRefused, WrongSignature
from payments_core.chains.rotated_signer import OperatorSigner, RotatedSigner, find_signer
from payments_core.chains.signatures import recover_signer_from_bytes
from payments_core.conformance.signer import SignerConformance
from tests.servers.softhsm import PIN, SoftHsm, softhsm_or_skip

ENV, OTHER = "env_-P23J5k-D8QQDDBxu8rHlL0O", "env_two"
DIGEST = bytes(range(32))
TOKEN = "payments"


@pytest.fixture(scope="module")
def hsm(tmp_path_factory: pytest.TempPathFactory) -> SoftHsm:
    made = softhsm_or_skip(tmp_path_factory.mktemp("hsm"))
    made.create_token(TOKEN)
    for name in (f"payments/{ENV}", f"payments/{OTHER}", f"payments-2027/{ENV}"):
        made.create_key(TOKEN, name)
    made.create_key(TOKEN, "curves/env_a", "secp256r1")
    return made


@pytest.fixture(autouse=True)
def _fresh(hsm: SoftHsm) -> None:
    """As in a new process: no token is logged in."""
    find_token.cache_clear()
    pkcs11.lib(str(hsm.module)).reinitialize()


class TestPkcs11(SignerConformance):
    environment_ids = (ENV, OTHER)
    secrets = (PIN,)

    @pytest.fixture(autouse=True)
    def _place(self, hsm: SoftHsm) -> None:
        self.hsm = hsm

    def open(self) -> OperatorSigner:
        return opened(self.hsm)


def opened(hsm: SoftHsm, prefix: str = "payments", *more: str) -> RemoteSigner:
    signer = open_signer(hsm.signer_url(TOKEN, prefix, *more))
    assert isinstance(signer, RemoteSigner)
    return signer


def token_of(signer: RemoteSigner) -> pkcs11_token.LoggedInToken:
    assert isinstance(signer.keys, TokenKeys)
    return signer.keys._token


def test_a_lost_session_is_opened_again(hsm: SoftHsm) -> None:
    signer = opened(hsm)
    address = signer.address(ENV)
    signer.sign(ENV, DIGEST)
    pkcs11.lib(str(hsm.module)).reinitialize()  # every session is gone, as after a restart
    assert recover_signer_from_bytes(DIGEST, signer.sign(ENV, DIGEST)) == address


def test_a_token_that_is_away_is_unavailable_and_found_again(hsm: SoftHsm) -> None:
    signer = opened(hsm)
    address = signer.address(ENV)
    signer.sign(ENV, DIGEST)
    tokens, away = hsm.folder / "tokens", hsm.folder / "away"
    tokens.rename(away)
    tokens.mkdir()
    try:
        pkcs11.lib(str(hsm.module)).reinitialize()
        with pytest.raises(ChainUnavailable, match="payments does not answer: NoSuchToken"):
            signer.sign(ENV, DIGEST)
    finally:
        tokens.rmdir()
        away.rename(tokens)
        pkcs11.lib(str(hsm.module)).reinitialize()
    assert recover_signer_from_bytes(DIGEST, signer.sign(ENV, DIGEST)) == address


def test_a_wrong_pin_is_tried_once_since_attempts_lock_a_token(hsm: SoftHsm) -> None:
    url = hsm.signer_url(TOKEN, "payments").partition("&")[0] + "&pin-value=wrong-9999"
    signer = open_signer(url)
    token = token_of(signer)
    assert "wrong-9999" not in repr(signer) and "wrong-9999" not in repr(token._pin)
    for _ in range(3):
        with pytest.raises(SignerRefused, match="the token payments refuses: PinIncorrect") as said:
            signer.address(ENV)
        assert "wrong-9999" not in f"{said.value!r} {said.value.__cause__!r}"
    assert token._refused_pin == "wrong-9999"
    assert opened(hsm).address(ENV)  # and the token is not locked


def test_two_prefixes_of_a_token_share_its_login(hsm: SoftHsm) -> None:
    old, new = opened(hsm), opened(hsm, "payments-2027")
    assert token_of(old) is token_of(new)
    rotated = RotatedSigner(new, (old,))
    assert rotated.address(ENV) == new.address(ENV) != old.address(ENV)
    found = find_signer(rotated, ENV, old.address(ENV))
    assert recover_signer_from_bytes(DIGEST, found.sign(ENV, DIGEST)) == old.address(ENV)


def test_a_key_that_was_replaced_signs_nothing(hsm: SoftHsm) -> None:
    address = opened(hsm).address(OTHER)
    signer = opened(hsm, "payments", f"{ENV}={address}")
    with pytest.raises(WrongSignature, match="signed with another key"):
        signer.sign(ENV, DIGEST)


def test_a_key_of_another_curve_is_refused(hsm: SoftHsm) -> None:
    with pytest.raises(SignerRefused, match="curves/env_a is not on secp256k1"):
        opened(hsm, "curves").address("env_a")


def test_two_keys_with_one_label_are_refused(hsm: SoftHsm) -> None:
    for _ in range(2):
        hsm.create_key(TOKEN, "twice/env_a")
    pkcs11.lib(str(hsm.module)).reinitialize()
    with pytest.raises(SignerRefused, match="has more than one public key twice/env_a"):
        opened(hsm, "twice").address("env_a")


def test_a_forked_child_logs_in_by_itself(hsm: SoftHsm) -> None:
    signer = opened(hsm)
    address = signer.address(ENV)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            found = recover_signer_from_bytes(DIGEST, signer.sign(ENV, DIGEST))
            status = 0 if found == address else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert recover_signer_from_bytes(DIGEST, signer.sign(ENV, DIGEST)) == address


def test_a_call_does_not_wait_for_ever_for_another(
    hsm: SoftHsm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pkcs11_token, "BUSY_S", 0.01)
    signer = opened(hsm)
    signer.address(ENV)
    token, held, done = token_of(signer), threading.Event(), threading.Event()

    def hang(session: object) -> None:
        held.set()
        done.wait(10)

    other = threading.Thread(target=token.use, args=(hang,))
    other.start()
    held.wait(10)
    with pytest.raises(ChainUnavailable, match="the token payments is busy"):
        signer.sign(ENV, DIGEST)
    done.set()
    other.join()
    assert signer.sign(ENV, DIGEST)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (raised.DeviceRemoved, ChainUnavailable),
        (raised.DeviceError, ChainUnavailable),
        (raised.SessionHandleInvalid, ChainUnavailable),
        (raised.MechanismInvalid, SignerRefused),
        (raised.PinLocked, SignerRefused),
        (raised.KeyTypeInconsistent, SignerRefused),
    ],
)
def test_errors_of_the_token_are_told_apart(
    hsm: SoftHsm, error: type[Exception], expected: type[Exception]
) -> None:
    token = token_of(opened(hsm))

    def fail(session: object) -> None:
        raise error

    with pytest.raises(expected, match=f"the token payments .*: {error.__name__}"):
        token.use(fail)


def test_a_pin_file_that_others_may_read_is_refused(hsm: SoftHsm, tmp_path: Path) -> None:
    file = tmp_path / "pin"
    url = hsm.signer_url(TOKEN, "payments").replace(str(hsm.pin_file), str(file))
    with pytest.raises(SignerRefused, match="cannot be read: No such file"):
        open_signer(url).address(ENV)
    file.write_text(PIN)
    file.chmod(0o604)
    find_token.cache_clear()
    with pytest.raises(SignerRefused, match="chmod o-rw") as refused:
        open_signer(url).address(ENV)
    assert PIN not in str(refused.value)


def test_a_module_that_is_none_is_refused(tmp_path: Path) -> None:
    module = tmp_path / "module.so"
    url = f"pkcs11:token=a;object=b?module-path={module}&pin-value=secret"
    with pytest.raises(SignerRefused, match=r"module\.so does not exist"):
        open_signer(url)
    module.write_bytes(b"no library")
    with pytest.raises(SignerRefused, match=r"module\.so cannot be loaded"):
        open_signer(url).address(ENV)


def test_a_program_that_is_logged_in_already_is_not_logged_in_again(hsm: SoftHsm) -> None:
    token = pkcs11.lib(str(hsm.module)).get_token(token_label=TOKEN)
    own = token.open(user_pin=PIN)
    try:
        signer = opened(hsm)
        found = recover_signer_from_bytes(DIGEST, signer.sign(ENV, DIGEST))
        assert found == signer.address(ENV)
    finally:
        own.close()
    assert recover_signer_from_bytes(DIGEST, signer.sign(ENV, DIGEST)) == found


MODULE = f"module-path={__file__}"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("pkcs11:", "expected pkcs11:token="),
        (f"pkcs11:token=a?{MODULE}&pin-value=secret", "expected pkcs11:token="),
        (f"pkcs11:token=a;object=?{MODULE}&pin-value=secret", "expected pkcs11:token="),
        (f"pkcs11:token=a;object=b?{MODULE}", "expected pkcs11:token="),
        (f"pkcs11:token=a;object=b?{MODULE}&pin-value=secret&pin-source=/a", "expected pkcs11"),
        ("pkcs11:token=a;object=b?module-path=m.so&pin-value=secret", "module-path must be"),
        ("pkcs11:token=a;object=b?pin-value=secret", "module-path must be"),
        (f"pkcs11:token=a;object=b?{MODULE}&pin-source=secret", "pin-source must be"),
        (f"pkcs11:token=a;object=b?{MODULE}&pin=secret", "unknown parameter"),
        (f"pkcs11:token=a;serial=b?{MODULE}&pin-value=secret", "unknown parameter"),
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_its_secret(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        open_signer(url)
    assert "secret" not in str(refused.value)
